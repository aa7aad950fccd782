"""Wrappers for single environments and for native batches."""

if __name__ == "wrappers":
    raise ImportError("import puzzlegym.wrappers instead: the repository root is the package 'puzzlegym'")

from .no_repeat import NoRepeat, NoRepeatVector

__all__ = ["NoRepeat", "NoRepeatVector"]
