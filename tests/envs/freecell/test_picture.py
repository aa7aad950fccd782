"""What a picture of FreeCell must show to be read: every card, told by more than its colour, and every empty place."""

from __future__ import annotations

from itertools import combinations

import gymnasium as gym
import numpy as np
import pytest
from PIL import ImageColor
from puzzlegym.envs.common.cards import CARDS, RANKS, SUITS, card_name
from puzzlegym.envs.freecell import picture
from puzzlegym.envs.freecell.state import COLUMNS, DEPTH
from reference.contrast import contrast

NAMES = [card_name(card) for card in range(CARDS)]
# Two columns of 19 cards, one of 10, full cells; and a table with but one card left.
LONGEST = {
    "cols": [NAMES[:19], [], [], NAMES[38:48], [], [], [], NAMES[19:38]],
    "cells": NAMES[48:],
    "home": dict.fromkeys(SUITS, 0),
}
EMPTY = {"cols": [[]] * COLUMNS, "cells": ["KS"], "home": {"C": 13, "D": 13, "H": 13, "S": 12}}


def drawn(board):
    env = gym.make("FreeCell-v0", render_mode="rgb_array")
    env.reset(seed=0, options={"board": board})
    return env.render()


def place(image, column, top):
    """What is seen where a card may lie."""
    left = picture.column_left(column)
    return image[top : top + picture.CARD_HEIGHT, left : left + picture.CARD_WIDTH]


def lies(image, name, column, top):
    """Is the whole card seen there?"""
    card = np.array(picture.card_image(NAMES.index(name)))
    solid = card[..., 3] == 255
    return np.array_equal(place(image, column, top)[solid], card[solid][:, :3])


def ink(card):
    """Where a card is printed, in the strip that is seen of it in the longest column (bool)."""
    fall = picture.card_tops(DEPTH)[1] - picture.FIRST
    return np.array(picture.card_image(card).convert("L"))[1:fall, 1:-1] < 140


def test_cards_differ_where_others_lie_on_them():
    strips = [ink(card) for card in range(CARDS)]
    assert len({strip.tobytes() for strip in strips}) == CARDS
    for rank in range(len(RANKS)):
        for one, other in combinations(strips[4 * rank : 4 * rank + 4], 2):
            assert np.sum(one != other) >= 20, "suits differ by more than their colour"


def test_ink_can_be_read():
    for ink_colour in (picture.RED_INK, picture.BLACK_INK, picture.FELT):
        assert contrast(picture.PAPER, ink_colour) >= 4.5
    assert contrast(picture.SLOT, picture.FAINT) >= 3


def test_longest_columns_fit():
    image, empty = drawn(LONGEST), drawn(EMPTY)
    last = picture.card_tops(DEPTH)[-1]
    assert lies(image, NAMES[18], 0, last)
    assert lies(image, NAMES[37], 7, last)
    assert lies(image, NAMES[47], 3, picture.card_tops(10)[-1])
    below = slice(picture.STATUS, None)
    for edge in (np.s_[-4:, :], np.s_[below, :4], np.s_[below, -4:]):
        assert np.array_equal(image[edge], empty[edge]), "nothing is drawn beyond the edges"


@pytest.mark.parametrize("cards", range(1, DEPTH + 1))
def test_cards_of_a_column_leave_each_other_room(cards):
    tops = picture.card_tops(cards)
    assert len(tops) == cards
    assert tops[-1] + picture.CARD_HEIGHT <= picture.HEIGHT - 4
    assert all(step >= 18 for step in np.diff(tops))


def test_empty_places_are_seen():
    """Cells, foundations (each with its suit) and columns."""
    image = drawn(EMPTY)
    assert lies(image, "KS", 0, picture.TOP)
    assert [lies(image, name, 4 + i, picture.TOP) for i, name in enumerate(("KC", "KD", "KH", "QS"))] == [True] * 4
    start = gym.make("FreeCell-v0", deal=1, render_mode="rgb_array")
    start.reset()
    slots = [place(start.render(), column, picture.TOP) for column in range(COLUMNS)]
    assert len({slot.tobytes() for slot in slots}) == COLUMNS
    slots += [place(image, column, picture.FIRST) for column in range(COLUMNS)]
    assert all(np.all(slot[10:-10, 0] == ImageColor.getrgb(picture.FAINT)) for slot in slots)


def test_status_shows_the_largest_numbers_within_the_picture():
    env = gym.make("FreeCell-v0", deal=2**31 - 1).unwrapped
    env.reset(seed=0)
    state = env.get_state()
    env.set_state(type(state)(state.board, deal=2**63 - 1, moves=2**63 - 1))
    status = env.render_as("rgb_array")[: picture.STATUS]
    strip = ImageColor.getrgb(picture.STRIP)
    third = picture.WIDTH // 3
    assert np.all(status[:, [0, 1, third - 1, third, 2 * third, -2, -1]] == strip)
    assert np.any(status[:, :third] != strip)


@pytest.mark.parametrize("card", [8, 9, 10, 11])
def test_the_large_sign_of_a_card_is_that_of_its_suit(card):
    lower = np.array(picture.card_image(card).convert("L"))[24:-3, 3:-3] < 140
    differences = []
    for suit in range(4):
        sketch = picture.Sketch(picture.CARD_WIDTH, picture.CARD_HEIGHT, "#ffffff")
        sketch.suit(suit, (picture.CARD_WIDTH / 2, 43), 28, "#000000")
        differences.append(np.sum((np.array(sketch.finished().convert("L"))[24:-3, 3:-3] < 140) != lower))
    assert int(np.argmin(differences)) == card % 4
