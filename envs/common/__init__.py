"""Leaves that every puzzle may use: compilation, random numbers, cards, terminal text, pictures."""
