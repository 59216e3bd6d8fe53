"""Rows that belong together are drawn together, and never judged by what was learnt from their group."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

from kfhe import EarlyStopping, KFHEClassifier, RobustKFHEClassifier
from kfhe.audit import label_quality
from kfhe.audit.votes import drawn_rows
from kfhe.early_stopping import with_validation
from kfhe.groups import GroupDraws, Groups
from kfhe.rows import TrainingRows

QUICK = {"n_estimators": 15, "random_state": 0}
CLASSIFIERS = pytest.mark.parametrize("classifier", [KFHEClassifier, RobustKFHEClassifier])


def patients(n_groups=80, seed=0):
    """Return rows that share label and most of their features with those of their patient."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 16, size=n_groups)
    groups = np.repeat(np.arange(n_groups), sizes)
    centres = rng.normal(size=(n_groups, 4))
    labels = np.where(centres[:, 0] + 0.7 * rng.normal(size=n_groups) > 0, "ill", "well")
    X = centres[groups] + 0.1 * rng.normal(size=(len(groups), 4))
    return X, labels[groups], groups


def training_rows(X, y, groups, **settings):
    classes, labels = np.unique(y, return_inverse=True)
    base = np.full(len(y), 1 / len(y))
    return TrainingRows(X, labels.astype(np.int32), classes, base, 0, 1, groups=Groups.of(groups), **settings)


class TestDraws:
    @settings(max_examples=50, deadline=None)
    @given(st.lists(st.integers(0, 20), min_size=2, max_size=60), st.integers(0, 2**63), st.integers(1, 50))
    def test_all_rows_of_a_group_are_drawn_equally_often(self, values, seed, iteration):
        groups = Groups.of(np.array(values))
        rows = replace(training_rows(np.zeros((len(values), 1)), values, values), seed=seed)
        drawn = drawn_rows(rows, iteration)
        for group in range(len(groups)):
            assert len({*drawn[groups.numbers == group]}) == 1

    def test_trees_are_trained_on_a_record_once_but_have_seen_all_of_it(self):
        copies = Groups(np.array([0, 0, 1, 2, 2, 2]), one_record=True)
        rows = replace(training_rows(np.zeros((6, 1)), [0, 0, 1, 1, 0, 1], range(6)), groups=copies)
        counts = np.array([2, 2, 0, 1, 1, 1], dtype=np.int32)
        assert rows.without_copies(counts).tolist() == [2, 0, 0, 1, 1, 1]  # all, if their labels differ
        patients = replace(rows, groups=Groups(copies.numbers))
        assert patients.without_copies(counts).tolist() == counts.tolist()

    @pytest.mark.parametrize("weighted", [False, True])
    def test_a_group_is_drawn_as_often_as_its_rows_weigh_on_average(self, weighted):
        """Not by their sum: then large groups would be in every sample."""
        groups = Groups.of(np.repeat([0, 1, 2, 3], [1, 2, 5, 12]))
        weights = np.ones(20)
        if weighted:
            weights[groups.numbers == 2] = 3
        weights /= weights.sum()
        times = np.zeros(20)
        for t in range(4000):
            times += groups.drawn(weights, 20, 0, t, 0)
        means = np.array([weights[groups.numbers == group].mean() for group in range(4)])
        expected = 4 * means / means.sum()  # four draws of four groups
        np.testing.assert_allclose(times[[0, 1, 3, 8]] / 4000, expected, atol=4 * (0.8 / 4000) ** 0.5)

    def test_samples_have_about_as_many_rows_as_asked(self):
        _, y, groups = patients()
        rows = training_rows(np.zeros((len(y), 1)), y, groups)
        for max_samples, wanted in ((None, len(y)), (0.25, len(y) / 4)):
            draws = training_rows(np.zeros((len(y), 1)), y, groups, max_samples=max_samples).draws()
            assert isinstance(draws, GroupDraws)
            sizes = [draws.draw(rows.base, t, 0).sum() for t in range(300)]
            assert abs(np.mean(sizes) - wanted) < 0.05 * wanted

    def test_a_class_in_one_group_is_drawn_nevertheless(self):
        y = np.array(["a"] * 30 + ["b"])
        draws = training_rows(np.zeros((31, 1)), y, np.arange(31)).draws()
        assert all(draws.draw(np.full(31, 1 / 31), t, 0)[30] > 0 for t in range(50))


