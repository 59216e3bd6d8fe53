"""The framework's options: whatever is set, a model is one exact ensemble and keeps its promises."""

import io
import pickle

import numpy as np
import pytest
from components import as_parameters, assert_equal_models
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import kfhe
from kfhe import CARTClassifier, KFHEClassifier
from kfhe.engine.trees.leaf_votes import shrunken_shares
from kfhe.export import to_json, to_onnx, to_shap
from kfhe.kalman import component_weights

OPTIONS = {
    "fusion": {"fusion": 0.2},
    "votes alone": {"fusion": 1.0, "voting": "soft"},
    "process noise": {"process_noise": 0.01},
    "schedule": {"process_noise": [0.1, 0.05, 0.0]},
    "transition": {"transition": 0.9, "process_noise": 0.01},
    "transition, soft": {"transition": 0.7, "process_noise": 0.1, "voting": "soft", "fusion": 1.0},
    "out of bag": {"measurement": "out-of-bag"},
    "out of bag, linear": {"measurement": "out-of-bag", "emphasis": "linear", "voting": "soft"},
    "out of bag, transition": {"measurement": "out-of-bag", "transition": 0.9, "process_noise": 0.05},
    "margin": {"emphasis": "margin"},
    "margin out of bag": {"emphasis": "margin", "measurement": "out-of-bag", "voting": "soft"},
    "shrinkage": {"shrinkage": 5, "voting": "soft"},
    "shrinkage found": {"shrinkage": "auto", "voting": "soft", "min_samples_leaf": 1, "min_samples_split": 2},
    "shrinkage out of bag": {"shrinkage": 3.0, "voting": "soft", "measurement": "out-of-bag"},
    "several measurements": {"n_measurements": 3},
    "several, moving": {"n_measurements": 2, "transition": 0.9, "process_noise": [0.1, 0.05, 0.01]},
    "several, out of bag": {"n_measurements": 2, "measurement": "out-of-bag", "emphasis": "margin"},
    "samples of a third": {"max_samples": 0.34},
    "small samples": {"max_samples": 40, "voting": "soft", "emphasis": "margin"},
    "samples, out of bag": {"max_samples": 60, "measurement": "out-of-bag"},
    "several kinds": {"estimator": [CARTClassifier(), CARTClassifier(max_depth=2, max_features="sqrt")]},
}
NATIVE_ONLY = {"several kinds", "shrinkage", "shrinkage found", "shrinkage out of bag"}

each = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
for_any_component = pytest.mark.parametrize(
    "options", [options for name, options in OPTIONS.items() if name not in NATIVE_ONLY]
)


def fitted(X, y, options, **settings):
    return KFHEClassifier(**as_parameters({"n_estimators": 8, "random_state": 0, **options, **settings})).fit(
        X, y
    )


def votes(model, t, X):
    """Return what component t votes for, each class's score."""
    if model.trace_["shrinkage"][0]:
        nodes, leaf_weights = model.estimators_[t].nodes, model.estimators_[t].leaf_weights
        shares = shrunken_shares(nodes, leaf_weights, model.trace_["shrinkage"][:1])[0]
        return shares[model.estimators_[t].apply(X)]
    if t == 0 or model.voting == "soft":
        return model.estimators_[t].predict_proba(X)
    return np.eye(len(model.classes_))[np.searchsorted(model.classes_, model.estimators_[t].predict(X))]


@each
def test_scores_are_the_filters_state_at_each_stage(iris, options):
    X, y = iris
    model = fitted(X, y, options)
    trace, state = model.trace_, votes(model, 0, X)
    for t, found in enumerate(model.staged_predict_proba(X)):
        if t:
            transition, step = trace["transition"][t - 1], trace["step"][t - 1]
            state = transition * state + (1 - transition) * votes(model, 0, X)
            state = state + step * (votes(model, t, X) - state)
        np.testing.assert_allclose(found, state, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X), state, atol=1e-12)
    np.testing.assert_allclose(model.component_weights_.sum(), 1)


