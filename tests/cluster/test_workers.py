"""Tasks: which are sent to Dask together, where they run, and when they are let go."""

from time import sleep

import pytest
from clusters import local_cluster
from distributed import Client, get_worker
from waiting import wait_until

from kfhe.dask.spread import OfParts, Spread
from kfhe.dask.workers import Workers


@pytest.fixture(scope="module")
def client():
    with local_cluster(2, processes=False) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture
def graphs(client, monkeypatch):
    """How many tasks each graph has that is sent."""
    sent, get = [], client.get

    def noted(tasks, keys, **settings):
        sent.append(len(tasks))
        return get(tasks, keys, **settings)

    monkeypatch.setattr(client, "get", noted)
    return sent


def double(a):
    return 2 * a


def address(part, shared):
    return get_worker().address


def test_tasks_that_run_together_are_one_graph_and_may_need_each_other(client, graphs):
    workers = Workers(client, n_parts=2)
    with workers.together():
        one, other = workers.run(double, 1), workers.run(double, 2)
        both = workers.run(sum, [one, other])
        named = workers.run(sorted, {"a": one, "b": both})
    assert graphs == [4]
    assert workers.result([both, named]) == [6, ["a", "b"]]


def test_a_program_and_what_is_picked_of_it_are_one_graph(client, graphs):
    workers = Workers(client, n_parts=2)
    doubled = workers.each(double, OfParts([1, 2]))
    assert workers.parts(workers.each(double, doubled)) == [4, 8]
    assert graphs == [4]


def halves(a):
    return a // 2, a - a // 2


def test_a_part_that_stays_where_it_is_need_not_be_picked(client, graphs):
    workers = Workers(client, n_parts=2)
    with workers.together():
        _, more = workers.each(halves, OfParts([5, 8])).items(2)
        both = workers.run(sum, workers.pieces(more, whole=[1]))
    assert workers.result(both) == 7
    assert graphs == [4]  # for each part one, the one that picks, and the sum


def test_what_is_noted_may_be_wanted_as_well(client, graphs):
    workers = Workers(client, n_parts=2)
    noted = []
    workers.follow(lambda: noted.append(workers.want(Spread([workers.run(double, i) for i in (1, 2)]))))
    assert workers.parts(workers.each(double, OfParts([1, 2]))) == [2, 4]
    assert workers.parts(noted[0]) == [2, 4]
    assert graphs == [4]


def test_what_follows_is_in_the_graph_of_what_is_wanted_and_takes_it_from_what_is_brought(client, graphs):
    workers = Workers(client, n_parts=2)
    doubled = workers.each(double, OfParts([1, 2]))
    first, wanted = (workers.want(workers.each(function, doubled)) for function in (abs, double))
    totals = []
    workers.follow(lambda: totals.extend(workers.pieces(workers.each(sum, workers.everywhere(wanted)))))
    assert not graphs
    assert workers.parts(workers.each(double, doubled)) == [4, 8]
    assert graphs == [6]  # for each part: all that is doubled, what is small of it, and the sum
    assert workers.result(totals) == [12, 12]
    assert workers.parts(first) == [2, 4]


def test_a_task_runs_where_its_part_is_even_if_that_worker_is_busy(client):
    workers = Workers(client, n_parts=2)
    homes = workers.homes()
    parts = Spread([workers.run(double, p, at=home) for p, home in enumerate(homes)])
    shared = [client.submit(double, i, workers=[home], pure=False) for i, home in enumerate(homes)]
    workers.result(shared)
    busy = [client.submit(sleep, 0.2, workers=[homes[0]], pure=False) for _ in range(3)]
    assert workers.parts(workers.each(address, parts, shared)) == homes
    del busy


def test_nothing_is_let_go_before_more_is_sent(client):
    workers = Workers(client, n_parts=2)
    spread = workers.each(double, OfParts([1, 2]))
    keys = [task.key for task in workers.pieces(spread)]
    workers.result(workers.run(double, 1))
    del spread
    sleep(0.1)  # releases take a moment
    assert set(keys) <= set(client.futures)
    workers.result(workers.run(double, 3))
    wait_until(lambda: not set(keys) & set(client.futures))
