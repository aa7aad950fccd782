"""What all pictures share: written whole or not at all; names, colours and numbers that can be told apart."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.figure import Figure
from puzzlegym.scripts import _plotting


def test_a_failed_picture_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "x.png"
    out.write_text("old", encoding="utf-8")

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", fail)
    with pytest.raises(OSError, match="No space"):
        _plotting.save(Figure(), out)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("x.png", "old")]


@pytest.mark.parametrize(
    ("paths", "shown"),
    [
        (["random", "greedy"], ["random", "greedy"]),
        (["runs/a/agent.zip", "runs/b/"], ["a", "b"]),
        (["x/runs/a", "y/runs/a", "random"], ["x/runs/a", "y/runs/a", "random"]),
        (["a", "a"], ["a", "a"]),
        (["/"], ["/"]),
    ],
)
def test_paths_are_told_apart(paths: list[str], shown: list[str]) -> None:
    assert _plotting.apart(paths) == shown


def test_long_names_lose_their_middle() -> None:
    short = _plotting.shortened("a" * 100 + "b" * 100)
    assert len(short) <= 72
    assert (short[0], short[-1], "..." in short) == ("a", "b", True)


def test_lines_are_told_apart_without_colour() -> None:
    styles = [tuple(_plotting.style(i).values()) for i in range(20)]
    assert len(set(styles)) == 20
    assert len({style[1:] for style in styles[:9]}) == 9


@pytest.mark.parametrize(("value", "shown"), [(0, "0"), (500, "500"), (20_000, "20k"), (1.5e6, "1.5M"), (0.5, "0.5")])
def test_compact_numbers(value: float, shown: str) -> None:
    assert _plotting.compact(value) == shown
