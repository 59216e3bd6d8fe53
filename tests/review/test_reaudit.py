"""The audit after decisions, and the chances that labels are wrong."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.datasets import load_iris

from kfhe.audit import label_quality
from kfhe.noise import flip_labels
from kfhe.review import Decision, DecisionError, audit_again, row_digests, wrong_chances

X, TRUE = load_iris(return_X_y=True, as_frame=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
TRUTH = NAMES[TRUE]
GIVEN = flip_labels(TRUTH, 0.2, random_state=3)
SETTINGS = {"random_state": 0, "n_estimators": 100}


def judged_truly(audit, count, first_row=0):
    """Return decisions on the worst labels by somebody who knows."""
    rows = np.argsort(audit.rank)[:count]
    return [
        Decision(
            int(row) + first_row,
            digest,
            "species",
            GIVEN[row],
            "keep" if GIVEN[row] == TRUTH[row] else "change",
            TRUTH[row],
        )
        for row, digest in zip(rows, row_digests(X, rows), strict=True)
    ]


@pytest.fixture(scope="module")
def first():
    return label_quality(X, GIVEN, **SETTINGS)


class TestAuditAgain:
    def test_rows_that_were_judged_come_last_and_are_no_suspects(self, first):
        decisions = judged_truly(first, 10)
        again = audit_again(X, GIVEN, decisions, **SETTINGS)
        rows = [each.row for each in decisions]
        assert sorted(again.rank) == list(range(1, 151))
        assert min(again.rank[rows]) == 141
        assert not again.suspects[rows].any()
        assert again.given.tolist() == GIVEN.tolist()

    def test_suspects_are_as_many_as_are_still_to_be_found(self, rng):
        features = rng.normal(size=(300, 2))
        labels = (features[:, 0] + rng.normal(size=300) > 0).astype(int)  # the votes disagree with many
        audit = label_quality(features, labels, **SETTINGS)
        worst = np.argsort(audit.rank)[:30]
        right = np.where(np.arange(30) % 3, labels[worst], 1 - labels[worst])  # a third of them are wrong
        decisions = [
            Decision(int(row), digest, "y", str(label), "keep" if label == new else "change", str(new))
            for row, digest, label, new in zip(
                worst, row_digests(features, worst), labels[worst], right, strict=True
            )
        ]
        again = audit_again(features, labels, decisions, **SETTINGS)
        disputed = (again.suggested != labels).sum() - (again.suggested != labels)[worst].sum()
        expected = round(again.estimated_share * 300) - 10
        assert 0 < expected < disputed
        assert again.suspects.sum() == expected

    def test_their_like_are_judged_anew(self, first):
        decisions = judged_truly(first, 20)
        again = audit_again(X, GIVEN, decisions, **SETTINGS)
        wrong = GIVEN != TRUTH
        rest = np.ones(150, dtype=bool)
        rest[[each.row for each in decisions]] = False
        gain = again.quality - first.quality
        assert gain[rest & ~wrong].mean() > 0.01
        assert (again.suggested == TRUTH)[rest].mean() >= (first.suggested == TRUTH)[rest].mean()

    def test_a_judged_label_counts_as_three_others(self, first):
        decisions = judged_truly(first, 15)
        rows = [each.row for each in decisions]
        labels, weights = GIVEN.copy(), np.ones(150)
        labels[rows], weights[rows] = TRUTH[rows], 3
        alike = label_quality(X, labels, sample_weight=weights, **SETTINGS)
        assert audit_again(X, GIVEN, decisions, **SETTINGS).votes.tolist() == alike.votes.tolist()

    def test_what_is_dropped_is_no_suspect_and_has_no_vote(self, first):
        row = int(np.argmin(first.rank))
        digest = row_digests(X, np.array([row]))[0]
        again = audit_again(X, GIVEN, [Decision(row, digest, "species", GIVEN[row], "drop")], **SETTINGS)
        assert again.rank[row] == 150
        assert not again.suspects[row]
        weights = np.where(np.arange(150) == row, 0, 1)
        other = np.where(np.arange(150) == row, "virginica", GIVEN)
        alike = label_quality(X, other, sample_weight=weights, **SETTINGS)
        assert again.votes.tolist() == alike.votes.tolist(), "whatever its label is"

    def test_a_class_may_lose_its_last_row(self):
        labels = np.where(np.arange(150) == 7, "typo", TRUTH)
        digest = row_digests(X, np.array([7]))[0]
        again = audit_again(X, labels, [Decision(7, digest, "y", "typo", "change", "setosa")], **SETTINGS)
        assert again.classes.tolist() == ["setosa", "typo", "versicolor", "virginica"]
        assert again.quality[7] == 0
        assert again.votes.shape == (150, 4)

    @pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
    def test_tables_of_all_kinds(self, first, kind):
        decisions = judged_truly(first, 5, first_row=2)
        again = audit_again(kind(X), GIVEN, decisions, first_row=2, **SETTINGS)
        assert again.rank.tolist() == audit_again(X, GIVEN, decisions, first_row=2, **SETTINGS).rank.tolist()

    def test_decisions_about_another_table_are_refused(self, first):
        with pytest.raises(DecisionError, match="not match the decisions"):
            audit_again(X + 1, GIVEN, judged_truly(first, 5), **SETTINGS)


class TestChances:
    def test_decisions_move_the_share(self, first):
        worst = first.rank <= 20
        none, some, all_wrong = (
            wrong_chances(first, worst, wrong)
            for wrong in (np.zeros(150, dtype=bool), GIVEN != TRUTH, np.ones(150, dtype=bool))
        )
        assert none.share < some.share < all_wrong.share
        assert none.n_wrong == 0
        assert all_wrong.n_wrong == all_wrong.n_judged == 20

    def test_the_range_covers_the_share_and_narrows_with_every_look(self, first):
        wrong = GIVEN != TRUTH
        found = [wrong_chances(first, first.rank <= count, wrong) for count in (5, 40, 150)]
        widths = [each.high - each.low for each in found]
        assert all(each.low <= wrong.mean() <= each.high + 1e-9 for each in found)
        assert widths[0] > widths[1] > widths[2]
        assert widths[2] < 1e-3, "all is known"

    def test_those_that_were_judged_are_certain(self, first):
        judged = first.rank <= 10
        found = wrong_chances(first, judged, GIVEN != TRUTH)
        assert set(found.wrong[judged]) <= {0.0, 1.0}
        assert ((found.wrong[~judged] > 0) & (found.wrong[~judged] < 1)).all()

    def test_classes_that_are_mistaken_more_often_are_more_suspicious(self, first):
        judged = first.rank <= 40
        setosa = GIVEN == "setosa"
        found = wrong_chances(first, judged, setosa)
        assert found.wrong[~judged & setosa].min() > np.median(found.wrong[~judged & ~setosa])
