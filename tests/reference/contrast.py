"""Contrast of two colours by WCAG 2, from 1 (the same) to 21 (black and white)."""

from __future__ import annotations

import numpy as np
from PIL import ImageColor


def luminance(colour):
    """Relative luminance, 0 to 1."""
    shares = np.array(ImageColor.getrgb(colour)) / 255
    linear = np.where(shares <= 0.03928, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def contrast(one, other):
    """How well one colour can be read on the other: 3 is enough for large text, 4.5 for any."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)
