"""A command on a real pseudo-terminal, with a terminal emulator that shows what a person would see."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pyte


class Terminal:
    """``puzzlegym ARGUMENTS`` on a terminal of so many columns and rows."""

    def __init__(self, *arguments, columns=80, rows=24, cwd=None, **environment):
        mine, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        inherited = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "puzzlegym.scripts.cli", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=cwd,
            start_new_session=True,
            env={**inherited, "TERM": "xterm-256color", **environment},
        )
        os.close(theirs)
        self._mine = mine
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self.received = b""

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.process.kill()
        self.process.wait()
        os.close(self._mine)

    @property
    def lines(self):
        """What is on the screen."""
        return [line.rstrip() for line in self._screen.display]

    @property
    def text(self):
        """What is on the screen, in one text."""
        return "\n".join(self.lines)

    @property
    def words(self):
        """What is on the screen, with line breaks and runs of blanks as one blank."""
        return " ".join(self.text.split())

    def send(self, keys):
        """Press keys."""
        os.write(self._mine, keys.encode())

    def read(self, seconds=0.1):
        """Take in what the command writes; False once it writes nothing for so long or has closed its end."""
        if not select.select([self._mine], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._mine, 65536)
        except OSError:  # Linux: the other end is closed
            return False
        self.received += data
        self._stream.feed(data)
        return bool(data)

    def wait(self, *texts, gone=(), seconds=40):
        """Until all ``texts`` stand on the screen and none of ``gone`` does; fails with the screen after so long."""
        end = time.monotonic() + seconds
        while not (all(one in self.text for one in texts) and not any(one in self.text for one in gone)):
            assert time.monotonic() < end, f"{texts}, not {gone}:\n{self.text}"
            self.read()
        while self.read(0.02):  # the rest of the picture
            pass

    def settings(self):
        """How the terminal treats what is typed."""
        return termios.tcgetattr(self._mine)[3]

    def wait_for_state(self, letter, seconds=20):
        """Until the system says that the process is in this state, such as T for stopped (Linux)."""
        end = time.monotonic() + seconds
        while Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0] != letter:
            assert time.monotonic() < end
            self.read(0.05)
        while self.read():
            pass

    def press(self, keys, *texts, **options):
        """Press keys and wait for what they bring."""
        self.send(keys)
        self.wait(*texts, **options)

    def end(self, seconds=20):
        """The exit code, once the command has ended and everything it wrote is read."""
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < end, f"still running:\n{self.text}"
            self.read()
        while self.read():
            pass
        return self.process.returncode
