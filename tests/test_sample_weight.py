"""sample_weight and class_weight: what a weight is worth."""

import numpy as np
import pytest
from components import Log, Scripted, as_parameters, assert_equal_models, numbered, rows_of
from scipy.stats import chi2_contingency, chisquare
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from kfhe import CARTClassifier, KFHEClassifier, RobustKFHEClassifier, load
from kfhe.emphasis import linear

ESTIMATORS = {
    "native": None,
    "takes sample_weight": DecisionTreeClassifier(max_depth=3),
    "takes none": KNeighborsClassifier(),
}


@pytest.fixture(params=ESTIMATORS.values(), ids=ESTIMATORS.keys())
def estimator(request):
    return request.param


@pytest.fixture(params=["exponential", "linear"])
def emphasis(request):
    return request.param


def fitted(X, y, sample_weight=None, **settings):
    settings = {"n_estimators": 8, "random_state": 0, **settings}
    return KFHEClassifier(**as_parameters(settings)).fit(X, y, sample_weight=sample_weight)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_row_of_weight_zero_is_absent(iris, rng, estimator, emphasis, weighted):
    X, y = iris
    weights = rng.uniform(0.5, 2, size=len(y)) if weighted else np.ones(len(y))
    absent = rng.uniform(size=len(y)) < 0.3
    nonsense = X.copy()
    nonsense[absent] = 1e6
    with_zeros = fitted(nonsense, y, np.where(absent, 0, weights), estimator=estimator, emphasis=emphasis)
    without = fitted(X[~absent], y[~absent], weights[~absent], estimator=estimator, emphasis=emphasis)
    assert_equal_models(with_zeros, without, X)


def test_a_class_whose_rows_are_all_absent_is_known_and_never_predicted(iris, estimator):
    X, y = iris
    model = fitted(X, y, (y != 1).astype(float), estimator=estimator)
    without = fitted(X[y != 1], y[y != 1], estimator=estimator)
    assert model.classes_.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(model.predict_proba(X)[:, 1], 0)
    np.testing.assert_array_equal(model.predict_proba(X)[:, [0, 2]], without.predict_proba(X))
    np.testing.assert_array_equal(model.trace_["gain"], without.trace_["gain"])


@pytest.mark.parametrize("estimator", [None, LogisticRegression()], ids=["native", "logistic regression"])
def test_where_one_class_is_left_it_is_always_predicted(iris, estimator):
    X, y = iris
    model = fitted(X, y, (y == 1) * np.arange(len(y)), estimator=estimator)
    assert model.n_iter_ == 0
    assert model.predict(X).tolist() == [1] * len(X)


def test_one_row_is_enough_to_fit(estimator):
    model = fitted(np.ones((1, 2)), np.array(["a"]), estimator=estimator)
    assert model.predict([[5.0, 7.0]]).tolist() == ["a"]


def test_equal_weights_are_no_weights(iris, estimator):
    X, y = iris
    for weight in (1.0, 0.25, 7.0, 1e-300, 1e300):
        assert_equal_models(
            fitted(X, y, np.full(len(y), weight), estimator=estimator), fitted(X, y, estimator=estimator), X
        )


@pytest.mark.parametrize("scale", [2.0**-1070, 1e-300, 0.1, 1 / 3, 3.7, 2.0**10, 1e300, 2.0**1021])
def test_the_scale_of_the_weights_does_not_matter(iris, rng, estimator, emphasis, scale):
    X, y = iris
    weights = rng.integers(1, 5, size=len(y)).astype(float)
    model = fitted(X, y, weights, estimator=estimator, emphasis=emphasis)
    scaled = fitted(X, y, weights * scale, estimator=estimator, emphasis=emphasis)
    np.testing.assert_array_equal(scaled.predict(X), model.predict(X))
    np.testing.assert_allclose(scaled.predict_proba(X), model.predict_proba(X), rtol=0, atol=1e-12)


# Weights are worth as many repeated rows. Not draw by draw, as the samples differ in size, but in how often
# each row is drawn and in what an error costs.

REPEATS = np.array([1, 2, 3, 4, 1, 2, 3, 4, 5, 1])
LABELS = np.array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1])
VOTES = np.array([0, 0, 0, 1, 0, 1, 1, 1, 0, 1])  # wrong in two rows, which are emphasised