@each
def test_the_trace_follows_the_equations(iris, options):
    trace = fitted(*iris, options).trace_
    prior, gain = trace["prior_variance"], trace["gain"]
    np.testing.assert_allclose(gain, prior / (prior + trace["measurement_error"]), rtol=1e-14)
    np.testing.assert_allclose(trace["posterior_variance"], prior * (1 - gain), rtol=1e-12)
    np.testing.assert_allclose(trace["step"], gain * options.get("fusion", 0.5), rtol=1e-14)
    schedule = options.get("process_noise", 0.0)
    n_measurements = options.get("n_measurements", 1) * len(options.get("estimator", [None]))
    begins = np.arange(8) % n_measurements == 0
    noises = np.zeros(8)
    noises[begins] = np.append(schedule, [np.ravel(schedule)[-1]] * 8)[: begins.sum()]
    before = np.append(1.0, trace["posterior_variance"][:-1])
    np.testing.assert_allclose(prior, trace["transition"] ** 2 * before + noises, rtol=1e-12)
    np.testing.assert_array_equal(trace["transition"], np.where(begins, options.get("transition", 1.0), 1.0))
    sizes = trace["effective_sample_size"]
    assert (sizes[1:][~begins[1:]] == sizes[:-1][~begins[1:]]).all()  # drawn by the same weights


@each
def test_model_files_pickles_and_exports_hold_it(iris, options):
    X, y = iris
    model = fitted(X, y, options)
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    for same in (kfhe.load(file), pickle.loads(pickle.dumps(model))):
        assert same.fingerprint() == model.fingerprint()
        assert same.trace_ == model.trace_
        assert repr(same) == repr(model)
        assert_equal_models(same, model, X)
        for found, expected in zip(same.staged_predict_proba(X), model.staged_predict_proba(X), strict=True):
            np.testing.assert_array_equal(found, expected)


@each
def test_exports_give_the_same_scores(iris, options):
    onnxruntime = pytest.importorskip("onnxruntime")
    X, y = iris
    model = fitted(X, y, options)
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    _, scores = session.run(None, {"X": X})
    np.testing.assert_allclose(scores, model.predict_proba(X), atol=1e-5)
    explanation = to_shap(model)(X[:10])
    np.testing.assert_allclose(
        explanation.base_values + explanation.values.sum(axis=1), model.predict_proba(X[:10]), atol=1e-6
    )
    assert '"format": "kfhe trees"' in to_json(model)


@each
def test_training_can_go_on(iris, options):
    X, y = iris
    model = fitted(X, y, options, n_estimators=3, warm_start=True)
    model = pickle.loads(pickle.dumps(model)).set_params(n_estimators=8).fit(X, y)
    assert_equal_models(model, fitted(X, y, options), X)


@each
def test_validation_scores_are_those_of_the_stages_and_the_best_length_is_kept(iris, options):
    X, y = iris
    model = KFHEClassifier(n_estimators=30, random_state=0, early_stopping=3, **as_parameters(options))
    model.fit(X[::2], y[::2], X_val=X[1::2], y_val=y[1::2])
    rows = np.arange(len(y[1::2]))
    expected = [
        np.log(np.clip(scores[rows, y[1::2]], np.finfo(float).eps, 1)).mean()
        for scores in model.staged_predict_proba(X[1::2])
    ]
    np.testing.assert_allclose(model.validation_scores_[: len(expected)], expected, atol=1e-12)
    assert model.validation_scores_.argmax() == model.n_iter_


@each
def test_callbacks_hear_of_each_component(iris, options):
    X, y = iris
    rows = []
    model = KFHEClassifier(n_estimators=8, random_state=0, **as_parameters(options))
    model.fit(X, y, callbacks=[lambda row: rows.append(row) or row.iteration == 5])
    assert [row.iteration for row in rows] == [1, 2, 3, 4, 5]
    assert model.n_iter_ == 5
    assert [row.step for row in rows] == model.trace_["step"].tolist()


