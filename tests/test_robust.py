"""RobustKFHEClassifier: it measures the noise, adapts itself, and keeps all promises of the family."""

import io
import json
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import kfhe
from kfhe import KFHEClassifier, RobustKFHEClassifier
from kfhe.audit import label_quality
from kfhe.filter_bank import SHRINKAGES, WARM_UP
from kfhe.noise import flip_labels
from kfhe.plotting import StagedScoreDisplay


@pytest.fixture(scope="module")
def mixed():
    """A table with numbers, categories and gaps, and labels of which a fifth is wrong."""
    rng = np.random.default_rng(0)
    n = 300
    X = pd.DataFrame({"size": rng.normal(size=n), "town": rng.choice(["Cork", "Sligo", "Bray"], size=n)})
    X["age"] = np.where(rng.uniform(size=n) < 0.1, np.nan, rng.normal(size=n))
    y = np.where((X["size"] > 0) ^ (X["town"] == "Cork"), "yes", "no")
    return X, flip_labels(y, 0.2, random_state=0), y


def halves(load, rate):
    X, y = load(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, stratify=y, random_state=0)
    return X, flip_labels(y, rate, random_state=1), X_test, y_test


# What it is for


@pytest.mark.parametrize("rate", [0.2, 0.4])
def test_it_copes_with_wrong_labels_better_than_a_forest_and_the_papers_variants(rate):
    means = np.zeros(3)
    for load in (load_iris, load_wine, load_breast_cancer):
        X, y, X_test, y_test = halves(load, rate)
        models = [RobustKFHEClassifier(random_state=0), RandomForestClassifier(random_state=0)]
        models.append(KFHEClassifier(emphasis="linear", random_state=0))
        means += [model.fit(X, y).score(X_test, y_test) / 3 for model in models]
    assert means[0] > max(means[1:]) + 0.01


def overlapping(seed):
    """Rows of three columns of few values, some frequent, whose classes overlap: no label is wrong."""
    rng = np.random.default_rng(seed)
    shares = np.array([400, 70, 5, 13, 200, 80, 10, 12, 150, 90, 12, 13, 80, 140, 5, 5])
    chances = np.array([0.2, 0.85, 1, 1, 0.16, 0.46, 0.3, 0.45, 0.08, 0.86, 1, 1, 0.33, 0.97, 1, 1])
    kinds = rng.choice(16, size=2000, p=shares / shares.sum())
    X = np.column_stack([kinds // 4, kinds // 2 % 2, kinds % 2])
    return X, (rng.random(2000) < chances[kinds]).astype(int)


@pytest.mark.parametrize("seed", range(4))
def test_equal_rows_of_different_labels_show_that_classes_overlap_not_that_labels_are_wrong(seed):
    X, y = overlapping(seed)
    model, audit = RobustKFHEClassifier(random_state=0).fit(X, y), label_quality(X, y, random_state=0)
    assert model.noise_rate_ < 0.03
    assert audit.estimated_share < 0.03
    forest = RandomForestClassifier(random_state=0).fit(X, y)
    assert log_loss(y, model.predict_proba(X)) < log_loss(y, forest.predict_proba(X)) + 0.01


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.2])
@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
def test_an_audit_and_a_model_agree_on_how_many_labels_are_wrong(load, rate):
    X, y = load(return_X_y=True)
    noisy = flip_labels(y, rate, random_state=0)
    model, audit = RobustKFHEClassifier(random_state=0).fit(X, noisy), label_quality(X, noisy, random_state=0)
    assert model.noise_rate_ == pytest.approx(audit.estimated_share, abs=0.03)
    assert audit.share_range[0] <= model.noise_rate_ <= audit.share_range[1]


def test_the_noisier_the_labels_the_more_it_shrinks():
    X, y = load_breast_cancer(return_X_y=True)
    found = [
        RobustKFHEClassifier(random_state=0).fit(X, flip_labels(y, r, random_state=0)) for r in (0, 0.2, 0.4)
    ]
    shrinkages = [model.lambda_ for model in found]
    assert shrinkages == sorted(shrinkages)
    assert shrinkages[0] <= 3 < 10 <= shrinkages[-1]
    assert set(shrinkages) <= set(SHRINKAGES)


