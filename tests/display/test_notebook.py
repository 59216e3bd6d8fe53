"""A fitted model shows its trace in a notebook."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from components import iteration
from sklearn import config_context
from sklearn.utils import estimator_html_repr

from kfhe import KFHEClassifier
from kfhe.display.notebook import HEIGHT, MARGIN, WIDTH, trace_html
from kfhe.trace import Trace


@pytest.fixture(scope="module")
def model(iris):
    return KFHEClassifier(n_estimators=20, random_state=0).fit(*iris)


def lines(html):
    """Return the points of each line."""
    return [
        np.array([[float(number) for number in point.split(",")] for point in points.split()])
        for points in re.findall(r'<polyline points="(.*?)"', html)
    ]


def test_scikit_learns_diagram_comes_first_then_the_trace(model):
    for html in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        diagram, trace = html.split('<div class="kfhe-trace"')
        assert "sk-top-container" in diagram
        assert len(lines(trace)) == 4


def test_the_trace_is_a_line_of_facts_and_four_lines(model):
    html = trace_html(model.trace_, 3)
    error, variance = model.trace_["training_error"][-1], model.trace_["posterior_variance"][-1]
    assert (
        f"20 components after the initial one · 3 classes · training error {error:.3g} "
        f"· final variance P {variance:.3g}<" in html
    )
    columns = ("measurement_error", "posterior_variance", "gain", "training_error")
    for points, column in zip(lines(html), columns, strict=True):
        values = model.trace_[column]
        x, y = points.T
        np.testing.assert_allclose(x, np.linspace(MARGIN, WIDTH - MARGIN, 20), atol=0.06)
        drawn = (HEIGHT - MARGIN - y) / (HEIGHT - 2 * MARGIN) * values.max()
        np.testing.assert_allclose(drawn, values, atol=0.002 * values.max())
        assert f"{values[0]:.3g} → {values[-1]:.3g}" in html


def test_the_html_is_whole_and_takes_its_text_colour_from_around_it(model):
    opened = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag, attributes):
            opened.append(tag)

        def handle_endtag(self, tag):
            assert opened.pop() == tag

        def handle_startendtag(self, tag, attributes):
            pass

    html = trace_html(model.trace_, 3)
    Tags().feed(html)
    assert opened == []
    assert not re.search(r"[ ;\"]color:", html)


def test_an_unfitted_model_is_shown_as_scikit_learn_does():
    assert "kfhe-trace" not in KFHEClassifier()._repr_html_()
    assert "kfhe-trace" not in KFHEClassifier()._repr_mimebundle_()["text/html"]


def test_with_plain_text_wanted_there_is_no_html(model):
    with config_context(display="text"):
        assert model._repr_mimebundle_() == {"text/plain": repr(model)}
        assert not hasattr(model, "_repr_html_")


def test_scikit_learns_own_function_shows_the_diagram(model):
    assert "sk-top-container" in estimator_html_repr(model)


def test_one_iteration_is_a_point_and_none_is_said():
    single = Trace()
    single.append(iteration(0.25))
    html = trace_html(single, 2)
    assert "1 component after the initial one · 2 classes" in html
    assert [len(points) for points in lines(html)] == [1] * 4
    assert "→" not in html
    assert "no components after the initial one · 1 class<" in trace_html(Trace(), 1)


def test_a_line_at_zero_stays_on_the_ground():
    trace = Trace()
    for _ in range(3):
        trace.append(iteration(0.0))
    assert all((points[:, 1] == HEIGHT - MARGIN).all() for points in lines(trace_html(trace, 2)))


def test_a_long_training_stays_small_and_keeps_its_last_value():
    trace = Trace()
    for t in range(10_001):
        trace.append(iteration(1 / (1 + t)))
    html = trace_html(trace, 2)
    assert len(html) < 25_000
    assert all(points[-1, 0] == WIDTH - MARGIN for points in lines(html))
