"""Steps that are noted for parts of rows: what is one task, what it returns, and what never runs."""

import gc
import weakref

import pytest

import kfhe.dask.workers
from kfhe.dask.spread import OfParts, Shared, Spread
from kfhe.dask.workers import Workers


class Run(list):
    """Notes what was run in place of Dask's tasks, and runs it at once."""

    def __call__(self, function, *arguments, at=None):
        self.append(getattr(function, "name", None) or function.__name__)
        return function(*arguments)


@pytest.fixture
def workers(monkeypatch):
    workers = Workers(None, n_parts=2)
    monkeypatch.setattr(workers, "run", Run())
    monkeypatch.setattr(workers, "result", list)
    return workers


def add(a, b):
    return a + b


def double(a):
    return 2 * a


def halves(a):
    return a // 2, a - a // 2


def test_nothing_runs_before_it_is_asked_for(workers):
    spread = workers.each(double, OfParts([1, 2]))
    assert workers.run == []
    assert workers.parts(spread) == [2, 4]
    assert workers.run == ["double"] * 2


def test_steps_that_lead_to_one_another_are_one_task_that_returns_the_last(workers):
    spread = workers.each(add, workers.each(double, OfParts([1, 2])), 10)
    assert workers.parts(spread) == [12, 14]
    assert workers.run == ["double+add"] * 2


def test_what_is_still_held_is_returned_too_and_not_made_again(workers):
    doubled = workers.each(double, OfParts([1, 2]))
    assert workers.parts(workers.each(add, doubled, 10)) == [12, 14]
    del workers.run[:]
    assert workers.parts(doubled) == [2, 4]
    assert workers.run == ["all_picked"] * 2
    assert workers.parts(workers.each(add, doubled, 20)) == [22, 24]
    assert workers.run == ["all_picked"] * 2 + ["add"] * 2


def test_what_nobody_holds_never_runs(workers):
    workers.each(double, OfParts([1, 2]))
    spread = workers.each(double, OfParts([3, 4]))
    workers.each(add, spread, 1)
    assert workers.parts(spread) == [6, 8]
    assert workers.run == ["double"] * 2


def test_steps_that_share_nothing_are_tasks_of_their_own_when_they_are_asked_for(workers):
    given = workers.each(double, OfParts([1, 2]))
    workers.parts(given)
    del workers.run[:]
    one, other = workers.each(double, given), workers.each(add, given, 1)
    assert workers.parts(one) == [4, 8]
    assert workers.run == ["double"] * 2
    assert workers.parts(other) == [3, 5]
    assert workers.run == ["double"] * 2 + ["add"] * 2


def test_items_of_tuples_are_found_before_and_after_their_task_has_run(workers):
    less, more = workers.each(halves, OfParts([5, 7])).items(2)
    assert workers.parts(workers.each(add, less, more)) == [5, 7]
    assert workers.parts(workers.each(double, more)) == [6, 8]
    assert [workers.parts(each) for each in (less, more)] == [[2, 3], [3, 4]]


def test_two_paths_to_one_result_are_one_task(workers):
    doubled = workers.each(double, OfParts([1, 2]))
    spread = workers.each(add, workers.each(add, doubled, 1), workers.each(add, doubled, 2))
    assert workers.parts(spread) == [7, 11]
    assert workers.run[:2] == ["double+add+add+add"] * 2


def test_what_is_no_longer_needed_is_let_go_while_a_task_runs(workers):
    class Large:
        pass

    seen = []

    def made(i):
        large = Large()
        seen.append(weakref.ref(large))
        return large

    def used(large):
        return 1

    def after(one):
        gc.collect()
        return [each() for each in seen]

    spread = workers.each(after, workers.each(used, workers.each(made, OfParts([0]))))
    workers.n_parts = 1
    assert workers.parts(spread) == [[None]]


def test_what_is_wanted_comes_with_what_is_asked_for_next(workers):
    given = workers.each(double, OfParts([1, 2]))
    workers.parts(given)
    del workers.run[:]
    wanted, asked = workers.want(workers.each(add, given, 1)), workers.each(add, given, 2)
    assert workers.parts(asked) == [4, 6]
    assert workers.run == ["add+add"] * 2 + ["all_picked"] * 2
    assert workers.parts(wanted) == [3, 5]
    assert len(workers.run) == 4


def test_a_promise_is_kept_when_it_is_needed(workers):
    asked = []

    def promise():
        asked.append(1)
        return workers.each(double, OfParts([1, 2]))

    spread = Spread.promised(promise)
    after = Spread.promised(lambda: workers.each(add, spread, 1))
    assert not asked
    assert workers.parts(after) == [3, 5]
    assert workers.parts(workers.each(add, spread.resolved(), 0)) == [2, 4]
    assert asked == [1]


@pytest.mark.parametrize(("few", "tasks"), [(1, ["as_is"]), (2, [])])
def test_what_many_parts_share_is_one_task_for_all_of_them(workers, monkeypatch, few, tasks):
    monkeypatch.setattr(kfhe.dask.workers, "FEW_PARTS", few)
    spread = workers.each(add, workers.each(add, OfParts([1, 2]), Shared(10)), Shared(100))
    assert workers.parts(spread) == [111, 112]
    assert workers.run == tasks + ["add+add"] * 2


def test_all_that_a_single_part_needs_is_one_task(workers):
    workers.n_parts = 1
    total = workers.each(sum, workers.everywhere(workers.each(add, OfParts([1]), Shared(10))))
    spread = workers.each(add, total, 100)
    del total
    assert workers.parts(spread) == [111]
    assert workers.run == ["add+in_list+sum+add"]


def test_all_that_leads_to_what_was_wanted_first_runs_first(workers):
    given = workers.each(double, OfParts([1, 2]))
    workers.parts(given)
    del workers.run[:]
    doubled = workers.each(double, given)
    workers.want(workers.each(add, given, 1))
    assert workers.parts(doubled) == [4, 8]
    assert workers.run[:2] == ["add+double"] * 2


def test_a_whole_and_an_item_of_it_can_be_brought_together(workers):
    whole = workers.each(halves, OfParts([3, 8]))
    _, second = whole.items(2)
    workers.want(second)
    assert workers.parts(whole) == [(1, 2), (4, 4)]
    assert workers.parts(second) == [2, 4]