@pytest.mark.parametrize("rate", [0, 0.1, 0.2, 0.3, 0.4])
def test_it_finds_out_how_many_labels_are_wrong(rate):
    X, y = load_breast_cancer(return_X_y=True)
    models = (RobustKFHEClassifier(random_state=seed) for seed in range(3))
    rates = [
        model.fit(X, flip_labels(y, rate, random_state=seed)).noise_rate_ for seed, model in enumerate(models)
    ]
    assert np.mean(rates) == pytest.approx(rate, abs=0.05)


def test_the_trace_shows_what_it_believed():
    X, y, *_ = halves(load_breast_cancer, 0.3)
    model = RobustKFHEClassifier(random_state=0).fit(X, y)
    believed = model.trace_["shrinkage"]
    assert believed[0] == 0
    assert believed[WARM_UP] >= 10
    np.testing.assert_allclose(model.trace_["step"], 1 / np.arange(2, 102))


# One weighted forest


def test_the_scores_are_the_mean_of_the_trees_and_of_the_prior(mixed):
    X, y, _ = mixed
    model = RobustKFHEClassifier(n_estimators=25, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.component_weights_, 1 / 26)
    forest = model.estimators_
    prior = [(y == label).mean() for label in model.classes_]
    np.testing.assert_allclose(next(forest.staged_scores(X, 1)), np.tile(prior, (len(y), 1)))
    expected = np.mean([forest.tree_votes(t)[tree.apply(X)] for t, tree in enumerate(forest)], axis=0)
    np.testing.assert_allclose(forest.scores(X, 1), expected, atol=1e-12)
    np.testing.assert_array_equal(model.predict_proba(X), forest.probabilities(forest.scores(X, 1)))


# Probabilities of the true classes


def test_probabilities_are_powers_of_the_scores(mixed):
    X, y, _ = mixed
    model = RobustKFHEClassifier(n_estimators=30, random_state=0).fit(X, y)
    forest = model.estimators_
    powers = forest.scores(X, 1) ** forest.sharpness
    np.testing.assert_allclose(model.predict_proba(X), powers / powers.sum(axis=1, keepdims=True))
    scores = replace(forest, sharpness=1.0)
    np.testing.assert_array_equal(scores.probabilities(forest.scores(X, 1)), forest.scores(X, 1))


def test_probabilities_are_nearer_to_the_truth_than_scores_are(mixed):
    X, y, true = mixed
    model = RobustKFHEClassifier(random_state=0).fit(X, y)
    forest = model.estimators_
    assert forest.sharpness > 1
    scores, probabilities = model.oob_decision_function_, forest.probabilities(model.oob_decision_function_)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert probabilities.min() > 0
    assert log_loss(true, probabilities) < log_loss(true, scores) - 0.05
    assert log_loss(y, probabilities) > log_loss(y, scores)


def test_labels_that_say_nothing_leave_some_doubt():
    rng = np.random.default_rng(0)
    model = RobustKFHEClassifier(n_estimators=30, random_state=0)
    model.fit(rng.normal(size=(200, 3)), rng.integers(2, size=200))
    assert model.predict_proba(rng.normal(size=(50, 3))).max() < 0.9


def test_scores_out_of_bag_are_honest(mixed):
    X, y, true = mixed
    model = RobustKFHEClassifier(random_state=0).fit(X, y)
    honest, seen = model.oob_decision_function_, model.predict_proba(X)
    np.testing.assert_allclose(honest.sum(axis=1), 1)
    assert log_loss(y, honest) > log_loss(y, seen)
    predicted = model.classes_[model.estimators_.decide(honest)]
    assert model.oob_score_ == pytest.approx((predicted == y).mean())
    assert (predicted == true).mean() > model.oob_score_


# Smaller models


def test_leaves_can_be_larger_and_fewer(mixed):
    X, y, _ = mixed
    free, large, few = (
        RobustKFHEClassifier(n_estimators=10, random_state=0, **settings).fit(X, y)
        for settings in ({}, {"min_samples_leaf": 20}, {"max_leaf_nodes": 6})
    )
    assert min(tree.leaf_weights.sum(axis=1).min() for tree in large.estimators_) >= 20
    assert max(len(tree.leaf_weights) for tree in few.estimators_) == 6
    assert all(len(model.estimators_.nodes) < len(free.estimators_.nodes) for model in (large, few))


