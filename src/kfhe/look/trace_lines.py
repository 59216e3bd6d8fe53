"""Which columns of a trace are drawn, what they are called, and how their lines look."""

from typing import NamedTuple

from kfhe.look.palette import BLUE, GREEN, PURPLE, VERMILION


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
