"""Notebooks: scikit-learn's diagram of a model, with the trace below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.display.palette import TRACE_LINES
from kfhe.display.text import counted
from kfhe.trace import Trace

WIDTH, HEIGHT, MARGIN = 150, 36, 3  # of a sparkline, in pixels
MOST_POINTS = 300


class NotebookMixin:
    """Adds the trace of a fitted model to scikit-learn's diagram."""

    classes_: Any
    trace_: Trace
    estimators_: Any

    def _repr_html_inner(self) -> str:
        html: str = super()._repr_html_inner()  # type: ignore[misc]
        return html + self._trace_html()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:  # not with scikit-learn's set_config(display="text")
            bundle["text/html"] += self._trace_html()
        return bundle

    def _trace_html(self) -> str:
        if not hasattr(self, "trace_"):
            return ""
        favours = getattr(self.estimators_, "prior_power", 0.0) > 0
        facts = ("predict favours rare classes (decision='likeliest' doesn't)",) if favours else ()
        return trace_html(self.trace_, len(self.classes_), facts)


def trace_html(trace: Trace, n_classes: int, more: Sequence[str] = ()) -> str:
    """Return a trace as self-contained HTML: facts, and sparklines for R, P, K and training error.

    Parameters
    ----------
    trace : Trace
        The trace.
    n_classes : int
        Number of classes.
    more : sequence of str
        Further facts.

    Returns
    -------
    str
        A `div`. Text inherits its colour, so it is readable on any background.

    Examples
    --------
    >>> from kfhe.display.notebook import trace_html
    >>> from kfhe.trace import Trace
    >>> "no components after the initial one" in trace_html(Trace(), 1)
    True
    """
    facts = [
        counted(len(trace) or "no", "component") + " after the initial one",
        counted(n_classes, "class"),
    ]
    facts += more
    lines = ""
    if len(trace):
        facts += [
            f"training error {trace['training_error'][-1]:.3g}",
            f"final variance P {trace['posterior_variance'][-1]:.3g}",
        ]
        lines = "".join(_line(line.label, trace[line.column], line.colour) for line in TRACE_LINES)
    return (
        '<div class="kfhe-trace" style="font: 12px/1.4 system-ui, sans-serif; margin: 8px 2px">'
        f"<div>{' · '.join(facts)}</div>"
        f'<div style="display: flex; flex-wrap: wrap; gap: 6px 20px; margin-top: 6px">{lines}</div>'
        "</div>"
    )


def _line(label: str, values: NDArray[np.float64], colour: str) -> str:
    """Return a sparkline of one column, from 0 to its largest value."""
    shown = values[np.linspace(0, len(values) - 1, min(len(values), MOST_POINTS)).astype(int)]
    x = np.linspace(MARGIN, WIDTH - MARGIN, len(shown))
    y = HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * shown / (values.max() or 1.0)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    first_to_last = f"{values[0]:.3g}" + (f" → {values[-1]:.3g}" if len(values) > 1 else "")
    return (
        f'<div style="width: {WIDTH}px">'
        f"<div>{label}</div>"
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{label} by iteration: {first_to_last}" style="display: block">'
        f'<path d="M0,{HEIGHT - MARGIN}H{WIDTH}" stroke="currentColor" stroke-opacity="0.3"/>'
        f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5" '
        'stroke-linejoin="round"/>'
        f'<circle cx="{x[-1]:.1f}" cy="{y[-1]:.1f}" r="2.5" fill="{colour}"/>'
        "</svg>"
        f'<div style="font-variant-numeric: tabular-nums; opacity: 0.8">{first_to_last}</div>'
        "</div>"
    )
