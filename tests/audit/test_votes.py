"""Votes by those who have not seen the rows, and when there are enough of them."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict
from sklearn.svm import LinearSVC

from kfhe.audit import label_quality
from kfhe.audit import quality as quality_module
from kfhe.audit.votes import UNITS, VoteCounts, likeness, rank_correlation, settled
from kfhe.noise import flip_labels


@pytest.fixture(scope="module")
def table():
    X, y = make_classification(2000, 8, n_informative=6, random_state=0)
    return X, flip_labels(y, 0.1, random_state=0)


@pytest.fixture(scope="module")
def audits(table):
    """Return an audit by all trees and one that stops early."""
    return [label_quality(*table, random_state=0, early_stopping=stop) for stop in (False, True)]


class TestEarlyStopping:
    def test_it_stops_with_ranks_that_are_nearly_those_of_all_trees(self, audits):
        full, stopped = audits
        assert full.n_estimators == 1000
        assert stopped.n_estimators < 500
        assert spearmanr(full.quality, stopped.quality)[0] > 0.98

    def test_the_trees_are_the_first_ones_of_the_full_audit(self, audits, table):
        _, stopped = audits
        again = label_quality(*table, random_state=0, n_estimators=stopped.n_estimators, early_stopping=False)
        np.testing.assert_array_equal(stopped.quality, again.quality)

    def test_threads_do_not_decide_when(self, table):
        audits = [label_quality(*table, random_state=0, early_stopping=True, n_jobs=n) for n in (1, 2, 3)]
        assert len({audit.n_estimators for audit in audits}) == 1
        for other in audits[1:]:
            np.testing.assert_array_equal(audits[0].quality, other.quality)

    def test_tables_of_few_rows_get_all_trees(self, table, monkeypatch):
        assert label_quality(*table, random_state=0, n_estimators=400).n_estimators == 400
        monkeypatch.setattr(quality_module, "MANY_ROWS", len(table[1]))
        assert label_quality(*table, random_state=0, n_estimators=1000).n_estimators < 1000

    def test_ranks_of_chance_don_t_settle(self):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(500, 3)), rng.integers(2, size=500)
        audit = label_quality(X, y, random_state=0, n_estimators=100, early_stopping=True)
        assert audit.n_estimators == 100

    @pytest.mark.parametrize("n", [1, 3, 25, 26])
    def test_a_few_trees_are_all_grown(self, table, n):
        audit = label_quality(*table, random_state=0, n_estimators=n, early_stopping=True, n_jobs=2)
        assert audit.n_estimators == n

    def test_rows_that_one_half_of_the_trees_has_not_judged_are_waited_for(self):
        quality, n_votes = np.arange(6.0), np.full(6, 10)
        counts = VoteCounts(np.zeros(6, dtype=np.int32), 1)
        for n_half, expected in [
            (n_votes // 2, True),
            (n_votes * [1, 1, 1, 1, 1, 0], False),
            (n_votes, False),
        ]:
            counts.half, counts.n_half = quality * n_half, n_half
            counts.votes, counts.n_votes = (quality * n_votes)[:, np.newaxis], n_votes
            assert settled(counts, 20, 1000) == expected

    def test_the_halves_are_the_trees_of_odd_and_of_even_numbers(self):
        """Two audits of the same length, by trees that have nothing to do with each other."""
        counts = VoteCounts(np.zeros(1, dtype=np.int32), 2)
        for tree in range(6):
            counts.add(np.array([[tree / 8, 1 - tree / 8]]), np.zeros(1, dtype=np.int32), tree)
        odd, even = counts.halves()
        assert (odd[0] / UNITS, even[0] / UNITS) == ((1 + 3 + 5) / 24, (0 + 2 + 4) / 24)
        assert counts.n_half == 3

    def test_likeness_foretells_the_correlation(self):
        """Scores with noise of a known size: halves, the first part and all of them."""
        rng = np.random.default_rng(0)
        truth, votes = rng.normal(size=20_000), rng.normal(size=(200, 20_000))
        votes = truth + 3 * votes
        first, everything = votes[:50].mean(axis=0), votes.mean(axis=0)
        r = rank_correlation(votes[:50:2].mean(axis=0), votes[1:50:2].mean(axis=0))
        assert likeness(r, 50, 200) == pytest.approx(spearmanr(first, everything)[0], abs=0.01)
        assert likeness(r, 200, 200) == 1
        assert likeness(0.0, 50, 200) == 0

    def test_the_rank_correlation_is_spearmans(self):
        rng = np.random.default_rng(0)
        a, b = rng.integers(9, size=100), rng.integers(9, size=100)
        assert rank_correlation(a, b) == pytest.approx(spearmanr(a, b)[0])
        assert rank_correlation(a, np.zeros(100)) == 0


class TestOwnProbabilities:
    def test_they_are_the_votes(self, iris):
        X, y = iris
        given = cross_val_predict(RandomForestClassifier(random_state=0), X, y, method="predict_proba")
        audit = label_quality(y=y, pred_proba=given)
        labels = np.unique(y, return_inverse=True)[1]
        np.testing.assert_array_equal(audit.quality, given[np.arange(150), labels])
        np.testing.assert_array_equal(audit.suggested, np.unique(y)[given.argmax(axis=1)])
        assert audit.n_estimators is None
        assert audit.findings is None

    def test_with_the_rows_duplicates_are_found_too(self, iris):
        X, y = iris
        audit = label_quality(X, y, pred_proba=np.full((150, 3), 1 / 3))
        assert (audit.findings.duplicate_of >= 0).sum() == 1

    @pytest.mark.parametrize(
        ("pred_proba", "message"),
        [
            ([[0.5, 0.5]], r"shape \(1, 2\); accepted is a row for each of the 2 labels"),
            ([[1.0], [1.0]], r"a column for each of the 2 classes of y, in sorted order: \['a', 'b'\]"),
            ([[0.5, 0.5], [0.9, 0.9]], r"1 in total; row 1 is \[0.9, 0.9\]"),
            ([[0.5, 0.5], [-0.5, 1.5]], "at least 0"),
            ([[0.5, 0.5], [np.nan, 1]], "pred_proba contains NaN"),
        ],
    )
    def test_what_is_no_probability_is_told(self, pred_proba, message):
        with pytest.raises(ValueError, match=message):
            label_quality(y=["a", "b"], pred_proba=pred_proba)

    def test_other_voters_beside_them_are_refused(self):
        votes = [[0.5, 0.5], [0.5, 0.5]]
        with pytest.raises(ValueError, match="estimator would change nothing"):
            label_quality(y=["a", "b"], pred_proba=votes, estimator=LogisticRegression())
        with pytest.raises(ValueError, match="sample_weight would change nothing"):
            label_quality(y=["a", "b"], pred_proba=votes, sample_weight=[1, 1])


class TestEstimator:
    def test_it_votes_on_folds_that_it_has_not_seen(self, iris):
        X, y = iris
        audit = label_quality(X, y, estimator=LogisticRegression(max_iter=1000), cv=KFold(7), random_state=0)
        expected = cross_val_predict(
            LogisticRegression(max_iter=1000), X, y, cv=KFold(7), method="predict_proba"
        )
        np.testing.assert_allclose(
            audit.quality, expected[np.arange(150), np.unique(y, return_inverse=True)[1]]
        )

    def test_folds_are_shuffled_by_the_seed(self, iris):
        audits = [
            label_quality(*iris, estimator=LogisticRegression(max_iter=1000), cv=3, random_state=seed).quality
            for seed in (0, 0, 1)
        ]
        np.testing.assert_array_equal(audits[0], audits[1])
        assert (audits[0] != audits[2]).any()

    def test_classes_with_fewer_rows_than_folds_are_judged(self, iris):
        X, y = iris
        y = y.astype(object)
        y[:2] = "rare"
        audit = label_quality(X, y.astype(str), estimator=RandomForestClassifier(10, random_state=0))
        assert (audit.quality[:2] < 0.5).all()

    def test_one_without_probabilities_is_refused(self, iris):
        with pytest.raises(TypeError, match="must have predict_proba, LinearSVC has none"):
            label_quality(*iris, estimator=LinearSVC())

    def test_weights_are_passed_on(self, iris):
        X, y = iris
        weights = np.where(np.arange(150) % 2, 1.0, 0.0)
        forest = RandomForestClassifier(10, random_state=0)
        audit = label_quality(X, y, estimator=forest, cv=StratifiedKFold(3), sample_weight=weights)
        plain = label_quality(X, y, estimator=forest, cv=StratifiedKFold(3))
        assert (audit.quality != plain.quality).any()


class TestSampleWeight:
    def test_rows_without_weight_are_judged_and_have_no_say(self, clean):
        """Wrong labels that weigh nothing: all rows are judged by the right ones."""
        X, y = clean
        noisy = flip_labels(y, 0.4, random_state=0)
        right = noisy == y
        audit = label_quality(X, noisy, sample_weight=right, random_state=0, n_estimators=100)
        plain = label_quality(X, noisy, random_state=0, n_estimators=100)
        assert (audit.suggested == y).mean() > 0.94 > (plain.suggested == y).mean()
        assert not np.isnan(audit.quality).any()

    @pytest.mark.parametrize("weight", [1, 0.1, 7])
    def test_equal_weights_change_nothing(self, iris, weight):
        plain = label_quality(*iris, random_state=0, n_estimators=20)
        weighed = label_quality(*iris, sample_weight=[weight] * 150, random_state=0, n_estimators=20)
        np.testing.assert_array_equal(plain.quality, weighed.quality)

    def test_their_scale_changes_nothing(self, iris):
        weights = np.arange(1, 151)
        first, second = (
            label_quality(*iris, sample_weight=weights * scale, random_state=0, n_estimators=20).quality
            for scale in (1, 1024)
        )
        np.testing.assert_array_equal(first, second)

    def test_rows_that_weigh_next_to_nothing_have_a_say_among_themselves(self, clean):
        X, y = clean
        weights = np.where(y == 0, 1e-30, 1.0)
        audit = label_quality(X, y, sample_weight=weights, random_state=0, n_estimators=20)
        assert (audit.suggested[y == 0] == 0).all()

    @pytest.mark.parametrize("others", [0.0, 1e-310])
    def test_trees_that_have_seen_next_to_nothing_don_t_spoil_the_votes(self, iris, others):
        """A sample may have none of the few rows that weigh something."""
        weights = np.where(np.arange(150) % 50 == 3, 1.0, others)
        audit = label_quality(*iris, sample_weight=weights, random_state=0, n_estimators=50)
        assert not np.isnan(audit.votes).any()
        np.testing.assert_allclose(audit.votes.sum(axis=1), 1)

    def test_mistakes_are_told(self, iris):
        with pytest.raises(ValueError, match="negative values"):
            label_quality(*iris, sample_weight=[-1] * 150)
        with pytest.raises(ValueError, match=r"non-zero|weights are zero"):
            label_quality(*iris, sample_weight=[0] * 150)


@pytest.fixture(scope="module")
def clean():
    from sklearn.datasets import load_iris

    return load_iris(return_X_y=True)


class Unsure(DummyClassifier):
    """Gives each class the same, which may be no probability."""

    def __init__(self, each=0.5):
        super().__init__()
        self.each = each

    def predict_proba(self, X):
        return np.full((len(X), 2), self.each)


@pytest.mark.parametrize("each", [np.nan, np.inf, -1.0, 5.0])
def test_an_estimator_has_to_give_probabilities(each):
    with pytest.raises(ValueError, match="predict_proba of Unsure"):
        label_quality(np.zeros((20, 1)), [0, 1] * 10, estimator=Unsure(each))


def test_named_votes_in_another_order_are_not_taken_for_others():
    votes = pd.DataFrame({"b": [0.1, 0.9], "a": [0.9, 0.1]})
    with pytest.raises(ValueError, match=r"has the columns \['b', 'a'\]; accepted is the sorted order"):
        label_quality(y=["a", "b"], pred_proba=votes)
    assert not label_quality(y=["a", "b"], pred_proba=votes[["a", "b"]]).suspects.any()
