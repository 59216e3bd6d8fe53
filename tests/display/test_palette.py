"""The colours can be told apart by everybody, on white and on black."""

from itertools import combinations

import numpy as np
import pytest

from kfhe.display.palette import PALETTE

# What people without cones of one kind see, in linear RGB (Machado, Oliveira and Fernandes, 2009)
VISION = {
    "usual": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour):
    shares = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    xyz = TO_XYZ @ rgb / TO_XYZ.sum(axis=1)
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("vision", VISION)
def test_any_two_colours_differ_clearly(vision):
    seen = [lab((VISION[vision] @ linear(colour)).clip(0, 1)) for colour in PALETTE]
    assert min(np.linalg.norm(first - second) for first, second in combinations(seen, 2)) > 15


@pytest.mark.parametrize("background", ["#ffffff", "#000000"])
def test_every_colour_stands_out_from_the_background(background):
    light = [TO_XYZ[1] @ linear(colour) for colour in (background, *PALETTE)]
    for colour in light[1:]:
        low, high = sorted((light[0], colour))
        assert (high + 0.05) / (low + 0.05) > 2.2
