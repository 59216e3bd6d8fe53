"""The colours of all charts, and the lines of a trace.

There are seven colours that people with any kind of colour vision can tell apart. They are those of Okabe and
Ito, with a grey for their black and without their yellow, so that each can be seen on white and on black.
What needs more than seven kinds of lines gives them markers or dashes as well.
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
    """A column of the trace as a line of a chart."""

    column: str
    label: str
    symbol: str  # where there is little room
    colour: str
    dashes: str  # as matplotlib writes them


# P and K are near each other, and so are the errors at times: dashes tell them apart.
TRACE_LINES = (
    TraceLine("measurement_error", "measurement error R", "R", BLUE, "-"),
    TraceLine("posterior_variance", "variance P", "P", VERMILION, "-"),
    TraceLine("gain", "gain K", "K", GREEN, "--"),
    TraceLine("training_error", "training error", "training error", PURPLE, "-."),
)