class TestClassifiers:
    @CLASSIFIERS
    def test_groups_are_told_in_any_form(self, classifier):
        X, y, groups = patients()
        names = [f"p{group:03d}" for group in groups]
        expected = classifier(**QUICK).fit(X, y, groups=groups).fingerprint()
        for same in (
            groups.tolist(),
            groups.astype(float),
            pd.Series(groups, index=groups[::-1]),
            pd.Series(groups, dtype="Int64"),
            pl.Series(groups),
            pa.array(groups),
            names,
            pd.Series(names, dtype="category"),
            pl.Series(names),
            pa.chunked_array([names]),
            np.datetime64("2024-01-01") + groups,
            groups[:, np.newaxis],
        ):
            assert classifier(**QUICK).fit(X, y, groups=same).fingerprint() == expected
        assert classifier(**QUICK).fit(X, y).fingerprint() != expected

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda groups: groups[:-1], r"groups has \d+ values, X has \d+ rows"),
            (lambda groups: [None, *groups[1:]], "groups has gaps in 1 row, first in row 0; give a row"),
            (lambda groups: np.where(groups == 3, np.nan, groups), r"groups has gaps in \d+ rows"),
            (
                lambda groups: np.stack([groups, groups], axis=1),
                "groups must be a list or a column of values",
            ),
            (lambda groups: "patient", r"groups must be .*, got an array of shape \(\)"),
            (lambda groups: [*groups[1:], "x"], "groups mixes text and other values"),
            (np.zeros_like, "groups has one value only, 0: there must be two"),
        ],
    )
    def test_groups_that_are_none_get_an_error(self, change, message):
        X, y, groups = patients()
        for train in (RobustKFHEClassifier(**QUICK).fit, KFHEClassifier(**QUICK).fit):
            with pytest.raises(ValueError, match=message):
                train(X, y, groups=change(groups))
        with pytest.raises(ValueError, match=message):
            label_quality(X, y, groups=change(groups), random_state=0)

    def test_as_many_groups_as_rows_are_none(self):
        X, y, _ = patients()
        shuffled = np.random.default_rng(0).permutation(len(y))
        alone = RobustKFHEClassifier(**QUICK).fit(X, y, groups=shuffled)
        free = RobustKFHEClassifier(**QUICK).fit(X, y)
        assert abs(alone.oob_score_ - free.oob_score_) < 0.05

    def test_the_score_out_of_bag_is_that_on_other_groups(self):
        together, apart, unseen = [], [], []
        for seed in range(3):
            X, y, groups = patients(seed=seed)
            for train, test in GroupKFold(4, shuffle=True, random_state=seed).split(X, y, groups):
                model = RobustKFHEClassifier(**QUICK).fit(X[train], y[train], groups=groups[train])
                together.append(model.oob_score_)
                unseen.append(model.score(X[test], y[test]))
                apart.append(RobustKFHEClassifier(**QUICK).fit(X[train], y[train]).oob_score_)
        assert abs(np.mean(together) - np.mean(unseen)) < 0.06
        assert np.mean(apart) > np.mean(unseen) + 0.12  # without groups it is far too good

    @CLASSIFIERS
    def test_a_group_of_weight_zero_is_absent(self, classifier):
        X, y, groups = patients()
        weights = np.where(groups == 5, 0.0, 1.0)
        some = groups != 5
        found = classifier(**QUICK).fit(X, y, sample_weight=weights, groups=groups)
        expected = classifier(**QUICK).fit(X[some], y[some], groups=groups[some])
        assert found.fingerprint() == expected.fingerprint()

    def test_warm_starts_need_the_same_groups(self):
        X, y, groups = patients()
        whole = RobustKFHEClassifier(**QUICK).fit(X, y, groups=groups).fingerprint()
        model = RobustKFHEClassifier(n_estimators=5, random_state=0, warm_start=True).fit(X, y, groups=groups)
        assert model.set_params(n_estimators=15).fit(X, y, groups=groups + 100).fingerprint() == whole
        for other in (groups // 2, None):
            with pytest.raises(ValueError, match="needs the data of the first fit, got other groups"):
                model.fit(X, y, groups=other)
        assert model.fingerprint() == whole

    def test_no_group_is_trained_on_and_held_back(self):
        X, y, groups = patients()
        stopping = EarlyStopping(5, validation_fraction=0.3)
        rows = training_rows(np.column_stack([X, groups]), y, groups)
        kept, validation = with_validation(
            RobustKFHEClassifier(early_stopping=stopping), lambda X: X, None, None, rows
        )
        held, trained = {*validation._X[:, -1]}, {*kept.X[:, -1]}
        assert held
        assert not held & trained
        assert len(kept.groups) == len(trained)
        model = RobustKFHEClassifier(**QUICK, early_stopping=stopping).fit(X, y, groups=groups)
        assert len(model.validation_scores_) > model.n_iter_

    @CLASSIFIERS
    def test_a_class_may_be_in_one_group_only(self, classifier):
        X, y, groups = patients()
        y = np.where(groups == 0, "rare", y)
        model = classifier(**QUICK).fit(X, y, groups=groups)
        assert "rare" in model.classes_
        assert model.score(X, y) > 0.6

    def test_components_of_ones_own_get_groups_whole(self):
        X, y, groups = patients()
        seen = []

        class Watching(LogisticRegression):
            def fit(self, X, y, sample_weight=None):
                seen.append(X)
                return super().fit(X, y, sample_weight)

        KFHEClassifier(Watching(), n_estimators=3, random_state=0).fit(X, y, groups=groups)
        by_row = {tuple(row): group for row, group in zip(X, groups, strict=True)}
        for sample in seen[1:]:
            times = pd.Series([tuple(row) for row in sample]).value_counts()
            by_group = {}
            for row, n in times.items():
                by_group.setdefault(by_row[row], set()).add(n)
            assert all(len(found) == 1 for found in by_group.values())
            assert sum(len(X[groups == group]) for group in by_group) == len(times)


class TestAudits:
    def test_rows_are_judged_by_trees_that_have_not_seen_their_group(self):
        """One wrong label for all of a group would look right by the others."""
        X, y, groups = patients()
        wrong = groups == np.bincount(groups).argmax()
        X[wrong] = [3, 0, 0, 0] + 0.1 * np.random.default_rng(0).normal(size=(wrong.sum(), 4))
        y[wrong] = "well"
        together = label_quality(X, y, groups=groups, random_state=0, n_estimators=200)
        apart = label_quality(X, y, random_state=0, n_estimators=200)
        assert together.quality[wrong].max() < 0.4
        assert apart.quality[wrong].min() > 0.6
        assert together.groups == Groups.of(groups)

    def test_folds_of_other_classifiers_keep_groups_whole(self):
        X, y, groups = patients()
        folds = []

        class Watching(LogisticRegression):
            def fit(self, X, y, sample_weight=None):
                folds.append({*X[:, -1]})
                return super().fit(X[:, :-1], y)

            def predict_proba(self, X):
                assert not folds[-1] & {*X[:, -1]}
                return super().predict_proba(X[:, :-1])

        label_quality(np.column_stack([X, groups]), y, groups=groups, estimator=Watching(), random_state=0)
        assert len(folds) == 5

    def test_votes_of_ones_own_have_no_use_for_groups(self):
        X, y, groups = patients()
        with pytest.raises(ValueError, match="groups would change nothing"):
            label_quality(X, y, groups=groups, pred_proba=np.full((len(y), 2), 0.5))
