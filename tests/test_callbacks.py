"""Callbacks: functions that see each iteration's row of the trace and may end training."""

import numpy as np
import pytest
from components import assert_equal_models

from kfhe import EarlyStopping, Iteration, KFHEClassifier


def test_a_callback_gets_the_rows_of_the_trace(iris):
    rows = []
    model = KFHEClassifier(n_estimators=5, random_state=0).fit(*iris, callbacks=[rows.append])
    assert [row.iteration for row in rows] == [1, 2, 3, 4, 5]
    for name in model.trace_.columns:
        np.testing.assert_array_equal([getattr(row, name) for row in rows], model.trace_[name])
    assert {row.validation_score for row in rows} == {None}


def test_a_row_has_all_columns_of_the_trace(iris):
    model = KFHEClassifier(n_estimators=1).fit(*iris)
    assert list(Iteration._fields) == ["iteration", *model.trace_.columns, "validation_score"]


def test_a_callback_gets_the_validation_score(iris):
    X, y = iris
    rows = []
    model = KFHEClassifier(n_estimators=5, early_stopping=9, random_state=0)
    model.fit(X[::2], y[::2], X_val=X[1::2], y_val=y[1::2], callbacks=[rows.append])
    assert [row.validation_score for row in rows] == model.validation_scores_[1:].tolist()


@pytest.mark.parametrize("true", [True, np.True_])
def test_a_callback_can_end_training(iris, true):
    X, y = iris
    model = KFHEClassifier(random_state=0).fit(
        X, y, callbacks=[lambda row: true if row.iteration == 7 else None]
    )
    assert_equal_models(model, KFHEClassifier(n_estimators=7, random_state=0).fit(X, y), X)


def test_all_callbacks_see_the_last_row(iris):
    first, second = [], []
    callbacks = [first.append, lambda row: row.iteration == 3, second.append]
    KFHEClassifier(random_state=0).fit(*iris, callbacks=callbacks)
    assert len(first) == len(second) == 3


def test_early_stopping_keeps_the_best_length_of_a_training_that_a_callback_ends(iris):
    X, y = iris
    model = KFHEClassifier(early_stopping=EarlyStopping(50, "accuracy"), random_state=0)
    model.fit(X[::2], y[::2], X_val=X[1::2], y_val=y[1::2], callbacks=[lambda row: row.iteration == 10])
    assert len(model.validation_scores_) == 11
    assert model.n_iter_ == model.validation_scores_.argmax()


def test_a_warm_start_goes_on_where_a_callback_ended(iris):
    X, y = iris
    numbers = []
    model = KFHEClassifier(n_estimators=8, warm_start=True, random_state=0)
    model.fit(X, y, callbacks=[lambda row: row.iteration == 3])
    model.fit(X, y, callbacks=[lambda row: numbers.append(row.iteration)])
    assert numbers == [4, 5, 6, 7, 8]
    assert_equal_models(model, KFHEClassifier(n_estimators=8, random_state=0).fit(X, y), X)


@pytest.mark.parametrize("warm_start", [False, True])
def test_an_error_in_a_callback_leaves_the_model_as_it_was(iris, warm_start):
    X, y = iris
    model = KFHEClassifier(n_estimators=5, warm_start=warm_start, random_state=0).fit(X, y)
    before, fingerprint = dict(vars(model)), model.fingerprint()

    def fails(row):
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        model.set_params(n_estimators=9).fit(X, y, callbacks=[fails])
    assert vars(model) == {**before, "n_estimators": 9}
    assert model.fingerprint() == fingerprint
    model.fit(X, y)
    assert_equal_models(model, KFHEClassifier(n_estimators=9, random_state=0).fit(X, y), X)


@pytest.mark.parametrize("callbacks", [print, [3], "abc", [None]], ids=repr)
def test_what_is_no_list_of_functions_is_refused(iris, callbacks):
    with pytest.raises(
        TypeError, match="callbacks must be a list of functions that take an iteration's row, got"
    ):
        KFHEClassifier().fit(*iris, callbacks=callbacks)


def test_no_callbacks_is_a_list_as_well(iris):
    assert KFHEClassifier(n_estimators=2).fit(*iris, callbacks=[]).n_iter_ == 2
