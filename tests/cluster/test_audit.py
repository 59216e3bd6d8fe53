"""The label audit on a cluster: that of one machine, to the bit."""

import os
import signal
import sys
from threading import Timer

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from cluster_tables import arrays, cuts, frames, mixed, numbers, weights
from clusters import local_cluster
from distributed import Client
from waiting import PATIENCE

import kfhe.audit
from kfhe.audit import votes as votes_module
from kfhe.dask import ClusterLostError, label_quality
from kfhe.dask import audit as audit_module
from kfhe.dask.audit import Collected

ARRAYS = ("given", "quality", "suggested", "rank", "suspects", "classes", "votes")


def assert_same(audit, local):
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(audit, name), getattr(local, name), err_msg=name)
    assert audit.estimated_share == local.estimated_share
    assert audit.n_estimators == local.n_estimators


def check(distributed, given, **settings):
    """Audit rows here and there; weights are the third of what is given, if there are any."""
    names = ("X", "y", "sample_weight")
    spread = dict(zip(names, distributed, strict=False))
    here = dict(zip(names, given, strict=False))
    audit = label_quality(spread.pop("X"), spread.pop("y"), random_state=3, **spread, **settings)
    local = kfhe.audit.label_quality(random_state=3, **here, **settings)
    assert_same(audit, local)
    return audit


@pytest.mark.parametrize("n_partitions", [1, 5])
def test_numbers_with_gaps(client, n_partitions):
    given = numbers()
    check(arrays(n_partitions, *given), given, n_estimators=3)


def test_frames_with_categories_dates_and_gaps(client):
    given = mixed()
    audit = check(frames(5, *given), given, n_estimators=3)
    assert audit.findings is audit.worst is audit.index is None
    assert audit.to_frame().index.name == "row"
    with pytest.raises(ValueError, match="needs the rows, as a dense table on one machine"):
        audit.issues()


def test_rows_of_no_weight_are_judged(client):
    given = (*numbers(), weights())
    given[2][: cuts(5)[0]] = 0  # a whole partition
    audit = check(arrays(5, *given), given, n_estimators=3)
    assert (audit.suggested != audit.given)[given[2] == 0].any()


def test_equal_weights_change_nothing(client):
    X, y = (each[:500] for each in numbers())
    spread = [da.from_array(each, chunks=200) for each in (X, y, np.full(500, 0.3))]
    audit = label_quality(
        spread[0].rechunk((200, 6)), spread[1], sample_weight=spread[2], random_state=0, n_estimators=3
    )
    assert_same(audit, kfhe.audit.label_quality(X, y, random_state=0, n_estimators=3))


def test_samples_that_lack_a_rare_class_are_not_drawn_again(client):
    given = [each[:300] for each in numbers()]
    given[1][17] = 3
    check([da.from_array(each, chunks=(100, *each.shape[1:])) for each in given], given, n_estimators=6)


def test_trees_that_have_seen_rows_of_no_weight_only_have_no_say(client):
    X, y = (each[:300] for each in numbers())
    few = np.where(np.arange(300) % 150 == 1, 1.0, 0.0)
    given = X, y, few
    check([da.from_array(each, chunks=(100, *each.shape[1:])) for each in given], given, n_estimators=12)


def test_early_stopping_ends_it_at_the_same_tree(client, monkeypatch):
    for module in (votes_module, audit_module):
        monkeypatch.setattr(module, "BLOCK", 10)
    monkeypatch.setattr(votes_module, "SETTLED", 0.5)
    given = [each[:80] for each in numbers()]
    spread = [da.from_array(each, chunks=(30, *each.shape[1:])) for each in given]
    audit = check(spread, given, n_estimators=70, early_stopping=True)
    assert 10 < audit.n_estimators < 70


def test_votes_are_collected_in_blocks(client, monkeypatch):
    monkeypatch.setattr(audit_module, "BLOCK", 2)
    seen = []

    def watched(self, news):
        seen.append(news[1])
        return added(self, news)

    added = Collected.add
    monkeypatch.setattr(Collected, "add", watched)
    given = [each[:300] for each in numbers()]
    check([da.from_array(each, chunks=(100, *each.shape[1:])) for each in given], given, n_estimators=5)
    assert seen == [2, 2, 1]


