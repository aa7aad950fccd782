"""The plot command: learning curves of runs, seeds together, settings apart; numbers first, then the picture."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image
from puzzlegym import PUZZLES
from puzzlegym.agents import logs, saved
from puzzlegym.agents.configs import ppo_config
from puzzlegym.scripts import _curves, _plotting, plot
from puzzlegym.scripts.cli import main

ID = "Puzzle2048-v0"
TWO_MINUTES = {"steps": None, "seconds": 120.0}


def figures_of(env_id: str, step: float) -> dict[str, float]:
    figures = dict.fromkeys(logs.FIGURES[env_id], step / 1000)
    return figures | ({"rank": 11 - step / 100} if env_id == "FreeCell-v0" else {})


def make(
    folder: Path,
    *,
    seed: int = 0,
    env_id: str = ID,
    steps: Sequence[int] = (100, 200, 300),
    scale: float = 1.0,
    budget: dict[str, Any] = TWO_MINUTES,
    **changes: Any,
) -> Path:
    """A run folder as training writes it, its figures ``scale`` times those of the others."""
    folder.mkdir()
    for step in steps:
        figures = {name: value * scale for name, value in figures_of(env_id, step).items()}
        logs.append(folder, step, step / 2, figures)
    config = replace(ppo_config(env_id), **changes)
    card = {"env_id": env_id, "config": config.as_dict(), "seed": seed, "budget": budget}
    saved.save(folder / saved.FILE, card, {}, {})
    return folder


def refused(capsys: pytest.CaptureFixture[str], *argv: object) -> str:
    capsys.readouterr()
    assert main(["plot", *map(str, argv)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1), err
    assert "Traceback" not in err
    return err


def size(path: Path) -> tuple[int, int]:
    with Image.open(path) as picture:
        picture.load()
        pixels = np.asarray(picture.convert("RGB").resize((200, 200)))
        assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 20, "blank"
        return picture.size


@pytest.mark.parametrize("env_id", PUZZLES)
@pytest.mark.parametrize("x", ["steps", "minutes"])
def test_a_picture_and_the_last_figures(env_id: str, x: str, tmp_path: Path, capsys: Any) -> None:
    runs = [make(tmp_path / f"run{seed}", seed=seed, env_id=env_id) for seed in range(3)]
    out = tmp_path / "a b.png"
    assert main(["plot", *map(str, runs), "--out", str(out), "--x", x]) == 0
    text, err = capsys.readouterr()
    assert err == ""
    assert "\x1b" not in text
    assert text.splitlines()[-1] == f"Plot in {out}"
    rows = [line.split() for line in text.splitlines() if line.startswith("run") and "seed" not in line]
    assert [row[:4] for row in rows] == [[f"run{seed}", str(seed), "300", "2.5"] for seed in range(3)]
    names = [name for name in figures_of(env_id, 0) if name not in ("512", "1024", "2048")]
    assert text.split("\n")[0].split() == ["run", "seed", "steps", "minutes", *names]
    width, height = size(out)
    assert 900 < width < 1500
    assert 600 < height < 2000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a b.png", "run0", "run1", "run2"]


def test_of_the_tiles_those_that_tell(tmp_path: Path, capsys: Any) -> None:
    """The last three that a run reached; all that are named."""
    folder = tmp_path / "run"
    folder.mkdir()
    reached = dict.fromkeys(logs.FIGURES[ID], 0.0) | {"score": 9000.0, "512": 1.0, "1024": 0.5}
    logs.append(folder, 100, 10, reached)
    for argv, names in (([], ["score", "512", "1024"]), (["--y", "512", "8192"], ["512", "8192"])):
        assert main(["plot", str(folder), "--out", str(tmp_path / "x.png"), *argv]) == 0
        assert capsys.readouterr().out.split("\n")[0].split()[4:] == names


def test_the_default_is_curves_png_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    make(tmp_path / "run")
    monkeypatch.chdir(tmp_path / "run")
    assert main(["plot", "."]) == 0
    assert "Plot in curves.png" in capsys.readouterr().out
    size(tmp_path / "run" / "curves.png")


def test_a_vector_picture_in_capitals(tmp_path: Path) -> None:
    out = tmp_path / "curves.SVG"
    assert main(["plot", str(make(tmp_path / "_a$b$")), "--out", str(out)]) == 0
    assert ElementTree.parse(out).getroot().tag.endswith("svg")


def test_it_needs_no_display_and_no_pyplot(tmp_path: Path) -> None:
    code = "import sys; from puzzlegym.scripts.cli import main; main(); print('matplotlib.pyplot' in sys.modules)"
    call = [sys.executable, "-c", code, "plot", str(make(tmp_path / "run")), "--out"]
    done = subprocess.run([*call, str(tmp_path / "x.pdf")], capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    assert done.stdout.endswith("False\n")
    assert (tmp_path / "x.pdf").read_bytes().startswith(b"%PDF")


# Groups and their names


def groups_of(*folders: Path) -> tuple[list[list[_curves.Run]], list[str]]:
    groups = _curves.grouped(_curves.load_all(folders))
    return groups, _curves.labels(groups, {folder: folder.name for folder in folders})


def test_seeds_are_one_group(tmp_path: Path) -> None:
    groups, labels = groups_of(*(make(tmp_path / f"s{seed}", seed=seed) for seed in (3, 1, 2)))
    assert [[run.seed for run in group] for group in groups] == [[3, 1, 2]]
    assert labels == ["s3 ... s2"]
    assert _curves.size(groups[0]) == "3 seeds"


def test_a_seed_twice_is_no_second_seed(tmp_path: Path) -> None:
    groups, _ = groups_of(make(tmp_path / "a"), make(tmp_path / "b"))
    assert [_curves.size(group) for group in groups] == ["2 runs"]


def test_a_folder_twice_is_one_run(tmp_path: Path) -> None:
    folder = make(tmp_path / "a")
    assert len(_curves.load_all([folder, folder / ".." / "a", folder])) == 1


def test_settings_are_named_by_what_differs(tmp_path: Path) -> None:
    folders = [
        make(tmp_path / "a", seed=0, learning_rate=0.01),
        make(tmp_path / "b", seed=0, learning_rate=0.02, wrappers=()),
        make(tmp_path / "c", seed=1, learning_rate=0.01),
        make(tmp_path / "d", seed=0, learning_rate=0.02, wrappers=(), budget={"steps": 5000, "seconds": None}),
    ]
    groups, labels = groups_of(*folders)
    assert [[run.path.name for run in group] for group in groups] == [["a", "c"], ["b"], ["d"]]
    assert labels == [
        "wrappers shaped_2048, learning_rate 0.01, 2 minutes",
        "no wrappers, learning_rate 0.02, 2 minutes",
        "no wrappers, learning_rate 0.02, 5,000 steps",
    ]


def test_settings_within_settings(tmp_path: Path) -> None:
    curriculum = ppo_config("FreeCell-v0", "ranks").curriculum
    assert curriculum
    easier = make(tmp_path / "a", env_id="FreeCell-v0", curriculum=replace(curriculum, threshold=0.5))
    usual, none = (make(tmp_path / n, env_id="FreeCell-v0", curriculum=c) for n, c in (("b", curriculum), ("c", None)))
    assert groups_of(easier, usual)[1] == ["threshold 0.5", "threshold 0.65"]
    assert groups_of(usual, none)[1] == ["with curriculum", "no curriculum"]


def test_settings_of_many_words_go_by_folder(tmp_path: Path) -> None:
    many = make(tmp_path / "b", n_steps=3, batch_size=7, gamma=0.5, gae_lambda=0.5)
    assert groups_of(make(tmp_path / "a"), many)[1] == ["a", "b"]


def test_the_default_budget_of_a_config_does_not_matter(tmp_path: Path) -> None:
    cards = [{"config": {"minutes": minutes, "gamma": 1}, "budget": TWO_MINUTES} for minutes in (1, 2)]
    assert _curves._settings(cards[0]) == _curves._settings(cards[1]) == {"gamma": 1, "budget": "2 minutes"}


def test_a_run_in_progress_stands_alone(tmp_path: Path, capsys: Any) -> None:
    folders = [make(tmp_path / name, seed=seed) for seed, name in enumerate("abc")]
    (folders[2] / saved.FILE).unlink()
    with (folders[2] / logs.FILE).open("a") as file:
        file.write("400,20")
    groups, labels = groups_of(*folders)
    assert [len(group) for group in groups] == [2, 1]
    assert labels == ["a ... b", "c"]
    assert groups[1][0].env_id == ID
    assert main(["plot", *map(str, folders), "--out", str(tmp_path / "x.png")]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["c", "300", "2.5", "0", "30.0%", "30.0%", "30.0%"] in rows


# Numbers behind the lines


def curve(x: Sequence[float], y: Sequence[float]) -> _curves.Curve:
    return np.array(x, dtype=float), np.array(y, dtype=float)


def test_mean_and_range_on_the_common_grid() -> None:
    band = _curves.band([curve([0, 10, 20], [0, 10, 20]), curve([5, 15, 30], [1, 3, 6])])
    np.testing.assert_allclose(band.x, [5, 10, 15, 20])
    np.testing.assert_allclose(band.mean, [3, 6, 9, 12])
    np.testing.assert_allclose(band.low, [1, 2, 3, 4])
    np.testing.assert_allclose(band.high, [5, 10, 15, 20])


def test_one_run_is_its_own_mean() -> None:
    x, y = curve([1, 2, 4], [3, 1, 2])
    band = _curves.band([(x, y)])
    for found, expected in (band.x, x), (band.mean, y), (band.low, y), (band.high, y):
        np.testing.assert_array_equal(found, expected)
    assert _curves.beyond((x, y), band.x) == []


def test_what_only_some_reach_goes_on_from_the_grid() -> None:
    parts = _curves.beyond(curve([0, 10, 20], [0, 100, 200]), np.array([5.0, 15.0]))
    assert [(x.tolist(), y.tolist()) for x, y in parts] == [([0, 5], [0, 50]), ([15, 20], [150, 200])]


def test_runs_without_a_common_range() -> None:
    first, second = curve([0, 1], [0, 1]), curve([2, 3], [0, 1])
    band = _curves.band([first, second])
    assert len(band.x) == len(band.mean) == 0
    assert _curves.beyond(first, band.x) == [first]


def drawn(*folders: Path, x: plot.X = "steps", figures: Sequence[str] = ("score",)) -> Figure:
    groups, labels = groups_of(*folders)
    return plot.draw(groups, labels, figures, x)


def test_lines_hold_the_numbers(tmp_path: Path) -> None:
    figure = drawn(
        make(tmp_path / "a", seed=0, steps=(100, 200, 300)),
        make(tmp_path / "b", seed=1, steps=(100, 200), scale=3),
        make(tmp_path / "c", gamma=0.5, steps=(100, 150)),
        x="minutes",
    )
    mean, thin, other = figure.axes[0].get_lines()
    minutes = np.array([100, 200, 300]) / 2 / 60
    np.testing.assert_allclose(mean.get_xydata(), np.c_[minutes[:2], [0.2, 0.4]], atol=0.001)
    np.testing.assert_allclose(thin.get_xydata(), np.c_[minutes[1:], [0.2, 0.3]], atol=0.001)
    np.testing.assert_allclose(other.get_ydata(), [0.1, 0.15])
    assert mean.get_color() == thin.get_color() != other.get_color()
    (band,) = figure.axes[0].collections
    assert band.get_paths()[0].vertices[:, 1].max() == pytest.approx(0.6)
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["gamma 0.995 (2 seeds)", "gamma 0.5 (1 run)"]
    assert "lowest to highest" in figure.legends[0].get_title().get_text()


@pytest.mark.parametrize("steps", [(100,), (100, 200)])
def test_the_first_rows_of_a_run(steps: Sequence[int], tmp_path: Path) -> None:
    figure = drawn(make(tmp_path / "a", steps=steps), make(tmp_path / "b", seed=1, steps=(300, 400)))
    _plotting.save(figure, tmp_path / "x.png")
    size(tmp_path / "x.png")


def test_rank_goes_down_upwards(tmp_path: Path) -> None:
    axes = drawn(make(tmp_path / "a", env_id="FreeCell-v0"), figures=["win", "rank"]).axes
    assert [axis.yaxis_inverted() for axis in axes] == [False, True]
    assert axes[0].yaxis.get_major_formatter()(0.5, 0) == "50.0%"


# Errors


def test_puzzles_do_not_mix(tmp_path: Path, capsys: Any) -> None:
    runs = [make(tmp_path / env_id, env_id=env_id) for env_id in PUZZLES]
    (runs[1] / saved.FILE).unlink()
    line = refused(capsys, *runs)
    assert all(env_id in line for env_id in PUZZLES)


@pytest.mark.parametrize("content", [None, b"", b"steps,seconds,score\r\n", b"no log\n"])
def test_what_is_no_run(content: bytes | None, tmp_path: Path, capsys: Any) -> None:
    run = make(tmp_path / "run")
    (run / logs.FILE).unlink()
    if content is not None:
        (run / logs.FILE).write_bytes(content)
    assert str(run) in refused(capsys, run, "--out", tmp_path / "x.png")
    assert not (tmp_path / "x.png").exists()


def test_no_runs_and_a_damaged_one(tmp_path: Path, capsys: Any) -> None:
    assert "at least one" in refused(capsys)
    assert "nowhere" in refused(capsys, tmp_path / "nowhere")
    run = make(tmp_path / "run")
    (run / saved.FILE).write_bytes(b"PK")
    assert str(run) in refused(capsys, run)


def test_an_unknown_figure_lists_the_known(tmp_path: Path, capsys: Any) -> None:
    line = refused(capsys, make(tmp_path / "run"), "--y", "win")
    assert "win" in line
    assert "score, 512, 1024, 2048" in line


@pytest.mark.parametrize(
    ("out", "words"),
    [("x.txt", "png, "), ("x", "png, "), ("no/x.png", "No such file"), ("folder.png", "Is a directory")],
)
def test_where_no_picture_can_be_written(out: str, words: str, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "folder.png").mkdir()
    line = refused(capsys, make(tmp_path / "run"), "--out", tmp_path / out)
    assert str(tmp_path / out) in line
    assert words in line
