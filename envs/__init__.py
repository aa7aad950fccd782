"""puzzlegym.envs."""

if __name__ == "envs":
    raise ImportError("import puzzlegym.envs instead: the repository root is the package 'puzzlegym'")
