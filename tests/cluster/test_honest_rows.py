"""Honest categories, copies and groups on a cluster: what they are on one machine, to the bit."""

import os
import signal

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from cluster_tables import N, arrays, coded, cuts, frames, numbers, patients, weights, with_copies
from clusters import local_cluster
from distributed import Client

import kfhe
import kfhe.audit
import kfhe.dask.copies
from kfhe import CARTClassifier
from kfhe.copies import RowHashes, share_alone
from kfhe.dask import KFHEClassifier, RobustKFHEClassifier, label_quality
from kfhe.dask.reading import Reader
from kfhe.tables.columns import open_columns
from kfhe.tables.schema import ENCODED, LEFT_OUT

LOCAL = {KFHEClassifier: kfhe.KFHEClassifier, RobustKFHEClassifier: kfhe.RobustKFHEClassifier}
BOTH = [
    (KFHEClassifier, {"n_estimators": 2, "estimator": CARTClassifier(honest_categories=True)}),
    (RobustKFHEClassifier, {"n_estimators": 3}),
]
NAMES = ("X", "y", "sample_weight", "groups")


def check(kind, settings, distributed, given):
    """Fit the same rows here and there; both get what there is of X, y, weights and groups."""
    model = kind(random_state=3, **settings).fit(**dict(zip(NAMES, distributed, strict=False)))
    local = LOCAL[kind](random_state=3, **settings).fit(**dict(zip(NAMES, given, strict=False)))
    assert model.fingerprint() == local.fingerprint()
    assert getattr(model, "remarks_", None) == getattr(local, "remarks_", None)
    return model, local


def check_audit(distributed, given, **settings):
    there, here = (dict(zip(NAMES, each, strict=False)) for each in (distributed, given))
    audit = label_quality(**there, random_state=3, n_estimators=3, **settings)
    local = kfhe.audit.label_quality(**here, random_state=3, n_estimators=3, **settings)
    for name in ("quality", "suggested", "rank", "votes"):
        np.testing.assert_array_equal(getattr(audit, name), getattr(local, name), err_msg=name)
    assert audit.groups == local.groups
    assert audit.remarks == local.remarks
    return audit


def readings(model):
    schema = model.estimators_.schema
    return {schema.columns[j]: rule.reading for j, rule in schema.rules}


# Honest categories


@pytest.mark.parametrize(("kind", "settings"), BOTH)
def test_many_categories_are_encoded_or_left_out(client, kind, settings):
    given = coded()
    model, local = check(kind, settings, frames(5, *given), given)
    read = readings(model)
    assert (read["clinic"], read["name"], read["street"]) == (ENCODED, LEFT_OUT, LEFT_OUT)
    mine, others = (each.estimators_.schema.encodings[1] for each in (model, local))
    assert mine.categories == others.categories
    np.testing.assert_array_equal(mine.shares, others.shares)
    rows = given[0].iloc[:50]
    np.testing.assert_array_equal(model.predict_proba(rows), local.predict_proba(rows))


@pytest.mark.parametrize(("kind", "settings"), BOTH)
def test_weighted_rows_count_for_as_much_as_they_weigh(client, kind, settings):
    given = (*coded(), pd.Series(weights()))
    model, _ = check(kind, settings, frames(4, *given), given)
    assert readings(model)["clinic"] == ENCODED


def test_a_partition_whose_rows_weigh_nothing_says_nothing(client):
    given = (*coded(), pd.Series(weights()))
    given[2].iloc[: cuts(5)[0]] = 0.0
    check(*BOTH[0], frames(5, *given), given)


def test_features_of_a_sample_of_rows_are_binned_by_the_same_rows(client):
    X, y = coded(80_000)  # more than bins are chosen by
    given = X[["side", "name", "clinic", "size"]], y
    settings = {"n_estimators": 1, "estimator": CARTClassifier(honest_categories=True, max_leaf_nodes=20)}
    model, _ = check(KFHEClassifier, settings, frames(4, *given), given)
    assert readings(model)["clinic"] == ENCODED


def test_categories_that_are_numbers_are_encoded_too(client):
    X, y = coded()
    codes = X["clinic"].str[1:].astype(float).to_numpy()
    given = np.column_stack([X["size"].astype(float), codes]), y.to_numpy().astype(str)
    tree = CARTClassifier(honest_categories=True, categorical_features=[1])
    settings = {"n_estimators": 1, "estimator": tree}
    model, local = check(KFHEClassifier, settings, arrays(3, *given), given)
    assert model.estimators_.schema.rules == local.estimators_.schema.rules != ()


def test_an_audit_encodes_them(client):
    given = (*coded(), pd.Series(weights()))
    audit = check_audit(frames(5, *given), given)
    assert any("'name'" in remark for remark in audit.remarks)
    check_audit(frames(5, *given[:2]), given[:2])