@each
@pytest.mark.parametrize("n_jobs", [2, 3])
def test_the_same_bits_on_any_number_of_threads(options, n_jobs):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 3))
    y = np.digitize(X[:, 0] + rng.normal(size=len(X)), np.linspace(-2, 2, 9))
    one, other = (fitted(X, y, options, n_estimators=3, n_jobs=n) for n in (1, n_jobs))
    assert one.fingerprint() == other.fingerprint()
    assert_equal_models(one, other, X[:100])


@for_any_component
def test_other_components_do_as_well(iris, options):
    X, y = iris
    settings = {"estimator": DecisionTreeClassifier(max_depth=3)}
    model = fitted(X, y, options, **settings)
    trace, state = model.trace_, votes(model, 0, X)
    for t in range(1, model.n_iter_ + 1):
        state = state + (1 - trace["transition"][t - 1]) * (votes(model, 0, X) - state)
        state = state + trace["step"][t - 1] * (votes(model, t, X) - state)
    *_, last = model.staged_predict_proba(X)
    np.testing.assert_allclose(last, state, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X), state, atol=1e-12)
    assert len(model.feature_importances_) == 4
    in_steps = fitted(X, y, options, n_estimators=3, warm_start=True, **settings)
    assert_equal_models(in_steps.set_params(n_estimators=8).fit(X, y), model, X)


@for_any_component
def test_rows_may_have_weights_and_labels_may_be_of_one_class(iris, options):
    X, y = iris
    for estimator in (None, GaussianNB()):
        model = KFHEClassifier(estimator, n_estimators=5, random_state=0, **as_parameters(options))
        weights = np.where(np.arange(len(y)) % 3, 1.5, 0.0)
        assert model.fit(X, y, sample_weight=weights).score(X, y) > 0.6
        assert (model.fit(X, np.ones(len(y))).predict_proba(X) == 1).all()


# Fusion, process noise and transition


def test_a_fusion_of_one_believes_the_votes_alone(iris):
    X, y = iris
    model = fitted(X, y, {"fusion": 1.0})
    np.testing.assert_array_equal(model.trace_["measurement_error"], model.trace_["component_error"])
    np.testing.assert_array_equal(model.trace_["step"], model.trace_["gain"])


def test_with_process_noise_later_components_keep_their_say(iris):
    X, y = iris
    plain, noisy = (
        fitted(X, y, {"process_noise": noise, "emphasis": "linear"}, n_estimators=40) for noise in (0.0, 0.05)
    )
    assert plain.trace_["gain"][-1] < 0.1 < noisy.trace_["gain"][-1]
    assert noisy.component_weights_[-5:].sum() > 0.5 > plain.component_weights_[-5:].sum()


def test_a_function_is_told_which_iteration_it_is(iris):
    X, y = iris
    heard = []
    fitted(X, y, {"process_noise": lambda iteration: heard.append(iteration) or 0.01}, n_estimators=4)
    assert heard == [1, 2, 3, 4]


def test_a_function_that_was_the_process_noise_is_not_in_the_file(iris):
    X, y = iris
    model = fitted(X, y, {"process_noise": lambda iteration: 1 / iteration})
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    loaded = kfhe.load(file)
    assert loaded.fingerprint() == model.fingerprint()
    with pytest.raises(RuntimeError, match="is not in the file that the model was loaded from"):
        loaded.fit(X, y)


def test_a_transition_goes_back_to_the_shares_of_the_classes(iris):
    X, y = iris
    for estimator in (None, GaussianNB()):
        model = fitted(X, y, {"transition": 0.8, "process_noise": 0.01, "estimator": estimator})
        shares = np.bincount(y) / len(y)
        np.testing.assert_allclose(next(model.staged_predict_proba(X)), np.tile(shares, (len(y), 1)))
        weights = component_weights(model.trace_["step"], 0.8)
        np.testing.assert_allclose(model.component_weights_, weights)
        assert weights[0] > 0.2 * (1 - model.trace_["step"][-1])


