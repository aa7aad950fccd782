"""Expectimax for 2048 written down as plainly as possible: slow, pure Python, every new tile of every move.

Boards are those of ``reference.game2048``. The worth of a row is the formula of nneonneo's 2048-ai.
"""

from __future__ import annotations

from itertools import groupby, pairwise

from reference.game2048 import DIRECTIONS, LEFT, LINES, UP, empties, move, put

LARGEST_JUDGED = 15  # larger tiles count as 32768


def row_value(row):
    """Empty squares and equal neighbours are good; large tiles, and a row that goes both up and down, are bad."""
    groups = [len(list(group)) for _, group in groupby(tile for tile in row if tile)]
    falls = sum(a**4 - b**4 for a, b in pairwise(row) if a > b)
    rises = sum(b**4 - a**4 for a, b in pairwise(row) if a < b)
    merges = sum(n for n in groups if n > 1)
    return 200_000 + 270 * row.count(0) + 700 * merges - 47 * min(falls, rises) - 11 * sum(t**3.5 for t in row)


def board_value(board):
    """All rows and columns."""
    judged = [min(tile, LARGEST_JUDGED) for tile in board]
    return sum(row_value([judged[square] for square in line]) for way in (LEFT, UP) for line in LINES[way])


def move_values(board, depth):
    """{direction: what it is worth} of the legal moves, looking ``depth`` moves ahead."""
    afters = {way: after for way in DIRECTIONS for after, _, legal in [move(board, way)] if legal}
    return {way: board_value(after) if depth == 1 else expected(after, depth - 1) for way, after in afters.items()}


def expected(board, depth):
    """The mean over every new tile of the best move then; a lost board is worth 0, and no board less."""
    squares = empties(board)
    chances = [(square, tile, chance) for square in squares for tile, chance in ((1, 0.9), (2, 0.1))]
    best = [max([0, *move_values(put(board, square, tile), depth).values()]) for square, tile, _ in chances]
    return sum(chance * value for (_, _, chance), value in zip(chances, best, strict=True)) / len(squares)