def test_what_there_is_to_say_of_a_table_is_said(client):
    X, y = coded()
    X["told"] = y + np.where(np.arange(N) % 3, "", "!")
    given = X, y
    with pytest.warns(kfhe.TableWarning, match="column 'told' predicts nearly all labels"):
        model, _ = check(RobustKFHEClassifier, {"n_estimators": 3}, frames(4, *given), given)
    said = "\n".join(model.remarks_)
    assert "'name' has (nearly) as many values as rows" in said
    assert "'same' has one value only" in said
    assert "'told' predicts nearly all labels" in said


# Copies


@pytest.mark.parametrize("n_partitions", [1, 5])
def test_copies_are_found_and_drawn_together(client, n_partitions):
    given = with_copies(*coded())
    model, local = check(RobustKFHEClassifier, {"n_estimators": 3}, frames(n_partitions, *given), given)
    assert "9,000 of 30,000 rows are copies of others" in model.remarks_[0]
    assert model.oob_score_ == local.oob_score_


def test_copies_are_found_whatever_their_ids(client):
    X, y = with_copies(*coded())
    given = X.assign(name=[f"row {row}" for row in range(N)]), y
    model, _ = check(RobustKFHEClassifier, {"n_estimators": 3}, frames(5, *given), given)
    assert "9,000 of 30,000 rows are copies of others" in model.remarks_[0]


def test_copies_among_weighted_rows(client):
    given = (*with_copies(*coded()), pd.Series(weights()))
    model, _ = check(RobustKFHEClassifier, {"n_estimators": 3}, frames(5, *given), given)
    assert "rows are copies of others" in model.remarks_[0]


def test_an_audit_keeps_copies_together(client):
    given = with_copies(*coded())
    audit = check_audit(frames(5, *given), given)
    assert len(audit.groups) == 21_000


def grid():
    """Rows of few values, many of them equal by chance, and nearly equal; labels of which some are wrong."""
    rng = np.random.default_rng(7)
    X = pd.DataFrame(rng.integers(0, 9, size=(N, 4)).astype(float), columns=list("abcd"))
    y = pd.Series(np.where(rng.random(N) < 0.2, rng.integers(0, 2, size=N), X["a"] > 4).astype(int))
    return X, y


@pytest.mark.parametrize("copied", [False, True])
def test_the_labels_tell_whether_rows_of_few_values_are_copies(client, copied):
    given = with_copies(*grid(), share=0.8) if copied else grid()
    hashes = RowHashes(open_columns(given[0]))
    assert share_alone(hashes, hashes.equal) < 0.5
    model, _ = check(RobustKFHEClassifier, {"n_estimators": 2}, frames(4, *given), given)
    assert any("copies" in remark for remark in model.remarks_) == copied


def test_equal_rows_of_different_labels_are_not_called_hard(client):
    """After the first trees, rows that look hard would be drawn more often."""
    rng = np.random.default_rng(7)
    X = pd.DataFrame(rng.integers(0, 3, size=(N, 3)).astype(float), columns=list("abc"))
    given = X, pd.Series((rng.random(N) < 0.1 + 0.4 * X["a"]).astype(int))
    model, _ = check(RobustKFHEClassifier, {"n_estimators": 30}, frames(4, *given), given)
    np.testing.assert_allclose(model.trace_["effective_sample_size"], N)


def test_different_rows_are_counted_in_shares_if_there_are_many(client, monkeypatch):
    monkeypatch.setattr(kfhe.dask.copies, "ROWS_AT_ONCE", 10_000)
    given = with_copies(*coded())
    model, _ = check(RobustKFHEClassifier, {"n_estimators": 1}, frames(3, *given), given)
    assert "copies" in model.remarks_[0]


def test_rows_are_not_collected_if_few_are_equal(client, monkeypatch):
    monkeypatch.setattr(kfhe.dask.copies.HashesOfParts, "of", None)
    RobustKFHEClassifier(n_estimators=1, random_state=0).fit(*arrays(3, *numbers()))


def test_text_is_text_in_parts_that_have_none(client):
    X, y = with_copies(*coded())
    given = X[["clinic", "name"]].to_numpy(dtype=object), y.to_numpy().astype(str)
    given[0][: cuts(4)[0], 0] = None  # so that the first partition does not know that it is text
    given[0][-9000:] = given[0][:9000]
    spread = arrays(4, *given)
    hashes = kfhe.dask.copies.HashesOfParts(Reader(KFHEClassifier(), *spread).rows().table)
    np.testing.assert_array_equal(hashes.whole, RowHashes(open_columns(given[0])).whole)
    check(RobustKFHEClassifier, {"n_estimators": 1}, spread, given)


