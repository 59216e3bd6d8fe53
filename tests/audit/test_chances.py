"""How likely labels are wrong: by votes that are right about the classes, and by what people found."""

import numpy as np
import pytest

from kfhe.audit import LabelAudit
from kfhe.audit.chances import chances
from kfhe.forest import sharpened
from kfhe.noise import flip_labels
from kfhe.review import wrong_chances

LOOKS = (10, 25, 50)


def voted(rate, *, n=600, n_classes=3, sharpness=2.0, seed=0):
    """Return timid votes on rows, and labels of which some went wrong by chance; and which."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(n_classes, 0.25), size=n) * 0.98 + 0.02 / n_classes
    true = (shares.cumsum(axis=1) < rng.uniform(size=(n, 1))).sum(axis=1).clip(max=n_classes - 1)
    labels = flip_labels(true, rate, random_state=seed).astype(np.int32)
    return sharpened(shares, 1 / sharpness), labels, labels != true


def looked_at(votes, labels, count):
    """Return the first suspects: those that the votes speak against."""
    rank = np.argsort(np.argsort(votes[np.arange(len(labels)), labels], kind="stable"))
    return rank < count


class TestByVotes:
    @pytest.mark.parametrize("rate", [0.05, 0.1, 0.2, 0.3])
    @pytest.mark.parametrize("n_classes", [2, 3, 7])
    def test_the_share_and_its_range_are_found(self, rate, n_classes):
        votes, labels, wrong = voted(rate, n=2000, n_classes=n_classes)
        found = chances(votes, labels)
        assert found.share == pytest.approx(wrong.mean(), abs=0.04)
        assert found.low < wrong.mean() < found.high
        assert found.wrong.mean() == pytest.approx(found.share, rel=1e-5)

    def test_they_are_chances(self):
        """Of the labels that are wrong with a chance of about one half, about half are wrong."""
        votes, labels, wrong = voted(0.2, n=20_000)
        found = chances(votes, labels).wrong
        for low in (0.1, 0.4, 0.7):
            alike = (found > low) & (found < low + 0.2)
            assert wrong[alike].mean() == pytest.approx(found[alike].mean(), abs=0.07)

    def test_rows_without_votes_are_wrong_as_often_as_any(self):
        votes, labels, _ = voted(0.2)
        votes[::3] = np.nan
        found = chances(votes, labels)
        assert len(set(found.wrong[::3])) == 1
        assert found.wrong[0] == pytest.approx(found.share, abs=0.05)

    def test_no_votes_say_nothing(self):
        found = chances(np.full((9, 3), np.nan), np.arange(9, dtype=np.int32) % 3)
        assert (found.share, found.low, found.high) == (0, 0, 1)

    @pytest.mark.parametrize("n", [2, 20, 200, 2000])
    def test_votes_for_all_labels_leave_room_for_three_wrong_ones(self, n):
        """None of n rows looks wrong: with 95 %, that happens as long as 3 / n are (the rule of three)."""
        labels = (np.arange(n) % 2).astype(np.int32)
        found = chances(np.eye(2)[labels], labels)
        assert found.low <= found.share < 0.02
        assert found.low < 0.005
        assert min(3 / n, 1) <= found.high < 3 / n + 0.01

    @pytest.mark.parametrize("n", [2, 20, 200])
    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_votes_against_all_labels_or_for_nothing_lead_to_no_nonsense(self, n, n_classes):
        labels = (np.arange(n) % n_classes).astype(np.int32)
        for votes in (np.eye(n_classes)[(labels + 1) % n_classes], np.full((n, n_classes), 1 / n_classes)):
            found = chances(votes, labels)
            assert 0 <= found.low <= found.share <= found.high <= 1
            assert found.high >= 3 / n or n == 2
            assert ((found.wrong >= 0) & (found.wrong <= 1)).all()

    def test_an_audit_and_its_chances_say_the_same(self):
        votes, labels, _ = voted(0.1)
        audit = LabelAudit.from_votes(np.arange(3), labels, votes)
        nobody = np.zeros(len(labels), dtype=bool)
        found = wrong_chances(audit, nobody, nobody)
        assert (audit.estimated_share, audit.share_range) == (found.share, (found.low, found.high))
        assert audit.class_shares.tolist() == found.of_class.tolist()

    def test_each_class_has_a_share_of_its_own(self):
        votes, labels, _ = voted(0.0, n=2000)
        labels[np.flatnonzero(labels == 1)[::4]] = 2  # a quarter of the second class is called the third one
        found = chances(votes, labels)
        assert found.of_class @ np.bincount(labels) / 2000 == pytest.approx(found.share, rel=1e-4)
        assert found.of_class[2] > 2 * max(found.of_class[:2])


class TestByLooks:
    @pytest.mark.parametrize("n_classes", [2, 3])
    @pytest.mark.parametrize("looks", [1, 3, 10, 19])
    def test_the_range_leaves_room_for_what_was_found(self, looks, n_classes):
        for seed, found_wrong in enumerate((True, False) * 3):
            votes, labels, _ = voted(0, n=20, n_classes=n_classes, seed=seed)
            seen = looked_at(votes, labels, looks)
            found = chances(votes, labels, seen, seen & found_wrong)
            known = seen.mean()
            assert found.low >= known if found_wrong else found.high <= 1 - known

    @pytest.mark.parametrize("rate", [0.05, 0.1, 0.2])
    def test_honest_looks_make_it_no_worse(self, rate):
        errors, widths = np.zeros((10, 4)), np.zeros((10, 4))
        for seed in range(10):
            votes, labels, wrong = voted(rate, n=400, sharpness=1.5, seed=seed)
            for k, count in enumerate((0, *LOOKS)):
                found = chances(votes, labels, looked_at(votes, labels, count), wrong)
                errors[seed, k] = abs(found.share - wrong.mean())
                widths[seed, k] = found.high - found.low
        assert (errors.mean(axis=0)[1:] < [0.05, 0.045, 0.04]).all()
        widths = np.median(widths, axis=0)
        assert widths[1] > widths[2] > widths[3]
        assert widths[3] < 0.25

    def test_mistakes_that_votes_have_learnt_are_found_by_people(self):
        """Half of a class is called another one, and the votes half believe it."""
        rng = np.random.default_rng(0)
        true = rng.integers(2, size=1000).astype(np.int32)
        wrong = (true == 1) & (rng.uniform(size=1000) < 0.5)
        labels = np.where(wrong, 0, true).astype(np.int32)
        share = np.where(true == 1, 0.5, 0.05) + rng.uniform(-0.04, 0.2, size=1000)
        votes = np.column_stack([1 - share, share])
        before = chances(votes, labels)
        after = chances(votes, labels, looked_at(votes, labels, 50), wrong)
        assert before.high < 0.03
        assert before.high < after.low < wrong.mean() + 0.05

    @pytest.mark.parametrize("n_classes", [2, 5])
    @pytest.mark.parametrize("count", [1, 2, 10, 50])
    @pytest.mark.parametrize("verdict", ["wrong", "right", "in turns"])
    def test_no_decisions_lead_to_nonsense(self, n_classes, count, verdict):
        votes, labels, _ = voted(0.1, n=300, n_classes=n_classes)
        judged = looked_at(votes, labels, count)
        wrong = {"wrong": judged, "right": ~judged, "in turns": np.arange(300) % 2 == 0}[verdict]
        found = chances(votes, labels, judged, wrong)
        assert (judged & wrong).mean() <= found.low <= found.share <= found.high
        assert found.high <= 1 - (judged & ~wrong).mean()
        before = chances(votes, labels).share
        if verdict == "right":
            assert found.share <= before
        assert count > 10 or abs(found.share - before) < 0.25

    def test_two_alike_that_were_judged_differently_leave_it_nearly_as_it_was(self):
        votes, labels, _ = voted(0.1)
        first, second = np.flatnonzero(looked_at(votes, labels, 2))
        votes[second], labels[second] = votes[first], labels[first]
        judged, wrong = np.zeros((2, len(labels)), dtype=bool)
        judged[[first, second]] = wrong[first] = True
        before, after = chances(votes, labels), chances(votes, labels, judged, wrong)
        assert after.share == pytest.approx(before.share, abs=0.04)

    def test_looks_at_one_class_say_less_of_the_others(self):
        votes, labels, _ = voted(0.1, n=1000)
        judged = looked_at(votes, labels, 300) & (labels == 0)
        before, after = chances(votes, labels), chances(votes, labels, judged, judged)
        rest = ~judged
        risen = [
            after.wrong[rest & (labels == k)].mean() / before.wrong[rest & (labels == k)].mean()
            for k in range(3)
        ]
        assert risen[0] > max(risen[1:])

    def test_all_is_known_in_the_end(self):
        votes, labels, wrong = voted(0.1, n=200)
        found = chances(votes, labels, np.ones(200, dtype=bool), wrong)
        assert found.share == pytest.approx(wrong.mean(), abs=1e-5)
        assert found.high - found.low < 1e-3
