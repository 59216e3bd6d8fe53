"""Batches that are made ahead: in order, stages at the same time, and errors in their place."""

from threading import Barrier

import pytest

from kfhe.cli.scoring import ahead


def test_items_come_in_order():
    assert list(ahead(iter(range(1, 50)))) == [*range(1, 50)]
    assert list(ahead(iter([]))) == []


def test_the_next_item_is_made_while_one_is_worked_on():
    both_busy = Barrier(2, timeout=20)

    def made():
        yield 1
        both_busy.wait()
        yield 2

    items = ahead(made())
    assert next(items) == 1
    both_busy.wait()
    assert list(items) == [2]


def test_no_more_than_one_item_waits():
    made = []
    items = ahead(made.append(k) or k for k in range(1, 9))
    next(items)
    items.close()
    assert made == [1, 2]


def test_what_goes_wrong_is_raised_behind_the_items_before_it():
    def made():
        yield 1
        raise ValueError("row 5")

    items = ahead(ahead(made()))
    assert next(items) == 1
    with pytest.raises(ValueError, match="row 5"):
        next(items)
