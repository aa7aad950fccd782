"""Many deals solved: answers that are checked, in standard notation, and do not depend on the processes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from puzzlegym.agents import solving
from puzzlegym.agents.solver import SOLVED, UNDECIDED, UNWINNABLE, Solution, Solver
from puzzlegym.agents.solving import Answer, Limits, as_solved, solve_board, solve_deals
from puzzlegym.envs.freecell import Game, State, board_from, deal_board, is_won

DEALS = range(11_960, 11_990)


@pytest.fixture(scope="module")
def answers() -> list[Answer]:
    return list(solve_deals(DEALS, Limits()))


def timeless(answers: list[Answer]) -> list[Answer]:
    return [replace(answer, seconds=0.0) for answer in answers]


def test_every_deal_has_its_answer_in_order(answers: list[Answer]) -> None:
    assert [answer.deal for answer in answers] == list(DEALS)
    assert [answer.deal for answer in answers if answer.result != SOLVED] == [11_982]
    lost = answers[22]
    assert (lost.result, lost.moves, lost.limit) == (UNWINNABLE, (), "")
    assert all(answer.positions > 0 and answer.seconds > 0 for answer in answers)


def test_lines_are_games(answers: list[Answer]) -> None:
    for answer in answers:
        if answer.moves:
            assert answer.deal
            *_, last = Game.parse(str(Game.of_deal(answer.deal, answer.moves))).replay()
            assert is_won(last.board)


def test_notation_is_that_of_games(answers: list[Answer]) -> None:
    solver, runs = Solver(), 0
    for answer in answers:
        board = deal_board(answer.deal)
        moves = Game.of_actions(State(board.tobytes()), solver.solve(board).actions).moves
        assert answer.moves == moves
        runs += sum("v" in move for move in moves)
    assert runs > 5


def test_the_number_of_processes_makes_no_difference(answers: list[Answer], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solving, "_ALONE", 0.0)
    assert timeless(list(solve_deals(DEALS, Limits(), jobs=2))) == timeless(answers)


def test_others_are_not_started_for_a_moment_of_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(solving._Desk, "answer", lambda _self, _setting, deal: Answer(deal, SOLVED))
    monkeypatch.setattr("puzzlegym.agents.workers._Team.start", refuse)
    assert len(list(as_solved(range(1, 100), Limits(), jobs=8))) == 99


def test_work_can_be_spread_in_another_way(answers: list[Answer]) -> None:
    asked: list[int] = []

    def backwards(work: Any, items: Any, total: int, least: int = 1) -> Any:
        asked.append(total)
        yield from work(list(reversed(items)))

    assert timeless(list(solve_deals(DEALS, Limits(), spread_by=backwards))) == timeless(answers)
    assert asked == [len(DEALS)]


def test_answers_come_in_order_whatever_is_done_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def backwards(deals: range, *_: object) -> Any:
        yield from (Answer(deal, SOLVED) for deal in reversed(deals))

    monkeypatch.setattr(solving, "as_solved", backwards)
    assert [answer.deal for answer in solve_deals(range(5, 9), Limits())] == [5, 6, 7, 8]


def test_other_positions() -> None:
    answer = solve_board(State(deal_board(617).tobytes()), Limits())
    assert answer.deal is None
    assert answer.moves == next(solve_deals([617], Limits())).moves
    won = solve_board(board_from([""] * 8, (), dict.fromkeys("CDHS", 13)), Limits())
    assert (won.result, won.moves, won.positions) == (SOLVED, (), 0)
    with pytest.raises(ValueError, match="missing"):
        solve_board({"cols": ["KC"] * 8, "cells": [], "home": {}}, Limits())


def test_limits_are_kept() -> None:
    (answer,) = solve_deals([517_776], Limits(megabytes=3))
    assert (answer.result, answer.moves, answer.limit) == (UNDECIDED, (), "memory (3 MB)")
    (answer,) = solve_deals([517_776], Limits(seconds=1e-6))
    assert answer.limit == "time (1e-06 s)"
    quick, short = (next(solve_deals([1], Limits(short=short))) for short in (False, True))
    assert len(short.moves) < len(quick.moves)
    for wrong in ({"seconds": 0.0}, {"megabytes": 0}):
        with pytest.raises(ValueError, match="must be"):
            Limits(**wrong)


@pytest.mark.parametrize("change", ["illegal", "unfinished"])
def test_a_wrong_line_does_not_get_out(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    actions = Solver().solve(deal_board(1)).actions
    wrong = actions[1:] if change == "illegal" else actions[:-1]
    monkeypatch.setattr(Solver, "solve", lambda *_: Solution(SOLVED, wrong))
    with pytest.raises(AssertionError, match="refuses the solver's line"):
        list(solve_deals([1], Limits()))


def test_answers_as_json() -> None:
    answer = Answer(5, SOLVED, ("3a", "26v4"), 17, 0.0123456789)
    text = '{"deal": 5, "result": "solved", "moves": ["3a", "26v4"], "positions": 17, "seconds": 0.012346}'
    assert answer.to_json() == text
    assert Answer.from_json(text) == replace(answer, seconds=0.012346)
    assert answer.untimed().to_json() == text.replace(', "seconds": 0.012346', "")
    assert Answer.from_json(answer.untimed().to_json()) == answer.untimed()
    undecided = Answer(None, UNDECIDED, (), 9, 1.5, "time (1 s)")
    assert json.loads(undecided.to_json()) == {
        "deal": None,
        "result": "undecided",
        "moves": [],
        "positions": 9,
        "seconds": 1.5,
        "limit": "time (1 s)",
    }
    assert Answer.from_json(undecided.to_json()) == undecided


@pytest.mark.parametrize(
    "text",
    ["", "{", "5", "[]", "null", "{}", '{"deal": 5}', '{"deal": 5, "result": "solved", "moves": []}'],
)
def test_json_of_something_else(text: str) -> None:
    with pytest.raises(ValueError, match="not the line of an answer"):
        Answer.from_json(text)


def test_json_of_an_unknown_result() -> None:
    with pytest.raises(ValueError, match="not the line of an answer"):
        Answer.from_json(Answer(5, "perhaps").to_json())
