"""What ``puzzlegym bench`` measures; see ``scripts.bench`` for the command."""
