"""The colours of all charts, and the lines of a trace.

The seven colours can be told apart with any kind of colour vision. They are those of Okabe and Ito, with grey
instead of black and without yellow, so that each is visible on white and on black. Charts with more than
seven lines also use markers or dashes.
"""

from typing import NamedTuple

BLUE, VERMILION, GREEN, PURPLE, SKY, ORANGE, GREY = PALETTE = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#e69f00",
    "#6b7076",
)


class TraceLine(NamedTuple):
    """A column of the trace as a line in charts."""

    column: str
    label: str
    symbol: str  # for charts with little room
    colour: str
    dashes: str  # in matplotlib's notation


# Dashes, because P and K are often close together, and so are the errors.
TRACE_LINES = (
    TraceLine("measurement_error", "measurement error R", "R", BLUE, "-"),
    TraceLine("posterior_variance", "variance P", "P", VERMILION, "-"),
    TraceLine("gain", "gain K", "K", GREEN, "--"),
    TraceLine("training_error", "training error", "training error", PURPLE, "-."),
)
