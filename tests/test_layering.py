"""The house: imports go one way, puzzles know nothing of each other, and importing the package does no work."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("envs", "wrappers", "agents", "scripts")
PUZZLES = sorted(path.parent.name for path in (ROOT / "envs").glob("*/rules.py"))

# A module may import from its own step and from those before it.
STEPS = [
    ("common",),
    ("state", "actions"),
    ("rules",),
    ("deals", "estimate", "observation", "rendering", "picture", "planning", "refusal", "notation", "games"),
    ("base",),  # for the environments alone, see below
    ("env",),
    ("puzzle", "registry"),
    ("front",),  # puzzlegym itself
    ("wrappers",),
    ("agents",),
    ("scripts",),
]
STEP = {layer: i for i, layers in enumerate(STEPS) for layer in layers}
# What builds on the Gymnasium machinery; everything else in a puzzle can be used without it.
ON_BASE = {"base", "env", "puzzle", "wrappers", "agents", "scripts"}
WITHOUT_GYMNASIUM = {
    "common",
    "state",
    "actions",
    "rules",
    "deals",
    "estimate",
    "rendering",
    "picture",
    "planning",
    "refusal",
    "notation",
    "games",
}
LEARNING = {"torch", "stable_baselines3", "sb3_contrib", "ray", "optuna", "minari"}


def sources():
    """(module name, path) of everything that is installed."""
    paths = [ROOT / "__init__.py", *(path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))]
    for path in paths:
        parts = ["puzzlegym", *path.relative_to(ROOT).with_suffix("").parts]
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


MODULES = dict(sources())
INTERNAL = {module: path for module, path in MODULES.items() if not module.startswith("puzzlegym.scripts.examples")}


def imports(module, path):
    """Every module that ``path`` imports, at the top or inside a function, by its absolute name."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                yield whole if whole in MODULES else base


def layer(module):
    """(layer, puzzle or None) of a module of the package."""
    parts = module.split(".")[1:]
    if not parts or parts == ["envs"]:
        return "front" if not parts else "registry", None
    if parts[0] != "envs":
        return parts[0], None
    if parts[1] not in PUZZLES:
        return parts[1], None
    return (parts[2] if len(parts) > 2 else "puzzle"), parts[1]


def fault(importer, imported):
    """Why one module of the package may not import another, or None."""
    (here, mine), (there, other) = layer(importer), layer(imported)
    if here not in STEP:
        return f"{importer}: no place in the order of imports"
    if STEP[there] > STEP[here]:
        return f"{importer} ({here}) imports {imported} ({there})"
    if mine and other and mine != other:
        return f"{importer}: a puzzle imports another, {imported}"
    if here == "base" and other:
        return f"{importer}: the machinery imports a puzzle, {imported}"
    if there == "base" and here not in ON_BASE:
        return f"{importer} ({here}) imports the machinery {imported}"
    return None


def test_arrows():
    edges = [
        (module, name)
        for module, path in MODULES.items()
        for name in imports(module, path)
        if name.partition(".")[0] == "puzzlegym"
    ]
    assert len(edges) > 80
    faults = [text for edge in edges if (text := fault(*edge))]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("envs.common.rng", "envs.freecell.state"),
        ("envs.freecell.state", "envs.freecell.rules"),
        ("envs.freecell.rules", "envs.freecell.planning"),
        ("envs.freecell.planning", "envs.freecell.env"),
        ("envs.freecell.rules", "envs.base.batch"),
        ("envs.freecell.env", "envs.puzzle2048.state"),
        ("envs.freecell.rules", "envs.freecell"),
        ("envs.base.env", "envs.freecell.state"),
        ("envs.base.batch", "wrappers.mask"),
        ("envs.freecell.env", "wrappers"),
        ("wrappers.mask", "agents.policy"),
        ("agents.policy", "scripts.cli"),
        ("envs.freecell.utils", "envs.common.rng"),
    ],
)
def test_arrows_the_other_way_would_be_found(importer, imported):
    assert fault(f"puzzlegym.{importer}", f"puzzlegym.{imported}")


@pytest.mark.parametrize("puzzle", PUZZLES)
def test_puzzles_have_the_same_files(puzzle):
    names = {path.stem for path in (ROOT / "envs" / puzzle).glob("*.py")}
    assert {"__init__", "state", "actions", "rules", "observation", "rendering", "env", "planning"} <= names


def test_imports_within_the_package_are_relative():
    """The examples alone are written as a user would write them."""
    for module, path in INTERNAL.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
        names += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level]
        assert not [name for name in names if name.partition(".")[0] in ("puzzlegym", *FOLDERS)], module


def test_only_agents_import_learning_libraries():
    users = {
        module for module, path in INTERNAL.items() for name in imports(module, path) if name.split(".")[0] in LEARNING
    }
    assert users
    assert all(module.startswith("puzzlegym.agents.") for module in users), users


def test_rules_and_planning_need_no_gymnasium():
    for module, path in MODULES.items():
        if layer(module)[0] in WITHOUT_GYMNASIUM:
            assert "gymnasium" not in {name.split(".")[0] for name in imports(module, path)}, module


def test_machinery_names_no_puzzle():
    """Its code, that is; a comment may give an example."""
    words = re.compile("|".join([*PUZZLES, "2048", "card", "suit"]), re.IGNORECASE)
    for path in (ROOT / "envs" / "base").glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert not [name for name in names if words.search(name)], path.name


def python(code, cwd, *options):
    """Run code in a fresh interpreter, with warnings as errors."""
    command = [sys.executable, "-W", "error", *options, "-c", code]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


def test_import_loads_and_compiles_nothing(tmp_path):
    heavy = ("numba", "torch", "matplotlib", "PIL", "scipy", "stable_baselines3", "sb3_contrib", "tyro", "rich")
    code = f"""
import sys, gymnasium, puzzlegym
print([name for name in {heavy} if name in sys.modules])
print(sorted(name for name in sys.modules if name.startswith("puzzlegym")))
print([name for name in puzzlegym.PUZZLES if name in gymnasium.registry])
"""
    result = python(code, tmp_path)
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        "[]",
        "['puzzlegym', 'puzzlegym.envs', 'puzzlegym.envs.registry']",
        "['Puzzle2048-v0', 'FreeCell-v0']",
    ]


def test_environments_and_wrappers_load_no_learning_library(tmp_path):
    code = """
import sys, gymnasium, puzzlegym, puzzlegym.wrappers
for name in puzzlegym.PUZZLES:
    gymnasium.make(name); gymnasium.make_vec(name, num_envs=2)
print([name for name in ("torch", "matplotlib", "PIL", "stable_baselines3", "sb3_contrib") if name in sys.modules])
"""
    result = python(code, tmp_path)
    assert result.stdout == "[]\n", result.stderr


@pytest.mark.parametrize("folder", ["envs", "wrappers", "agents"])
def test_bare_import_of_a_folder_is_refused(folder):
    result = python(f"import {folder}", ROOT)
    assert result.returncode == 1
    assert f"import puzzlegym.{folder} instead" in result.stderr.splitlines()[-1]


def test_module_id_form_needs_no_import(tmp_path):
    code = "import gymnasium; print(gymnasium.make('puzzlegym:Puzzle2048-v0').reset(seed=0)[0].shape)"
    result = python(code, tmp_path)
    assert result.stdout == "(4, 4)\n", result.stderr