# The decision


def test_rare_classes_are_not_lost():
    X, y = make_classification(1500, 10, n_informative=5, weights=[0.93], flip_y=0.1, random_state=0)
    plain, favoured = (
        RobustKFHEClassifier(decision=each, random_state=0).fit(X, y) for each in ("likeliest", "balanced")
    )
    np.testing.assert_array_equal(plain.predict_proba(X), favoured.predict_proba(X))
    np.testing.assert_array_equal(plain.predict(X), plain.predict_proba(X).argmax(axis=1))
    assert favoured.predict(X).sum() > plain.predict(X).sum()
    shares = np.array(favoured.estimators_.class_shares)
    expected = (favoured.predict_proba(X) * shares**-0.6).argmax(axis=1)
    np.testing.assert_array_equal(favoured.predict(X), expected)
    by_number = RobustKFHEClassifier(decision=0.6, random_state=0).fit(X, y)
    assert by_number.fingerprint() == favoured.fingerprint() != plain.fingerprint()
    assert clone(RobustKFHEClassifier()).decision == "balanced"


def test_pictures_and_notebooks_know_the_decision():
    X, y = make_classification(600, 10, n_informative=5, weights=[0.9], flip_y=0.1, random_state=0)
    favoured, plain = (
        RobustKFHEClassifier(n_estimators=20, decision=each, random_state=0).fit(X, y)
        for each in ("balanced", "likeliest")
    )
    assert favoured.score(X, y) != plain.score(X, y)
    for model in (favoured, plain):
        assert StagedScoreDisplay.from_estimator(model, X, y).scores[-1] == model.score(X, y)
    fact = "predict favours rare classes (decision='likeliest' doesn't)"
    assert fact in favoured._repr_html_()
    assert fact not in plain._repr_html_()


def test_a_decision_goes_by_the_shares_of_the_true_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 6))
    true = (X[:, 0] + X[:, 1] > 1.8).astype(int)  # a tenth of all rows
    model = RobustKFHEClassifier(random_state=0).fit(X, flip_labels(true, 0.2, random_state=0))
    prior = model.estimators_.tree_votes(0)[0]
    assert prior[1] > 0.24  # of the labels, that is
    assert model.estimators_.class_shares[1] == pytest.approx(true.mean(), abs=0.05)


# Promises


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_the_same_bits_on_any_number_of_threads(n_jobs):
    X, y = make_classification(70_000, 6, n_informative=4, random_state=0)
    alone, shared = (
        RobustKFHEClassifier(n_estimators=2, random_state=0, n_jobs=n).fit(X, y) for n in (1, n_jobs)
    )
    assert alone.fingerprint() == shared.fingerprint()
    assert alone.oob_decision_function_.tobytes() == shared.oob_decision_function_.tobytes()


def test_a_saved_model_comes_back(mixed):
    X, y, _ = mixed
    model = RobustKFHEClassifier(n_estimators=30, random_state=0).fit(X, y)
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    again = kfhe.load(file)
    assert type(again) is RobustKFHEClassifier
    assert again.fingerprint() == model.fingerprint()
    for name in ("lambda_", "noise_rate_", "oob_score_", "oob_log_loss_"):
        assert getattr(again, name) == getattr(model, name)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.fit(X, y).fingerprint() == model.fingerprint()


def test_the_fingerprint_knows_shrinkage_and_decision(mixed):
    X, y, _ = mixed
    models = [RobustKFHEClassifier(n_estimators=5, decision=p, random_state=0).fit(X, y) for p in (0.0, 0.3)]
    assert models[0].fingerprint() != models[1].fingerprint()


def test_a_warm_start_ends_where_a_single_fit_does(mixed):
    X, y, _ = mixed
    at_once = RobustKFHEClassifier(n_estimators=40, random_state=0).fit(X, y)
    in_steps = RobustKFHEClassifier(warm_start=True, random_state=0)
    for n_estimators in (3, WARM_UP + 1, 40):
        in_steps.set_params(n_estimators=n_estimators).fit(X, y)
    assert in_steps.fingerprint() == at_once.fingerprint()
    resumed = pickle.loads(pickle.dumps(in_steps.set_params(n_estimators=45)))
    assert resumed.fit(X, y).fingerprint() == in_steps.fit(X, y).fingerprint()


