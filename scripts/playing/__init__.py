"""Playing by hand: keys, the screen's layout, saved games, and one program for each puzzle."""
