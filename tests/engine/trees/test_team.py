"""The team: threads only where they pay, and where that is not clear the faster way, as timed."""

import pytest

from kfhe.engine.trees.team import Team

BETWEEN = 100_000  # cells of a tree for which threads may pay, or not


def sizes(n_trees, alone, together, n_threads=3):
    """Grow trees that take so many seconds either way; return how many threads each was given."""
    team = Team(n_threads)
    chosen = []
    for _ in range(n_trees):
        chosen.append(team.size(BETWEEN))
        team.worked(chosen[-1], BETWEEN, together if chosen[-1] > 1 else alone)
    return chosen


@pytest.mark.parametrize(("n_cells", "size"), [(32_767, 1), (32_768, 3), (2**22 - 1, 3), (2**22, 3)])
def test_the_first_tree_is_grown_by_threads_unless_it_is_small(n_cells, size):
    assert Team(3).size(n_cells) == size


def test_a_large_tree_is_grown_by_threads_however_slow_they_were():
    team = Team(3)
    team.worked(1, BETWEEN, 1.0)
    team.worked(3, BETWEEN, 100.0)
    assert team.size(2**22 - 1) == 1
    assert team.size(2**22) == 3


def test_both_ways_are_tried_and_then_the_faster_one_is_taken():
    assert sizes(15, alone=1.0, together=0.5) == [3, 1, *[3] * 13]
    assert sizes(15, alone=0.5, together=1.0) == [3, 1, *[1] * 13]


def test_each_sixteenth_tree_tries_the_slower_way_again():
    chosen = sizes(64, alone=2.0, together=1.0)
    assert [t for t, size in enumerate(chosen, start=1) if size == 1] == [2, 16, 32, 48, 64]


def test_a_hopeless_way_is_not_tried_again():
    assert sizes(64, alone=1.0, together=3.9).count(3) == 5
    assert sizes(64, alone=1.0, together=4.0).count(3) == 1


def test_times_are_compared_per_cell():
    team = Team(2)
    team.worked(1, 10 * BETWEEN, 5.0)
    team.worked(2, BETWEEN, 1.0)
    assert team.size(BETWEEN) == 1


def test_a_way_that_has_become_faster_is_taken_up():
    team = Team(2)
    team.worked(1, BETWEEN, 1.0)
    team.worked(2, BETWEEN, 2.0)
    assert team.size(BETWEEN) == 1
    team.worked(2, BETWEEN, 0.5)
    assert team.size(BETWEEN) == 2


def test_one_thread_is_a_team_of_one():
    assert Team(1).size(2**30) == 1


def test_threads_can_be_forced_upon_the_smallest_tree():
    team = Team(2, always=True)
    team.worked(1, 1, 0.001)
    team.worked(2, 1, 10.0)
    assert team.size(1) == 2
