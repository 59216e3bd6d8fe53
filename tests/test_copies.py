"""Rows that stand twice: copies are told from rows that are equal by chance, and kept together."""

from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import make_classification

from kfhe import KFHEClassifier, RobustKFHEClassifier
from kfhe.audit import label_quality
from kfhe.copies import RowHashes, find_copies, labels_overlap, row_hashes, share_alone
from kfhe.groups import Groups
from kfhe.noise import flip_labels
from kfhe.rows import TrainingRows
from kfhe.tables.columns import open_columns

QUICK = {"n_estimators": 15, "random_state": 0}


def rows(n=500, noise=0.2, seed=0):
    X, y = make_classification(n, 8, n_informative=5, class_sep=1.0, random_state=seed)
    return X, flip_labels(y, noise, random_state=seed)


def copied(X, y, share, seed=0):
    """Return the rows, some of them twice, in another order; and which are of one."""
    rng = np.random.default_rng(seed)
    some = rng.permutation(
        np.concatenate([np.arange(len(y)), rng.choice(len(y), int(share * len(y)), False)])
    )
    return X[some], y[some], some


def titanic(n=1000, seed=0):
    """Return rows of three columns of few values: many are equal, by chance, and their labels differ."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(4, size=n), rng.integers(2, size=n), rng.integers(2, size=n)])
    return X, (rng.random(n) < 0.2 + 0.15 * X[:, 0] + 0.1 * X[:, 1]).astype(int)


def hashes(X):
    return RowHashes(open_columns(X))


def training_rows(X, y):
    labels = np.asarray(y, dtype=np.int32)
    return TrainingRows(X, labels, np.arange(2), np.full(len(y), 1 / len(y)), seed=0, n_threads=1)


def copies_found(X, y, **settings):
    model = RobustKFHEClassifier(n_estimators=2, random_state=0, **settings).fit(X, y)
    return sum("copies" in remark for remark in model.remarks_)


class TestFindingThem:
    @pytest.mark.parametrize("share", [0.05, 0.3, 1.0])
    def test_rows_that_stand_twice_are_copies(self, share):
        X, y, some = copied(*rows(), share)
        model = RobustKFHEClassifier(**QUICK).fit(X, y)
        n_copies = len(some) - 500
        assert model.remarks_[0].startswith(f"{n_copies} of {len(some):,} rows are copies of others")

    def test_different_rows_are_none(self):
        assert not copies_found(*rows())

    def test_a_few_equal_rows_are_no_matter(self):
        X, y, _ = copied(*rows(), 0.015)
        assert not copies_found(X, y)

    def test_rows_of_few_values_are_equal_by_chance(self):
        assert not copies_found(*titanic())
        assert not copies_found(pd.DataFrame(titanic()[0].astype(str)), titanic()[1])

    @pytest.mark.parametrize("times", [2, 5])
    def test_if_each_row_stands_equally_often_they_are_copies_also_among_rows_equal_by_chance(self, times):
        X, y = titanic()
        groups = find_copies(
            RowHashes(open_columns(np.repeat(X, times, axis=0))), lambda: np.repeat(y, times).astype(np.int32)
        )
        assert groups is not None
        assert set(groups.sizes) == {times}
        assert len(groups) == len(y)  # each row has its copies, and not those equal by chance

    @pytest.mark.parametrize("rate", [0.3, 0.4])
    def test_among_rows_equal_by_chance_labels_tell_that_some_stand_twice(self, rate):
        rng = np.random.default_rng(0)
        X = rng.integers(5, size=(2000, 5))
        y = flip_labels((X.sum(axis=1) > 10).astype(np.int32), rate, random_state=0)
        assert not copies_found(X, y)
        X, y, _ = copied(X, y, 0.3)
        assert copies_found(X, y)

    def test_rows_that_never_stand_three_times_are_copies_though_others_are_near(self):
        X = np.array(list(np.ndindex(6, 6, 6, 6)))  # each possible row, once
        y = np.arange(len(X)) % 2
        assert not copies_found(X, y)
        X, y, _ = copied(X, y, 0.3)
        assert copies_found(X, y)

    def test_rows_drawn_with_replacement_are_observations_of_their_own(self):
        """Their labels always agree, as nothing is wrong with them; yet they come in threes as well."""
        X = np.array(list(np.ndindex(3, 3, 2, 3, 4, 2)))
        y = ((X == 0).sum(axis=1) == 2).astype(int)
        for seed in range(20):
            drawn = np.random.default_rng(seed).integers(len(X), size=len(X))
            assert not copies_found(X[drawn], y[drawn])

    def test_labels_of_equal_rows_that_differ_as_often_as_noise_has_it_tell_nothing(self):
        X, _ = titanic()
        y = flip_labels((X[:, 0] > 1).astype(int), 0.1, random_state=0)
        assert not copies_found(X, y)

    def test_rows_without_any_that_come_near_are_copies_whatever_their_labels(self):
        X, y, _ = copied(*rows(noise=0), 1.0)
        assert copies_found(X, flip_labels(y, 0.4, random_state=1))

    @pytest.mark.parametrize("place", [0, 8])
    def test_an_id_makes_no_difference_even_if_copies_have_ids_of_their_own(self, place):
        X, y, some = copied(*rows(), 0.3)
        table = pd.DataFrame(X).add_prefix("x")
        for ids in (some, range(len(y))):
            named = table.copy()
            named.insert(place, "id", [f"i{k}" for k in ids])
            found = training_rows(named, y).with_copies().copies
            assert (found.first_rows == Groups.of(some).first_rows).all()

    def test_rows_of_few_values_with_names_are_equal_by_chance(self):
        X, y = titanic()
        named = pd.DataFrame(X.astype(str)).add_prefix("x").assign(name=[f"n{k}" for k in range(len(y))])
        assert not copies_found(named, y)
        assert training_rows(named, y).with_copies().overlap

    def test_rows_of_nothing_but_names_are_none(self):
        names = pd.DataFrame({"name": [f"n{k}" for k in range(100)]})
        assert find_copies(hashes(names), lambda: np.arange(100, dtype=np.int32) % 2) is None

    def test_groups_overrule_what_looks_like_copies(self):
        X, y, some = copied(*rows(), 0.5)
        model = RobustKFHEClassifier(**QUICK).fit(X, y, groups=np.arange(len(some)))
        assert not any("copies" in remark for remark in model.remarks_)
        by_hand = RobustKFHEClassifier(**QUICK).fit(X, y, groups=some)
        assert by_hand.oob_score_ < model.oob_score_ - 0.03

    def test_the_papers_variants_do_not_look_for_them(self):
        X, y, some = copied(*rows(), 1.0)
        model = KFHEClassifier(**QUICK).fit(X, y)
        assert model.fingerprint() == KFHEClassifier(**QUICK).fit(X, y).fingerprint()
        assert model.fingerprint() != KFHEClassifier(**QUICK).fit(X, y, groups=some).fingerprint()


class TestWhatTheyCost:
    def test_hardly_anything(self):
        truth = make_classification(1500, 8, n_informative=5, class_sep=1.0, random_state=1)
        X, y = truth[0][:500], flip_labels(truth[1][:500], 0.2, random_state=0)
        alone = RobustKFHEClassifier(random_state=0).fit(X, y)
        doubled = RobustKFHEClassifier(random_state=0).fit(*copied(X, y, 1.0)[:2])
        new = truth[0][500:], truth[1][500:]
        assert doubled.score(*new) > alone.score(*new) - 0.02
        assert abs(doubled.oob_score_ - alone.oob_score_) < 0.03
        assert abs(doubled.noise_rate_ - alone.noise_rate_) < 0.04
        unaware = RobustKFHEClassifier(random_state=0).fit(*copied(X, y, 1.0)[:2], groups=np.arange(1000))
        assert unaware.noise_rate_ < alone.noise_rate_ - 0.1  # each label looks right by its copy

    def test_audits_judge_a_row_by_trees_that_have_not_seen_its_copy(self):
        X, y, some = copied(*rows(), 1.0)
        audit = label_quality(X, y, random_state=0, n_estimators=200)
        quality = pd.Series(audit.quality).groupby(some)
        assert (quality.max() - quality.min()).max() < 1e-6  # they are seen, or not, by the same trees
        assert audit.groups is not None
        assert len(audit.groups) == 500
        assert audit.remarks[0].startswith("500 of 1,000 rows are copies of others")


class TestOverlap:
    """Rows that are equal, are no copies, and differ in their labels: nothing can tell them apart."""

    @pytest.mark.parametrize(("n_differ", "expected"), [(0, False), (9, False), (10, True), (500, True)])
    def test_it_takes_ten_rows_with_an_equal_of_another_label(self, n_differ, expected):
        X = np.repeat(np.arange(500.0), 2)[:, np.newaxis]
        y = np.zeros(1000, dtype=np.int32)
        y[np.arange(0, n_differ, 2)] = 1  # of a pair the first; an odd number has a third row in its last one
        X[:3] = X[0] if n_differ % 2 else X[:3]
        assert labels_overlap(hashes(X), lambda: y) == expected

    def test_copies_have_none_whatever_their_labels(self):
        X, y, _ = copied(*rows(), 0.5)
        noisy = np.random.default_rng(1).integers(2, size=len(y))
        for labels in (y, noisy):
            assert not training_rows(X, labels).with_copies().overlap
        assert training_rows(*titanic()).with_copies().overlap
        assert not training_rows(*rows()).with_copies().overlap


class TestHashes:
    def test_equal_rows_have_equal_numbers_whatever_holds_them(self):
        frame = pd.DataFrame(
            {
                "n": [1.5, np.nan, 1.5, 0.0, -0.0, 2.0],
                "text": ["a", None, "a", "b", "b", "a"],
                "day": [datetime(2024, 1, 1) + timedelta(days=d) for d in (0, 1, 0, 2, 2, 0)],
                "true": [True, False, True, True, True, True],
            }
        )
        for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
            some = equal_groups(table)
            assert some == [0, 1, 0, 2, 2, 3]

    def test_columns_are_not_mixed_up(self):
        assert equal_groups(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 1.0], [2.0, 2.0], [0, 1], [1, 0]])) == [
            *range(6)
        ]

    def test_numbers_of_disjoint_columns_add_up(self):
        X = np.random.default_rng(0).integers(3, size=(50, 6)).astype(float)
        columns = open_columns(X)
        parts = row_hashes(columns, range(2)) + row_hashes(columns, range(2, 6))
        assert (parts == row_hashes(columns)).all()

    def test_sparse_rows_are_equal_where_dense_ones_are(self):
        X = np.random.default_rng(0).integers(3, size=(200, 4)) * 1.0
        dense, sparse = hashes(X).equal, hashes(csr_matrix(X)).equal
        assert (dense.numbers[:, np.newaxis] == dense.numbers).tolist() == (
            sparse.numbers[:, np.newaxis] == sparse.numbers
        ).tolist()

    def test_near_misses_tell_chance_from_copies(self):
        X, _ = titanic()
        assert share_alone(hashes(X), hashes(X).equal) == 0
        X, _, _ = copied(*rows(), 0.3)
        assert share_alone(hashes(X), hashes(X).equal) == 1


def equal_groups(table):
    """Return the group of each row by its number, counted by appearance."""
    from kfhe.tables.schema import number_columns

    hashes = row_hashes(number_columns(open_columns(table)))
    return pd.factorize(hashes)[0].tolist()