def draws(X, y, sample_weight, **settings):
    """How often each of the ten rows is drawn, over many seeds."""
    log = Log()
    estimator = Scripted(lambda t, rows: VOTES[rows], None, log)
    for seed in range(200):
        log.clear()
        KFHEClassifier(estimator, random_state=seed, **settings).fit(X, y, sample_weight=sample_weight)
        yield np.bincount(log[-1], minlength=10)


@pytest.mark.parametrize("n_estimators", [1, 3], ids=["by base weights", "by emphasised weights"])
def test_rows_are_drawn_as_often_as_repeated_rows(n_estimators):
    settings = {"n_estimators": n_estimators, "emphasis": "linear"}
    weighted = sum(draws(numbered(10), LABELS, REPEATS, **settings))
    repeated_X, repeated_y = np.repeat(numbered(10), REPEATS, axis=0), np.repeat(LABELS, REPEATS)
    repeated = sum(draws(repeated_X, repeated_y, None, **settings))
    ignored = sum(draws(numbered(10), LABELS, None, **settings))
    assert chi2_contingency([weighted, repeated]).pvalue > 0.01
    assert chi2_contingency([ignored, repeated]).pvalue < 1e-6
    by_base_weights = chisquare(weighted, REPEATS / REPEATS.sum() * weighted.sum()).pvalue
    assert by_base_weights > 0.01 if n_estimators == 1 else by_base_weights < 1e-6


@pytest.mark.parametrize(
    "estimator",
    [CARTClassifier(min_samples_leaf=1, min_samples_split=2, max_depth=2), GaussianNB()],
    ids=["native", "takes sample_weight"],
)
def test_the_initial_component_is_that_of_repeated_rows(iris, rng, estimator):
    X, y = iris[0][:, 2:3], iris[1]
    repeats = rng.integers(1, 9, size=len(y))
    weighted = fitted(X, y, repeats, estimator=estimator)
    repeated = fitted(np.repeat(X, repeats, axis=0), np.repeat(y, repeats), estimator=estimator)
    unweighted = fitted(X, y, estimator=estimator)
    initial = [next(model.staged_predict_proba(X)) for model in (weighted, repeated, unweighted)]
    np.testing.assert_allclose(initial[0], initial[1], rtol=0, atol=1e-6)
    assert np.abs(initial[1] - initial[2]).max() > 1e-3


def test_an_estimator_without_weights_gets_a_weighted_draw_at_the_start():
    log = Log()
    estimator = Scripted(lambda t, rows: LABELS[rows], None, log)
    counts = np.zeros(10)
    for seed in range(200):
        log.clear()
        KFHEClassifier(estimator, n_estimators=1, random_state=seed).fit(
            numbered(10), LABELS, sample_weight=REPEATS
        )
        counts += np.bincount(log[0], minlength=10)
    assert chisquare(counts, REPEATS / REPEATS.sum() * counts.sum()).pvalue > 0.01


def test_errors_cost_as_much_as_in_repeated_rows(rng):
    n, n_iter = 40, 30
    y = rng.integers(3, size=n)
    repeats = rng.integers(1, 6, size=n)
    votes = np.where(
        rng.uniform(size=(2 * n_iter + 1, n)) < 0.7, rng.integers(3, size=(2 * n_iter + 1, n)), y
    )

    def trace(X, y, base, sample_weight=None):
        seen = []

        def spied_linear(weights, missed):
            seen.append(weights)
            return linear(weights, missed, rows=rows_of(base))

        estimator = Scripted(lambda t, rows: votes[t, rows], None, Log())
        model = KFHEClassifier(estimator, emphasis=spied_linear, n_estimators=n_iter)
        return model.fit(X, y, sample_weight=sample_weight).trace_, np.array(seen)

    weighted, weights = trace(numbered(n), y, repeats / repeats.sum(), repeats)
    rows = np.repeat(np.arange(n), repeats)
    base = np.full(len(rows), 1 / len(rows))
    repeated, repeated_weights = trace(numbered(n)[rows], y[rows], base)
    unweighted, _ = trace(numbered(n), y, np.full(n, 1 / n))
    for column in ("measurement_error", "component_error", "training_error", "gain", "resets"):
        np.testing.assert_allclose(weighted[column], repeated[column], rtol=0, atol=1e-12, err_msg=column)
    assert not np.allclose(unweighted["measurement_error"], repeated["measurement_error"], atol=1e-3)
    # A row's sampling weight is the sum of its copies'.
    for weight, copies in zip(weights, repeated_weights, strict=True):
        np.testing.assert_allclose(weight, np.bincount(rows, copies), rtol=0, atol=1e-12)


