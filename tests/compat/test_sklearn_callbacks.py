"""scikit-learn's own callbacks, where the installed version has them."""

import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from kfhe import EarlyStopping, KFHEClassifier

callback = pytest.importorskip("sklearn.callback")


class Recorder:
    """Writes down what it is told; asks to stop after some iterations."""

    def __init__(self, stop_after=None, fail=""):
        self.seen = []
        self.models = []
        self.stop_after = stop_after
        self.fail = fail

    def setup(self, estimator, context):
        self.seen.append("setup")

    def teardown(self, estimator, context):
        self.seen.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.seen.append(f"begin {context.task_name} {context.task_id}")

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        name = f"end {context.task_name} {context.task_id}"
        self.seen.append(name)
        self.models.append(fitted_estimator)
        if name == self.fail:
            raise OSError("no")
        return context.task_name == "iteration" and context.task_id + 1 == self.stop_after


def iterations(n):
    return [f"{event} iteration {t}" for t in range(n) for event in ("begin", "end")]


@pytest.mark.parametrize("estimator", [None, DecisionTreeClassifier(max_depth=3)], ids=["native", "foreign"])
def test_each_iteration_is_a_task_with_a_model_that_predicts(iris, estimator):
    X, y = iris
    recorder = Recorder()
    model = KFHEClassifier(estimator, n_estimators=3, random_state=0).set_callbacks(recorder).fit(X, y)
    assert recorder.seen == ["setup", "begin fit 0", *iterations(3), "end fit 0", "teardown"]
    *stages, last = recorder.models
    expected = list(model.staged_predict_proba(X))[1:]
    for n_iter, (stage, scores) in enumerate(zip(stages, expected, strict=True), 1):
        assert stage.n_iter_ == len(stage.trace_) == len(stage.estimators_) - 1 == n_iter
        np.testing.assert_allclose(stage.predict_proba(X), scores, rtol=1e-12)
    np.testing.assert_array_equal(last.predict_proba(X), model.predict_proba(X))


def test_training_with_callbacks_gives_the_same_model(iris):
    X, y = iris
    plain = KFHEClassifier(n_estimators=5, random_state=0).fit(X, y)
    watched = KFHEClassifier(n_estimators=5, random_state=0).set_callbacks(Recorder()).fit(X, y)
    assert plain.fingerprint() == watched.fingerprint()


def test_a_callback_can_stop_training(iris):
    recorder = Recorder(stop_after=2)
    model = KFHEClassifier(n_estimators=9, random_state=0).set_callbacks(recorder).fit(*iris)
    assert model.n_iter_ == 2
    assert recorder.seen == ["setup", "begin fit 0", *iterations(2), "end fit 0", "teardown"]


def test_an_iteration_that_is_not_trained_any_more_is_ended_without_a_model(iris):
    X, y = iris
    recorder = Recorder()
    model = KFHEClassifier(early_stopping=EarlyStopping(2, "accuracy"), random_state=0)
    model.set_callbacks(recorder).fit(X[::2], y[::2], X_val=X[1::2], y_val=y[1::2])
    trained = len(model.validation_scores_) - 1
    assert recorder.seen == ["setup", "begin fit 0", *iterations(trained + 1), "end fit 0", "teardown"]
    assert [stage is None for stage in recorder.models] == [False] * trained + [True, False]
    assert recorder.models[-1].n_iter_ == model.n_iter_ < trained


@pytest.mark.parametrize("fail", ["end iteration 1", "end fit 0"])
def test_an_error_leaves_the_model_as_it_was(iris, fail):
    recorder = Recorder(fail=fail)
    model = KFHEClassifier(n_estimators=3).set_callbacks(recorder)
    before = dict(vars(model))
    with pytest.raises(OSError, match="no"):
        model.fit(*iris)
    assert recorder.seen[-2:] == [fail, "teardown"]
    assert vars(model) == before


def test_bad_data_is_reported_and_torn_down(iris):
    recorder = Recorder()
    with pytest.raises(ValueError, match="y is empty"):
        KFHEClassifier().set_callbacks(recorder).fit(iris[0], [])
    assert recorder.seen == ["setup", "begin fit 0", "teardown"]


def test_a_score_for_each_iteration(iris):
    X, y = iris
    monitor = callback.ScoringMonitor(scoring="accuracy")
    model = KFHEClassifier(n_estimators=4, random_state=0).set_callbacks(monitor).fit(X, y)
    scores = [row["accuracy"] for row in monitor.get_logs().data if row["task_name"] == "iteration"]
    np.testing.assert_allclose(scores, 1 - model.trace_["training_error"])


def test_the_progress_bar_of_a_pipeline_shows_the_ensemble(iris, capsys):
    pipeline = make_pipeline(StandardScaler(), KFHEClassifier(n_estimators=2, random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # one says that a step does not support callbacks
        pipeline.set_callbacks(callback.ProgressBar()).fit(*iris)
    assert "KFHEClassifier" in capsys.readouterr().out


def test_a_warm_start_tells_of_the_new_iterations_only(iris):
    recorder = Recorder()
    model = KFHEClassifier(n_estimators=2, warm_start=True, random_state=0).fit(*iris)
    model.set_params(n_estimators=5).set_callbacks(recorder).fit(*iris)
    assert recorder.seen == ["setup", "begin fit 0", *iterations(3), "end fit 0", "teardown"]
    assert [stage.n_iter_ for stage in recorder.models] == [3, 4, 5, 5]
