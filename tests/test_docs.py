"""The examples in docstrings and in the README do what they say."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from puzzlegym import wrappers

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def modules():
    """Every module of the package with an example."""
    names = []
    for folder in ("envs", "wrappers", "agents", "scripts"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if ">>> " in path.read_text(encoding="utf-8"):
                parts = ("puzzlegym", *path.relative_to(ROOT).with_suffix("").parts)
                names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return names


def examples(name):
    """The doctests of a module."""
    module = import_module(name)
    return [test for test in doctest.DocTestFinder(exclude_empty=True).find(module, name) if test.examples]


@pytest.mark.parametrize("name", modules())
def test_docstring_examples(name):
    tests = examples(name)
    assert tests
    for test in tests:
        result = doctest.DocTestRunner().run(test, clear_globs=False)
        assert result.attempted
        assert not result.failed, test.name


def test_every_public_wrapper_has_an_example():
    for name in wrappers.__all__:
        assert ">>> " in getattr(wrappers, name).__doc__, name


def test_no_example_is_skipped():
    for name in modules():
        assert not [e for test in examples(name) for e in test.examples if doctest.SKIP in e.options], name


def test_readme_python_blocks(tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
    assert blocks, "the README shows how to use the package from Python"
    for block in blocks:
        command = [sys.executable, "-W", "error", "-c", block]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert result.returncode == 0, f"{block}\n{result.stderr}"
