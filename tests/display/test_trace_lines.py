"""The lines of a trace are the same wherever they are drawn."""

from kfhe import KFHEClassifier
from kfhe.display.notebook import trace_html
from kfhe.display.palette import TRACE_LINES
from kfhe.plotting import TraceDisplay
from kfhe.trace import Trace


def test_what_is_drawn_of_a_trace_is_in_it():
    assert {line.column for line in TRACE_LINES} <= set(Trace().columns)


def test_lines_can_be_told_apart_by_colour_and_by_name():
    assert len({line.colour for line in TRACE_LINES}) == len({line.label for line in TRACE_LINES}) == 4


def test_picture_and_notebook_draw_these_lines(iris):
    model = KFHEClassifier(n_estimators=3, random_state=0).fit(*iris)
    html, drawn = trace_html(model.trace_, 3), TraceDisplay.from_estimator(model).lines_
    for line, in_picture in zip(TRACE_LINES, drawn, strict=True):
        assert (in_picture.get_label(), in_picture.get_color()) == (line.label, line.colour)
        assert in_picture.get_ydata().tolist() == model.trace_[line.column].tolist()
        assert f"<div>{line.label}</div>" in html
        assert f'stroke="{line.colour}"' in html
