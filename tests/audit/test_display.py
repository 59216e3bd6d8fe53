"""The picture of an audit: the qualities in order, and the suspects by class."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

from kfhe.audit import label_quality
from kfhe.noise import flip_labels
from kfhe.plotting import AuditDisplay


@pytest.fixture(scope="module")
def audit():
    X, y = load_digits(return_X_y=True)
    return label_quality(X, flip_labels(y, 0.1, random_state=0), n_estimators=30, random_state=0)


def test_qualities_are_in_order_and_suspects_are_counted(audit):
    display = AuditDisplay(audit)
    figure = display.to_figure()
    quality = display.line_.get_ydata()
    assert (np.diff(quality) >= 0).all()
    assert quality[0] == audit.quality.min()
    assert display.counts_.sum() == audit.suspects.sum()
    pair = (audit.given == 3) & (audit.suggested == 5) & audit.suspects
    assert display.counts_[3, 5] == pair.sum()
    assert [ax.get_xlabel() for ax in figure.axes] == ["labels, the most suspicious first", "suggested"]
    assert figure.axes[0].get_title() == f"{audit.suspects.sum():,} of 1,797 labels are suspects"


def test_it_fits_beside_another_picture(audit):
    figure = Figure(layout="constrained")
    AuditDisplay.from_audit(audit, ax=figure.subplots(1, 2)[1])
    figure.draw_without_rendering()
    boxes = [ax.get_position() for ax in figure.axes]
    assert boxes[0].x1 < boxes[1].x0 < boxes[1].x1 < boxes[2].x0


def test_axes_that_can_t_be_parted_are_refused(audit):
    with pytest.raises(ValueError, match="pass a subplot of a figure as ax"):
        AuditDisplay.from_audit(audit, ax=Figure().add_axes((0, 0, 1, 1)))


def test_of_many_classes_those_with_suspects_are_shown():
    rng = np.random.default_rng(0)
    votes = rng.dirichlet(np.ones(40), size=400)
    labels = np.r_[np.arange(40), rng.integers(40, size=360)]
    display = AuditDisplay(label_quality(y=labels, pred_proba=votes))
    display.to_figure()
    assert display.counts_.shape == (12, 12)


def test_without_suspects_it_is_drawn_too():
    audit = label_quality(y=[0, 1] * 10, pred_proba=[[0.9, 0.1], [0.1, 0.9]] * 10)
    display = AuditDisplay(audit)
    display.to_figure()
    assert display.counts_.sum() == 0