# Several measurements


def test_the_estimators_of_a_list_take_turns(iris):
    X, y = iris
    kinds = [GaussianNB(), DecisionTreeClassifier(max_depth=2), CARTClassifier()]
    model = fitted(X, y, {"estimator": kinds}, n_estimators=7)
    names = [type(component).__name__ for component in model.estimators_]
    assert names[0] == "GaussianNB"
    assert names[1:] == ["GaussianNB", "DecisionTreeClassifier", "CARTClassifier"] * 2 + ["GaussianNB"]
    assert model.score(X, y) > 0.8
    with pytest.raises(ValueError, match="of type GaussianNB, DecisionTreeClassifier, CARTClassifier; use"):
        model.save(io.BytesIO())
    assert_equal_models(clone(model).fit(X, y), model, X)


def test_trees_of_several_kinds_are_one_forest(iris):
    X, y = iris
    model = fitted(X, y, OPTIONS["several kinds"])
    depths = [tree.get_depth() for tree in model.estimators_]
    assert max(depths[2::2]) <= 2 < max(depths[1::2])


def test_a_list_of_one_is_that_one(iris):
    X, y = iris
    assert_equal_models(
        fitted(X, y, {"estimator": [GaussianNB()]}), fitted(X, y, {"estimator": GaussianNB()}), X
    )


def test_weights_follow_what_the_last_measurement_still_misses(iris):
    X, y = iris
    heard = []

    def spy(weights, missed):
        heard.append(missed.mean())
        return weights * np.exp(missed)

    model = fitted(X, y, {"emphasis": spy, "n_measurements": 3}, n_estimators=7)
    np.testing.assert_allclose(heard, model.trace_["measurement_error"][[2, 5]])


# What makes no sense together


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"transition": 0.9}, r"transition=0\.9 needs a process_noise above 0: .* class shares"),
        ({"transition": 0.9, "process_noise": [0, 0]}, "transition=0.9 needs a process_noise above 0"),
        ({"process_noise": [0.1, -1]}, "process_noise must be a finite number of at least 0, got -1"),
        ({"process_noise": lambda iteration: np.nan}, r"process_noise\(1\) must be a finite number"),
        ({"shrinkage": 3}, "shrinkage needs voting='soft'"),
        ({"estimator": CARTClassifier(shrinkage="auto")}, "shrinkage needs voting='soft'"),
        ({"shrinkage": "much"}, "'shrinkage' parameter of CARTClassifier must be"),
        ({"state_space": "still"}, "'state_space' parameter of KFHEClassifier must be an instance of"),
        ({"estimator": []}, "estimator is an empty list; give at least one classifier"),
        (
            {"estimator": [CARTClassifier(), CARTClassifier(max_bins=9)]},
            "trees of one forest have to agree in max_bins",
        ),
        ({"estimator": [CARTClassifier(shrinkage=3)]}, "shrinkage needs voting='soft'"),
        ({"estimator": [LinearRegression()]}, "must be a classifier, got a regressor: LinearRegression"),
        ({"estimator": [GaussianNB(), LinearSVC()], "voting": "soft"}, "LinearSVC has none"),
        ({"n_measurements": 0}, "'n_measurements' parameter of StateSpace must be an int"),
        ({"fusion": 0.0}, "'fusion' parameter of StateSpace must be a float in the range"),
        ({"transition": 0.0}, "'transition' parameter of StateSpace must be a float in the range"),
        ({"process_noise": "much"}, "'process_noise' parameter of StateSpace must be"),
    ],
)
def test_what_makes_no_sense_is_refused(iris, options, message):
    with pytest.raises(ValueError, match=message):
        fitted(*iris, options)


@pytest.mark.parametrize("members", [[GaussianNB], [None], [GaussianNB(), "tree"]])
def test_a_list_must_be_of_estimators(iris, members):
    with pytest.raises(TypeError, match="estimator must be"):
        fitted(*iris, {"estimator": members})