def test_early_stopping_keeps_the_best_length(mixed):
    X, y, true = mixed
    model = RobustKFHEClassifier(early_stopping=5, n_estimators=80, random_state=0)
    model.fit(X[:200], y[:200], X_val=X[200:], y_val=true[200:])
    assert model.n_iter_ == model.validation_scores_.argmax()
    assert len(model.estimators_) == model.n_iter_ + 1


def test_weights_count_like_repeated_rows_in_the_prior(mixed):
    X, y, _ = mixed
    weights = np.where(y == "yes", 3.0, 1.0)
    model = RobustKFHEClassifier(n_estimators=5, random_state=0).fit(X, y, sample_weight=weights)
    prior = np.array([weights[y == label].sum() for label in model.classes_]) / weights.sum()
    np.testing.assert_allclose(next(model.estimators_.staged_scores(X[:1], 1))[0], prior)
    balanced = RobustKFHEClassifier(class_weight="balanced", n_estimators=5, random_state=0).fit(X, y)
    np.testing.assert_allclose(next(balanced.staged_predict_proba(X[:1]))[0], [0.5, 0.5], atol=1e-8)


@pytest.mark.parametrize("n_estimators", [1, 5, WARM_UP])
def test_a_handful_of_trees_will_do(mixed, n_estimators):
    X, y, _ = mixed
    model = RobustKFHEClassifier(n_estimators=n_estimators, random_state=0).fit(X, y)
    assert model.n_iter_ == n_estimators
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_one_class_and_one_column_are_no_trouble():
    only = RobustKFHEClassifier(random_state=0).fit([[1.0], [2.0]], ["a", "a"])
    assert only.predict([[3.0]]).tolist() == ["a"]
    assert (only.n_iter_, only.noise_rate_, only.oob_score_) == (0, 0.0, 1.0)
    single = RobustKFHEClassifier(random_state=0).fit(np.arange(40.0).reshape(-1, 1), np.arange(40) // 20)
    assert single.score([[0.0], [39.0]], [0, 1]) == 1


def test_it_is_exported_as_it_predicts(mixed):
    import onnxruntime

    X, y, _ = mixed
    model = RobustKFHEClassifier(n_estimators=12, decision=0.5, random_state=0).fit(X, y)
    session = onnxruntime.InferenceSession(kfhe.export.to_onnx(model).SerializeToString())
    columns = {name: X[[name]].to_numpy(dtype=object if name == "town" else np.float64) for name in X}
    label, probabilities = session.run(None, columns)
    np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=1e-5)
    np.testing.assert_array_equal(label, model.predict(X))
    explained = kfhe.export.to_shap(model)(X[:20])
    total = explained.values.sum(axis=1) + explained.base_values
    np.testing.assert_allclose(total, model.estimators_.scores(X[:20], 1), atol=1e-6)
    text = json.loads(kfhe.export.to_json(model))
    assert "votes" in text["trees"][1]["nodes"][-1]
    assert text["sharpness"] == model.estimators_.sharpness > 1
    decided = (model.estimators_.scores(X, 1) * np.array(text["class_factors"])).argmax(axis=1)
    np.testing.assert_array_equal(model.classes_[decided], model.predict(X))


def test_it_is_cloned_and_shown(mixed):
    X, y, _ = mixed
    model = RobustKFHEClassifier(n_estimators=8, decision=0.2, random_state=0)
    assert clone(model).get_params() == model.get_params()
    assert "gain K" in model.fit(X, y)._repr_html_()
    assert kfhe.plotting.TraceDisplay.from_estimator(model).ax_ is not None


def test_a_wrong_decision_is_refused(iris):
    with pytest.raises(ValueError, match="'decision' parameter of RobustKFHEClassifier must be"):
        RobustKFHEClassifier(decision=2).fit(*iris)
    with pytest.raises(ValueError, match=r"'decision' parameter .* among .*'likeliest'"):
        RobustKFHEClassifier(decision="fair").fit(*iris)
