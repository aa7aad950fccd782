"""Players, learners and their evaluation: the only place that may import torch or stable-baselines3."""

import os

if __name__ == "agents":
    raise ImportError("import puzzlegym.agents instead: the repository root is the package 'puzzlegym'")

# torch's threads spin while they wait for each other. On a machine that does anything else, they then stall for whole
# time slices: 2k steps/s where 50k are possible. It must be set before torch is loaded; the user's own setting stands.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("GOMP_SPINCOUNT", "1000")  # some microseconds: a fifth more steps than with none
