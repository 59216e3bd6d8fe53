"""verbose=1 shows a bar on standard error; by default nothing is shown."""

import re

import pytest

from kfhe import KFHEClassifier
from kfhe.audit import label_quality


def test_training_is_silent_by_default(iris, capfd):
    KFHEClassifier(n_estimators=3, random_state=0).fit(*iris)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("verbose", [1, True])
def test_verbose_shows_the_iteration_and_the_filter(iris, capsys, verbose):
    model = KFHEClassifier(n_estimators=7, random_state=0, verbose=verbose).fit(*iris)
    out, err = capsys.readouterr()
    assert out == ""
    shown = re.search(r"KFHE .* 7/7 R (\S+)\s+P (\S+)\s+K (\S+)", err)
    expected = (
        model.trace_["measurement_error"][-1],
        model.trace_["posterior_variance"][-1],
        model.trace_["gain"][-1],
    )
    for text, value in zip(shown.groups(), expected, strict=True):
        assert float(text) == pytest.approx(value, rel=0.01, abs=1e-4)


def test_a_warm_start_goes_on_where_the_bar_was(iris, capsys):
    model = KFHEClassifier(n_estimators=4, random_state=0, warm_start=True).fit(*iris)
    model.set_params(n_estimators=6, verbose=1).fit(*iris)
    assert "6/6" in capsys.readouterr().err


def test_the_bar_ends_when_training_fails(iris, capsys):
    def failing(weights, missed):
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        KFHEClassifier(emphasis=failing, verbose=1).fit(*iris)
    assert "0/100" in capsys.readouterr().err


def test_a_single_class_has_no_progress_to_show(capsys):
    KFHEClassifier(verbose=1).fit([[1], [2]], ["a", "a"])
    assert "0/100" in capsys.readouterr().err


def test_an_audit_shows_its_trees_if_asked_to(iris, capsys):
    label_quality(*iris, n_estimators=30, random_state=0)
    assert capsys.readouterr() == ("", "")
    label_quality(*iris, n_estimators=30, random_state=0, verbose=1)
    out, err = capsys.readouterr()
    assert out == ""
    assert re.search(r"Audit .* 30/30 .* left", err)
