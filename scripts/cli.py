"""The ``puzzlegym`` command: finds the subcommand, reads its options, turns what went wrong into one line."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import gymnasium

from .. import PUZZLES, __version__
from ._console import interruptible

PROGRAM = "puzzlegym"
USAGE_ERROR = 2
INTERRUPTED = 130

# Which extra brings what, by import name.
EXTRAS = {
    **dict.fromkeys(("PIL", "filelock", "platformdirs", "rich", "scipy", "tyro"), "play"),
    **dict.fromkeys(("matplotlib", "sb3_contrib", "stable_baselines3", "tensorboard", "torch", "tqdm"), "train"),
    **dict.fromkeys(("h5py", "minari"), "data"),
    "optuna": "tune",
    "ray": "ray",
}


@dataclass(frozen=True)
class Command:
    """A subcommand: the module that has its options (a dataclass) and ``run(options) -> exit code``, a line of help.

    The module is imported only when the command is called, so that one that cannot be imported harms no other.
    """

    module: str
    options: str
    help: str


COMMANDS: dict[str, Command] = {
    "train": Command("train", "Train", "Train an agent, or go on with a saved run."),
    "tune": Command("tune", "Tune", "Search for good numbers of PPO: learning rate, batch size and others."),
    "evaluate": Command("evaluate", "Evaluate", "Play held-out games with one or several agents and compare them."),
    "leaderboard": Command("leaderboard", "Leaderboard", "Evaluate all named agents of a puzzle."),
    "plot": Command("plot", "Plot", "Draw the learning curves of training runs."),
    "watch": Command("watch", "Watch", "Watch an agent play one game in the terminal, and record it."),
    "play": Command("play", "Play", "Play by hand, with hints, undo and a game that saves itself."),
    "replay": Command("replay", "Replay", "Play a game of FreeCell from a file and check its moves."),
    "solve": Command("solve", "Solve", "Solve deals of FreeCell: a winning line, or the proof that there is none."),
    "dataset": Command("dataset", "Dataset", "Write solved deals or an agent's games as a Minari dataset."),
    "bench": Command("bench", "Bench", "Measure how many steps a second the environments make here."),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (default: the process's own) and return the exit code.

    0: done, 2: the call or a file was wrong (one line on stderr says how), 130: stopped by Ctrl-C; ``solve`` has two
    more for what it finds.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    name = arguments[0] if arguments else "--help"
    if name in ("-h", "--help"):
        print(overview())
        return 0
    if name == "--version":
        print(f"{PROGRAM} {__version__}")
        return 0
    if name not in COMMANDS:
        return _fail(PROGRAM, f"unknown command {name!r}: use {', '.join(COMMANDS)}")
    return _guarded(name, arguments[1:])


def overview() -> str:
    """The help text of ``puzzlegym`` itself."""
    width = max(map(len, COMMANDS)) + 2
    lines = [f"  {name:<{width}}{command.help}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            f"usage: {PROGRAM} COMMAND ... [OPTIONS]",
            "",
            "2048 and FreeCell for reinforcement learning: train players, compare and watch them, or play yourself.",
            "",
            "commands:",
            *lines,
            "",
            f"puzzles (ID): {', '.join(PUZZLES)}",
            "",
            f"'{PROGRAM} COMMAND --help' lists the options of a command, '{PROGRAM} --version' prints the version.",
        ]
    )


def _guarded(name: str, arguments: list[str]) -> int:
    program = f"{PROGRAM} {name}"
    try:
        with interruptible():
            code = _call(COMMANDS[name], program, arguments)
            sys.stdout.flush()
            return code
    except BrokenPipeError:  # the reader had enough (`| head`): nothing is wrong
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        _fail(program, "stopped")
        return INTERRUPTED
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        return _fail(program, f'{package} is not installed: pip install "puzzlegym[{EXTRAS[package]}]"')
    except OSError as error:
        return _fail(program, f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (ValueError, gymnasium.error.Error) as error:
        return _fail(program, str(error))


def _call(command: Command, program: str, arguments: list[str]) -> int:
    import tyro

    module: Any = import_module(f".{command.module}", __package__)
    try:
        options = tyro.cli(getattr(module, command.options), prog=program, args=arguments)
    except SystemExit as stop:  # after --help, or with a wrong option explained
        return stop.code if isinstance(stop.code, int) else USAGE_ERROR
    return int(module.run(options))


def _fail(program: str, message: str) -> int:
    print(f"{program}: {' '.join(message.split())}", file=sys.stderr)
    return USAGE_ERROR


if __name__ == "__main__":
    sys.exit(main())
