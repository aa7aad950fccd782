"""Reading a FreeCell game written in the standard notation, with the rules of tests/reference alone.

Columns 1-8, cells a-d, ``h`` home. To an empty column one card goes, or as many as ``v`` says (one digit, a = 10 …
d = 13); onto a card the cards decide. Cells have the letters that the writer gave them.
"""

from __future__ import annotations

from . import freecell


class Reader:
    """Turns written moves into (card, destination), keeping the cells' letters from move to move."""

    def __init__(self, position):
        self.letters = {letter: one for letter, one in zip("abcd", position.cells, strict=True) if one is not None}

    def read(self, position, text):
        """(card, destination) of a written move; None if the writing itself is against the rules."""
        self.letters = {letter: one for letter, one in self.letters.items() if one in position.cells}
        source, target, count = text[0], text[1], text[3:]
        if source in "abcd":
            cards = [self.letters[source]] if source in self.letters else []
        else:
            cards = list(position.columns[int(source) - 1]) if source in "12345678" else []
        if not cards or target in self.letters:
            return None
        if target in "abcd":
            self.letters[target] = cards[-1]
            return cards[-1], freecell.CELL
        if target == "h":
            return cards[-1], freecell.HOME
        column = position.columns[int(target) - 1]
        if not column:
            return cards[-int(count or "1", 16)], int(target) - 1
        for i, one in enumerate(cards):
            if freecell.fits(one, column[-1]) and freecell.is_run(cards[i:]):
                return one, int(target) - 1
        return None
