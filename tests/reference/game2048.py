"""2048 written down from the rules as plainly as possible: slow, pure Python, sharing nothing with the package.

A board is a tuple of 16 exponents in row-major order, 0 = empty. Directions: 0 up, 1 right, 2 down, 3 left.
"""

from __future__ import annotations

import random

UP, RIGHT, DOWN, LEFT = DIRECTIONS = range(4)
LARGEST = 17  # 131072

# For each direction the four lines of squares, each beginning at the edge that the tiles move to.
_ROWS = [[4 * r + c for c in range(4)] for r in range(4)]
_COLUMNS = [[4 * r + c for r in range(4)] for c in range(4)]
LINES = {
    UP: _COLUMNS,
    RIGHT: [line[::-1] for line in _ROWS],
    DOWN: [line[::-1] for line in _COLUMNS],
    LEFT: _ROWS,
}


def slide(tiles):
    """A line after the slide to its beginning, and the face values that merges made."""
    waiting = [tile for tile in tiles if tile]
    result, made = [], []
    while waiting:
        tile = waiting.pop(0)
        if waiting and waiting[0] == tile:  # the pair nearest the edge; the new tile is done for this move
            waiting.pop(0)
            tile += 1
            made.append(2**tile)
        result.append(tile)
    return result + [0] * (4 - len(result)), made


def move(board, direction):
    """(board before the spawn, points, legal)."""
    after = list(board)
    points = 0
    for line in LINES[direction]:
        slid, made = slide([board[square] for square in line])
        points += sum(made)
        for square, tile in zip(line, slid, strict=True):
            after[square] = tile
    return tuple(after), points, tuple(after) != tuple(board)


def legal(board):
    """For each direction, whether it changes the board."""
    return [move(board, direction)[2] for direction in DIRECTIONS]


def is_over(board):
    """The board is full and no two neighbours are equal."""
    if 0 in board:
        return False
    neighbours = [(i, i + 1) for i in range(16) if i % 4 < 3] + [(i, i + 4) for i in range(12)]
    return all(board[a] != board[b] for a, b in neighbours)


def empties(board):
    """The empty squares."""
    return [square for square in range(16) if board[square] == 0]


def put(board, square, tile):
    """The board with a new tile on an empty square."""
    assert board[square] == 0
    return (*board[:square], tile, *board[square + 1 :])


def spawns(board):
    """Every board that one new tile can make."""
    return [put(board, square, tile) for square in empties(board) for tile in (1, 2)]


def start(rng: random.Random):
    """Two tiles on two random squares."""
    return spawn(spawn((0,) * 16, rng), rng)


def spawn(board, rng: random.Random):
    """One new tile, 2 or 4, on a random empty square."""
    return put(board, rng.choice(empties(board)), 1 if rng.random() < 0.9 else 2)


def play(board, moves, rng: random.Random):
    """The boards on the way of up to ``moves`` random legal moves, the first one included."""
    boards = [tuple(board)]
    for _ in range(moves):
        choices = [d for d in DIRECTIONS if move(boards[-1], d)[2]]
        if not choices:
            break
        boards.append(spawn(move(boards[-1], rng.choice(choices))[0], rng))
    return boards


def leaves(board, depth):
    """Number of different games of ``depth`` moves, new tiles counted apart by square and value."""
    if depth == 0:
        return 1
    afters = [move(board, d)[0] for d in DIRECTIONS if move(board, d)[2]]
    if depth == 1:
        return sum(2 * len(empties(after)) for after in afters)
    return sum(leaves(child, depth - 1) for after in afters for child in spawns(after))


def exponents(faces):
    """Face values (0, 2, 4, … 131072) as exponents."""
    return tuple({0: 0, **{2**e: e for e in range(1, LARGEST + 1)}}[face] for face in faces)
