"""Plain training scripts to read and copy."""
