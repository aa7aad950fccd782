"""Settings for the whole suite."""

from __future__ import annotations

import os
from importlib.util import find_spec

import puzzlegym  # noqa: F401  # first: pytest also sees the root as a package under the folder's name
from hypothesis import HealthCheck, settings

# The same examples on every run; HYPOTHESIS_PROFILE=explore looks for new ones.
_COMMON = {"deadline": None, "database": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("repeatable", derandomize=True, max_examples=150, **_COMMON)
settings.register_profile("explore", max_examples=1000, print_blob=True, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

# Tests with an environment of their own: `make test-ray`, `make test-ecosystem`.
collect_ignore = [folder for folder, package in (("on_ray", "ray"), ("ecosystem", "torchrl")) if not find_spec(package)]
