"""Configurations in files: what is read is what was written, and one line says what is wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from puzzlegym.agents import config_file
from puzzlegym.agents.configs import CLONE_CONFIGS, PPO_CONFIGS, clone_config, ppo_config
from puzzlegym.agents.runs import Budget

ID, CARDS = "Puzzle2048-v0", "FreeCell-v0"
ALL = [(env_id, name) for env_id, known in PPO_CONFIGS.items() for name in known]


def written(folder: Path, data: Any) -> str:
    path = folder / "config.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return str(path)


def plain(config: Any) -> Any:
    """Without the difference between a tuple and a list."""
    return json.loads(json.dumps(config.as_dict()))


@pytest.mark.parametrize(("env_id", "name"), ALL)
def test_a_whole_configuration_is_read_as_it_was(env_id: str, name: str, tmp_path: Path) -> None:
    config = ppo_config(env_id, name)
    read = ppo_config(env_id, written(tmp_path, config.as_dict()))
    assert plain(read) == plain(config)
    assert (read.wrappers, read.backward, read.curriculum) == (config.wrappers, config.backward, config.curriculum)


@pytest.mark.parametrize(("env_id", "name"), ALL)
def test_a_file_says_only_what_differs(env_id: str, name: str, tmp_path: Path) -> None:
    config = replace(ppo_config(env_id, name), learning_rate=1.5e-3, n_epochs=5)
    data = config_file.differences(config, PPO_CONFIGS[env_id])
    assert data == {"env_id": env_id, "base": name, "learning_rate": 1.5e-3, "n_epochs": 5}
    assert ppo_config(env_id, written(tmp_path, data)) == config


def test_the_base_is_the_usual_one_where_the_file_names_none(tmp_path: Path) -> None:
    path = written(tmp_path, {"env_id": ID, "n_steps": 32})
    assert ppo_config(ID, path) == replace(ppo_config(ID), n_steps=32)
    assert ppo_config(ID, path, Budget(seconds=120)).minutes == 2.0
    named = written(tmp_path, {"env_id": ID, "base": "60min"})
    assert ppo_config(ID, named, Budget(seconds=120)).minutes == 60.0


def test_fields_have_the_types_of_the_configuration(tmp_path: Path) -> None:
    """A whole number will do for one with a fraction; lists become tuples, objects dataclasses."""
    fields = {
        "gamma": 1,
        "play_wrappers": ["no_repeat"],
        "backward": {"window": 30},
        "network_arguments": {"hidden": [8]},
    }
    config = ppo_config(CARDS, written(tmp_path, {"env_id": CARDS, **fields}))
    assert isinstance(config.gamma, float)
    assert config.play_wrappers == ("no_repeat",)
    assert config.backward == replace(ppo_config(CARDS).backward, window=30)  # type: ignore[type-var]
    assert config.network_arguments == {"hidden": [8]}
    assert ppo_config(CARDS, written(tmp_path, {"env_id": CARDS, "backward": None})).backward is None


def test_a_clone_is_configured_by_a_file(tmp_path: Path) -> None:
    path = written(tmp_path, {"env_id": CARDS, "base": "lines", "pool": 1000})
    assert clone_config(path) == replace(CLONE_CONFIGS["lines"], pool=1000)
    with pytest.raises(ValueError, match="unknown field 'n_epochs'"):
        clone_config(written(tmp_path, {"env_id": CARDS, "n_epochs": 1}))


def test_a_name_goes_before_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "2min").write_text("no configuration", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert ppo_config(ID, "2min").minutes == 2.0
    with pytest.raises(ValueError, match="is no JSON"):
        ppo_config(ID, "./2min")


@pytest.mark.parametrize("name", ["", "3min", "nowhere/at/all.json"])
def test_neither_a_name_nor_a_file(name: str) -> None:
    with pytest.raises(
        ValueError, match=r"unknown configuration .* for Puzzle2048-v0: use 10min, 2min, .* or a JSON file"
    ):
        ppo_config(ID, name)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("{", "is no JSON"),
        ("\x00", "is no JSON"),
        ("[]", "must be an object"),
        ("{}", '"env_id": "Puzzle2048-v0"'),
        ({"env_id": CARDS}, "is for FreeCell-v0, not for Puzzle2048-v0"),
        ({"base": "x"}, "unknown base 'x': use 10min, 2min"),
        ({"base": ["10min"]}, "unknown base"),
        ({"lr": 1}, "unknown field 'lr': use env_id, network"),
        ({"learning_rate": "fast"}, 'learning_rate must be a number, not "fast"'),
        ({"learning_rate": 0}, "learning_rate must be above 0, not 0"),
        ({"learning_rate": None}, "learning_rate must be a number, not null"),
        ('{"env_id": "Puzzle2048-v0", "vf_coef": NaN}', "vf_coef must be 0 or more, not nan"),
        ({"gamma": 1.5}, "gamma must be from 0 to 1, not 1.5"),
        ({"n_steps": 1}, "n_steps must be 2 or more, not 1"),
        ({"n_steps": 64.5}, "n_steps must be a whole number, not 64.5"),
        ({"n_epochs": True}, "n_epochs must be a whole number, not true"),
        ({"sample": 1}, "sample must be true or false, not 1"),
        ({"teacher": 5}, "teacher must be text or null, not 5"),
        ({"wrappers": "shaped_2048"}, "wrappers must be a list of names"),
        ({"wrappers": ["shaped"]}, "unknown wrapper 'shaped': use no_repeat"),
        ({"network": "resnet"}, "unknown network 'resnet': use one_hot_mlp"),
        ({"network_arguments": {"depth": 3}}, "unexpected keyword argument 'depth'"),
        ({"network_arguments": 3}, "network_arguments must be an object, not 3"),
        ({"env_arguments": {"size": 5}}, "unexpected keyword argument 'size'"),
        ({"env_arguments": {"prob_four": 3}}, "prob_four must be a number from 0 to 1, not 3"),
        ({"curriculum": {"threshold": "high"}}, "curriculum.threshold must be a number"),
        ({"curriculum": {"speed": 1}}, "unknown field 'curriculum.speed': use first"),
        ({"curriculum": {"window": 0}}, "curriculum.window must be 1 or more"),
    ],
)
def test_anything_else_is_refused_in_a_line(data: Any, words: str, tmp_path: Path) -> None:
    path = written(tmp_path, {"env_id": ID, **data} if isinstance(data, dict) else data)
    with pytest.raises(ValueError) as caught:  # noqa: PT011  (the words are looked for below)
        ppo_config(ID, path)
    assert words in str(caught.value)
    assert str(caught.value).startswith(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("arguments", [{}, {"deal_range": [1, 40_000]}, {"deal": 617}, {"start_rank": 3}])
def test_test_deals_are_not_learned_from(arguments: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nobody learns from test deals"):
        ppo_config(CARDS, written(tmp_path, {"env_id": CARDS, "env_arguments": arguments}))


def test_every_limit_is_one_of_a_field() -> None:
    """And the bundled configurations keep to them (they are read above)."""
    names = {
        name for known in (*PPO_CONFIGS.values(), CLONE_CONFIGS) for config in known.values() for name in vars(config)
    }
    parts = {
        name
        for config in PPO_CONFIGS[CARDS].values()
        for part in (config.backward, config.curriculum)
        if part
        for name in vars(part)
    }
    assert set(config_file.LIMITS) <= names | parts
