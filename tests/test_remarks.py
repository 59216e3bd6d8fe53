"""What a table has that may be a mistake is said, once each, in Python's warnings."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from kfhe import CARTClassifier, KFHEClassifier, RobustKFHEClassifier, TableWarning
from kfhe.audit import label_quality
from kfhe.remarks import COPIES, LEAK, Remark, of_copies, of_leak

QUICK = {"n_estimators": 10, "random_state": 0}


def table(n=300):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=[*"abc"])
    return X, np.where(X["a"] + 0.5 * rng.normal(size=n) > 0, "up", "down")


def told(change, n=300):
    """Return what is said of a table that was changed."""
    X, y = table(n)
    return RobustKFHEClassifier(**QUICK).fit(change(X, y), y).remarks_


def test_of_a_good_table_nothing_is_said():
    assert told(lambda X, y: X) == ()


def test_columns_of_no_use_are_named():
    rng = np.random.default_rng(1)
    ids = np.arange(300).astype(str)
    codes = rng.integers(75, size=300).astype(str)
    n_codes = len(set(codes))
    assert told(lambda X, y: X.assign(id=ids)) == (
        "column 'id' has (nearly) as many values as rows: it is left out",
    )
    assert told(lambda X, y: X.assign(code=codes)) == (
        f"column 'code' ({n_codes} values) says nothing about the label: it is left out",
    )
    assert told(lambda X, y: X.assign(one=1.0, none=np.nan, word="x")) == (
        "column 'none' is empty: it can't tell classes apart",
        "columns 'one', 'word' have one value only: they can't tell classes apart",
    )


def test_many_columns_are_one_remark():
    remarks = told(lambda X, y: X.assign(**{f"id{j}": np.arange(300).astype(str) for j in range(9)}))
    assert remarks == (
        "columns 'id0', 'id1', 'id2', 'id3', 'id4', 'id5' and 3 more have (nearly) as many values as rows: "
        "they are left out",
    )
    X, y = load_digits(return_X_y=True)
    remarks = RobustKFHEClassifier(n_estimators=2, random_state=0).fit(X, y).remarks_
    assert remarks == ("columns '0', '32', '39' have one value only: they can't tell classes apart",)


def test_as_many_values_as_rows_are_so_also_beside_groups():
    X, y = table()
    groups = np.arange(300) // 10
    codes = np.random.default_rng(1).integers(100, size=300).astype(str)
    model = RobustKFHEClassifier(**QUICK).fit(X.assign(code=codes), y, groups=groups)
    assert model.remarks_ == (
        f"column 'code' ({len(set(codes))} values) says nothing about the label: it is left out",
    )


def test_a_column_that_gives_the_label_away_is_named():
    leaking = {
        "closed_at": lambda y: (y == "up") * 2.0,
        "reason": lambda y: np.where(y == "up", "won", "lost"),
    }
    for name, made in leaking.items():
        remarks = told(lambda X, y, name=name, made=made: X.assign(**{name: made(y)}))
        assert remarks == (
            f"column {name!r} predicts nearly all labels on its own: if it is only known after the label"
            ", leave it out",
        )


def test_warnings_say_it_once_each_where_fit_was_called():
    X, y = table()
    X = X.assign(id=np.arange(300).astype(str), one=1)
    for call in (
        lambda: RobustKFHEClassifier(**QUICK).fit(X, y),
        lambda: label_quality(X, y, random_state=0, n_estimators=20),
    ):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            result = call()
        assert [str(each.message) for each in found] == [
            *getattr(result, "remarks_", getattr(result, "remarks", 0))
        ]
        assert {each.category for each in found} == {TableWarning}
        assert {each.filename for each in found} == {__file__}
    assert len(found) == 2


def test_other_classifiers_say_nothing():
    X, y = table()
    X = X.assign(one=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KFHEClassifier(**QUICK).fit(X, y)
        CARTClassifier().fit(X, y)


@pytest.mark.parametrize("remark", [of_copies(3, 10), of_leak("price"), Remark("found", ". advice")])
def test_a_remark_is_text_that_knows_what_it_is_about(remark):
    again = pickle.loads(pickle.dumps(remark))
    assert (again, again.found, again.topic, again.column) == (
        remark,
        remark.found,
        remark.topic,
        remark.column,
    )
    assert again.startswith(again.found)
    assert len(again) > len(again.found)


def test_topics_are_those_of_which_the_command_line_has_options():
    assert (of_copies(3, 10).topic, of_leak("price").topic, of_leak("price").column) == (
        COPIES,
        LEAK,
        "price",
    )
