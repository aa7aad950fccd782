"""The Gymnasium machinery, written once; it names no puzzle."""
