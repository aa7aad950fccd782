"""puzzlegym.agents."""

if __name__ == "agents":
    raise ImportError("import puzzlegym.agents instead: the repository root is the package 'puzzlegym'")