def test_a_bar_tells_how_far_it_is(client, capsys):
    X, y = (each[:100] for each in numbers())
    X, y = da.from_array(X), da.from_array(y)
    label_quality(X, y, n_estimators=2, random_state=0)
    assert capsys.readouterr().err == ""
    label_quality(X, y, n_estimators=2, random_state=0, verbose=1)
    shown = capsys.readouterr().err
    assert "Audit" in shown
    assert "2/2" in shown


def acting(monkeypatch, act):
    """Have something done after the first trees."""
    monkeypatch.setattr(audit_module, "BLOCK", 1)
    added = Collected.add

    def add(self, news):
        if self.n_trees == 1:
            act()
        return added(self, news)

    monkeypatch.setattr(Collected, "add", add)


@pytest.mark.parametrize("which", [0, 1])
def test_a_worker_that_is_killed_changes_nothing(monkeypatch, which):
    given = numbers()
    with local_cluster(2) as cluster, Client(cluster) as client:
        pids = list(client.run(os.getpid).values())
        killed = []
        acting(monkeypatch, lambda: killed or killed.append(os.kill(pids[which], signal.SIGKILL)))
        check(arrays(4, *given), given, n_estimators=8)
        assert pids[which] not in client.run(os.getpid).values()


def test_a_cluster_that_is_gone_is_told(monkeypatch):
    with local_cluster(1, processes=False) as cluster, Client(cluster):
        acting(monkeypatch, cluster.close)
        with pytest.raises(ClusterLostError, match=r"the cluster was lost: .*Nothing is kept of the audit"):
            label_quality(*arrays(2, *numbers()), n_estimators=60)


@pytest.mark.skipif(sys.platform == "win32", reason="no signals between processes")
def test_ctrl_c_ends_it_and_the_cluster_is_free(client, monkeypatch):
    acting(monkeypatch, lambda: Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start())
    with pytest.raises(KeyboardInterrupt):
        label_quality(*arrays(2, *numbers()), n_estimators=9999)
    assert client.submit(sum, [1, 2]).result(timeout=PATIENCE) == 3


def test_one_class_has_nothing_to_be_audited(client):
    X, _ = numbers()
    with pytest.raises(ValueError, match=r"y has one class only \(0\): an audit needs at least two"):
        label_quality(*arrays(2, X, np.zeros(len(X), dtype=int)))


def test_partitions_have_to_match(client):
    X, y = numbers()
    with pytest.raises(ValueError, match="y has 2 partitions and X has 3; they must be partitioned alike"):
        label_quality(arrays(3, X)[0], arrays(2, y)[0])
    few, labels = da.from_array(X[:50], chunks=((20, 30), 6)), da.from_array(y[:50], chunks=((20, 30),))
    unlike = da.from_array(np.ones(50), chunks=((30, 20),))
    with pytest.raises(ValueError, match=r"sample_weight has (20|30) rows in a partition where X has"):
        label_quality(few, labels, sample_weight=unlike)


@pytest.mark.parametrize(
    ("weight", "message"), [(0.0, "all weights are zero"), (-1.0, "negative values"), (np.nan, "NaN")]
)
def test_weights_that_make_no_sense_are_told(client, weight, message):
    X, y = (da.from_array(each[:50], chunks=-1) for each in numbers())
    with pytest.raises(ValueError, match=message):
        label_quality(X, y, sample_weight=da.full(50, weight))


def test_tables_of_this_machine_are_refused(client):
    X, y = mixed()
    with pytest.raises(TypeError, match="X is a DataFrame; accepted are Dask's data frames"):
        label_quality(X, y)
    with pytest.raises(TypeError, match="y is a Series; accepted are Dask's data frames, series and arrays"):
        label_quality(frames(2, X)[0], pd.Series(y))


@pytest.mark.parametrize("settings", [{"n_estimators": 0}, {"early_stopping": "never"}, {"verbose": -1}])
def test_parameters_are_checked(settings):
    with pytest.raises(ValueError, match=f"The '{next(iter(settings))}' parameter of label_quality must be"):
        label_quality(*arrays(2, *numbers()), **settings)