# Groups


@pytest.mark.parametrize(("kind", "settings"), BOTH)
def test_groups_are_drawn_together(client, kind, settings):
    given = (*coded(), pd.Series(weights()), patients())
    model, local = check(kind, settings, frames(5, *given), given)
    alone = local.fit(*given[:3]).fingerprint()
    assert model.fingerprint() != alone


def test_an_audit_of_groups(client):
    given = (*coded(), pd.Series(weights()), patients())
    audit = check_audit(frames(5, *given), given)
    assert len(audit.groups) == given[3].nunique()


def test_groups_that_are_numbers_of_several_types(client):
    X, y = (each[:900] for each in numbers())
    groups = np.arange(900) // 7
    parts = [groups[:300], groups[300:600].astype(float), groups[600:]]
    spread = [da.from_array(each, chunks=(300, *each.shape[1:])) for each in (X, y)]
    given = da.concatenate([da.from_array(each) for each in parts])
    settings = {"n_estimators": 2, "random_state": 0}
    model = RobustKFHEClassifier(**settings).fit(*spread, groups=given)
    local = kfhe.RobustKFHEClassifier(**settings).fit(X, y, groups=groups)
    assert model.fingerprint() == local.fingerprint()


def test_samples_of_groups_that_lack_a_rare_class_are_drawn_again(client):
    X, y = numbers()
    y[17] = 3
    groups = np.arange(N) // 2
    for seed in range(4, 6):  # of the second the first sample has no row of the class
        given = {"n_estimators": 1, "random_state": seed}
        model = KFHEClassifier(**given).fit(*arrays(3, X, y), groups=arrays(3, groups)[0])
        local = kfhe.KFHEClassifier(**given).fit(X, y, groups=groups)
        assert model.fingerprint() == local.fingerprint()


def test_training_goes_on_with_the_same_groups_only(client):
    X, y = numbers()
    groups = np.arange(N) // 5
    given, own = arrays(3, X, y), arrays(3, groups)[0]
    settings = {"random_state": 0, "warm_start": True}
    model = RobustKFHEClassifier(n_estimators=1, **settings).fit(*given, groups=own)
    model.set_params(n_estimators=3).fit(*given, groups=own)
    local = kfhe.RobustKFHEClassifier(n_estimators=3, random_state=0).fit(X, y, groups=groups)
    assert model.fingerprint() == local.fingerprint()
    with pytest.raises(ValueError, match="warm_start=True needs the data of the first fit, got other data"):
        model.set_params(n_estimators=4).fit(*given, groups=own + (own > 5))


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.where(np.arange(N) == 8, np.nan, np.arange(N)), "groups has gaps in 1 row"),
        (np.array([*map(str, range(9000)), *range(9000, N)], dtype=object), "groups mixes text and other"),
        (np.array([*map(str, range(cuts(3)[0])), *range(cuts(3)[0], N)], dtype=object), "groups mixes text"),
    ],
)
def test_groups_that_make_no_sense_are_told(client, groups, message):
    given = arrays(3, *numbers(), groups)
    with pytest.raises(ValueError, match=message):
        KFHEClassifier().fit(*given[:2], groups=given[2])


def test_groups_have_to_be_partitioned_as_rows_are(client):
    X, y = arrays(3, *numbers())
    with pytest.raises(ValueError, match="groups has 2 partitions and X has 3; they must be partitioned"):
        KFHEClassifier().fit(X, y, groups=arrays(2, np.arange(N))[0])
    with pytest.raises(ValueError, match=r"groups has \d+ rows in a partition where X has"):
        KFHEClassifier().fit(X, y, groups=arrays(3, np.arange(N + 9))[0])
    with pytest.raises(TypeError, match="groups is a ndarray; accepted are Dask's"):
        label_quality(X, y, groups=np.arange(N))


@pytest.mark.parametrize("n_workers", [1, 2])
def test_worker_processes(n_workers):
    given = with_copies(*coded())
    with local_cluster(n_workers) as cluster, Client(cluster):
        check(RobustKFHEClassifier, {"n_estimators": 2}, frames(3, *given), given)


def test_a_worker_that_is_killed_changes_nothing():
    given = with_copies(*coded())
    with local_cluster(2) as cluster, Client(cluster) as client:
        pids = list(client.run(os.getpid).values())

        def kill(row):
            if row.iteration == 1:
                os.kill(pids[0], signal.SIGKILL)

        settings = {"n_estimators": 3, "random_state": 0}
        model = RobustKFHEClassifier(**settings).fit(*frames(4, *given), callbacks=[kill])
        assert pids[0] not in client.run(os.getpid).values()
    assert model.fingerprint() == kfhe.RobustKFHEClassifier(**settings).fit(*given).fingerprint()
