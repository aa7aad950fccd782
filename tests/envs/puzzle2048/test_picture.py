"""What a picture of 2048 must show to be read: every tile up to 131072, empty squares, any score."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from PIL import ImageColor
from puzzlegym.envs.puzzle2048 import picture
from puzzlegym.envs.puzzle2048.state import MAX_EXPONENT
from reference.contrast import contrast

ID = "Puzzle2048-v0"


def square_of(exponent):
    """The first square of a board with ``exponent`` on it."""
    env = gym.make(ID, render_mode="rgb_array")
    env.reset(seed=0, options={"board": [exponent, 1, *[0] * 14]})
    left, top, right, bottom = picture.square_box(0)
    return env.render()[top:bottom, left:right]


def test_every_exponent_has_a_tile_of_its_own():
    assert len(picture.COLOURS) == MAX_EXPONENT + 1
    squares = [square_of(exponent) for exponent in range(MAX_EXPONENT + 1)]
    assert len({square[6, 6].tobytes() for square in squares}) == len(squares), "no two of one colour"
    for square, (colour, _) in zip(squares, picture.COLOURS, strict=True):
        assert np.all(square[6:-6, [4, 5, -6, -5]] == ImageColor.getrgb(colour)), "the number fits into its tile"
    empty, *tiles = (np.ptp(square[6:-6, 6:-6], axis=(0, 1)).max() for square in squares)
    assert empty == 0
    assert min(tiles) > 80, "every number stands out"


def test_squares_lie_apart_within_the_picture():
    taken = np.zeros((picture.HEIGHT, picture.WIDTH), dtype=int)
    for square in range(16):
        left, top, right, bottom = picture.square_box(square)
        taken[top:bottom, left:right] += 1
    assert taken.sum() == 16 * picture.TILE**2
    assert taken.max() == 1


@pytest.mark.parametrize("exponent", range(1, MAX_EXPONENT + 1))
def test_numbers_can_be_read(exponent):
    tile, number = picture.COLOURS[exponent]
    assert contrast(tile, number) >= 3
    assert contrast(picture.PANEL, "#ffffff") >= 3


@pytest.mark.parametrize("score", [0, 7, 3_932_100, 2**63 - 1])
def test_any_score_fits_into_its_box(score):
    env = gym.make(ID).unwrapped
    env.reset(seed=0)
    state = env.get_state()
    env.set_state(type(state)(state.board, score=score))
    left, top, right, bottom = picture.SCORE_BOX
    image = env.render_as("rgb_array")
    panel = ImageColor.getrgb(picture.PANEL)
    assert np.all(image[top:bottom, [left - 1, left, right - 1, right]] == panel)
    assert np.all(image[[top, bottom - 1], left:right] == panel)
    assert np.all(image[top:bottom, left:right] > 200, axis=-1).sum() > 10, "the number is there"


def test_tiles_lie_where_they_lie_on_the_board():
    """Told by the pixels alone: rows downwards, columns to the right."""
    env = gym.make(ID, render_mode="rgb_array")
    for row, column in [(0, 0), (0, 3), (3, 0), (2, 1)]:
        board = np.zeros((4, 4), dtype=np.uint8)
        board[row, column] = MAX_EXPONENT
        env.reset(seed=0, options={"board": board})
        ys, xs = np.nonzero((env.render() == ImageColor.getrgb(picture.COLOURS[MAX_EXPONENT][0])).all(axis=2))
        assert (int(xs.mean() / 100), int((ys.mean() - 64) / 100)) == (column, row)