# class_weight


def test_balanced_classes_weigh_the_same_in_total(iris, rng):
    X, y = iris
    keep = (y != 0) | (rng.uniform(size=len(y)) < 0.2)
    X, y = X[keep], y[keep]
    model = fitted(X, y, class_weight="balanced")
    by_hand = fitted(X, y, 1 / np.bincount(y)[y])
    np.testing.assert_allclose(model.predict_proba(X), by_hand.predict_proba(X), rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.trace_["gain"], by_hand.trace_["gain"], rtol=0, atol=1e-12)
    assert not np.allclose(model.trace_["gain"], fitted(X, y).trace_["gain"], atol=1e-6)


def test_class_weights_multiply_sample_weights(iris, rng):
    X, y = iris
    names = np.array(["a", "b", "c"])[y]
    weights = rng.integers(1, 4, size=len(y)).astype(float)
    model = fitted(X, names, weights, class_weight={"b": 4.0, "c": 0.5})
    by_hand = fitted(X, names, weights * np.array([1, 4, 0.5])[y])
    np.testing.assert_allclose(model.predict_proba(X), by_hand.predict_proba(X), rtol=0, atol=1e-12)


def test_balanced_counts_sample_weights(iris, rng):
    X, y = iris
    weights = rng.integers(1, 4, size=len(y)).astype(float)
    totals = np.bincount(y, weights)
    model = fitted(X, y, weights, class_weight="balanced")
    by_hand = fitted(X, y, weights / totals[y])
    np.testing.assert_allclose(model.predict_proba(X), by_hand.predict_proba(X), rtol=0, atol=1e-12)


def test_a_class_of_weight_zero_is_absent(iris):
    X, y = iris
    assert_equal_models(fitted(X, y, class_weight={0: 0}), fitted(X, y, (y != 0).astype(float)), X)


def test_boolean_classes_can_be_weighted(iris):
    X, y = iris
    model = fitted(X, y == 1, class_weight={True: 3})
    np.testing.assert_allclose(
        model.predict_proba(X), fitted(X, y == 1, np.where(y == 1, 3, 1)).predict_proba(X), atol=1e-12
    )


@pytest.mark.parametrize("kind", [KFHEClassifier, CARTClassifier])
@pytest.mark.parametrize("tiny", [1e-200, 1e-310, 2e-323])
def test_balanced_takes_classes_that_weigh_next_to_nothing(iris, kind, tiny):
    X, y = iris
    weights = np.where(y == 0, tiny, 1.0)
    model = kind(class_weight="balanced", random_state=0).fit(X, y, sample_weight=weights)
    scores = model.predict_proba(X)
    assert (scores >= 0).all()
    assert (scores <= 1).all()
    unweighted = kind(class_weight="balanced", random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), unweighted.predict(X))


def test_weights_that_are_next_to_nothing_beside_one_make_a_model_like_any_other(iris, tmp_path):
    weights = np.full(150, 1e-310)
    weights[0] = 1.0
    model = RobustKFHEClassifier(n_estimators=5, random_state=0).fit(*iris, weights)
    assert np.isfinite(model.predict_proba(iris[0])).all()
    model.save(tmp_path / "model.kfhe")
    assert load(tmp_path / "model.kfhe").fingerprint() == model.fingerprint()


def test_a_product_of_tiny_weights_is_a_weight_still(iris):
    X, y = iris
    weights = np.where(y == 0, 1e-200, 1.0)
    model = KFHEClassifier(n_estimators=3, class_weight={0: 1e-200, 1: 1.0}, random_state=0)
    assert set(model.fit(X, y, weights).predict(X)) == {0, 1, 2}


def test_masked_weights_are_refused(iris):
    weights = np.ma.masked_array(np.ones(150), mask=np.arange(150) == 3)
    with pytest.raises(ValueError, match="sample_weight has masked values; give 0 to rows"):
        KFHEClassifier().fit(*iris, weights)
