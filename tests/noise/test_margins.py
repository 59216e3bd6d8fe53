"""Where mistakes are: drawn by the order of values, with the chances that are promised."""

import numpy as np
import pytest

from kfhe.noise.margins import by_margin, by_neighbours, draw_low


def test_low_values_are_drawn_by_chances_that_fade_from_one_half(rng):
    values = np.arange(100.0) ** 3
    counts = np.zeros(100)
    for _ in range(3000):
        drawn = draw_low(values, 20, rng)
        assert len(set(drawn.tolist())) == 20
        counts[drawn] += 1
    shares = counts / 3000
    assert shares[0] == pytest.approx(0.5, abs=0.04)
    # The same factor from each row to the next
    factor = (shares[50:60].mean() / shares[:10].mean()) ** (1 / 50)
    np.testing.assert_allclose(shares[::20], 0.5 * factor ** np.arange(0, 100, 20), atol=0.04)


@pytest.mark.parametrize(("n", "drawn"), [(2, 1), (3, 2), (10, 5), (1000, 1), (1000, 500), (7, 1)])
def test_as_many_rows_are_drawn_as_asked_for(n, drawn, rng):
    for _ in range(20):
        assert len(np.unique(draw_low(rng.random(n), drawn, rng))) == drawn


def test_equal_values_are_equally_likely(rng):
    counts = np.zeros(40)
    for _ in range(2000):
        counts[draw_low(np.zeros(40), 10, rng)] += 1
    np.testing.assert_allclose(counts / 2000, 0.25, atol=0.05)


def test_nearness_compares_the_nearest_of_another_class_with_ones_own():
    X = np.array([[0.0], [1.0], [2.0], [6.0], [7.0]])
    nearness, others = by_neighbours(X, np.array([0, 0, 1, 1, 2], dtype=np.int32))
    # 0: own at 1, other at 2; 1: own at 1, other at 1; 2: own at 4, other at 1; 6: own at 4, other at 1
    np.testing.assert_allclose(nearness, [2 / 3, 1 / 2, 1 / 5, 1 / 5, 0])
    assert others.tolist() == [1, 1, 0, 2, 1]


def test_rows_that_lie_upon_each_other_are_neither_near_nor_far():
    nearness, _ = by_neighbours(np.zeros((4, 1)), np.array([0, 0, 1, 1], dtype=np.int32))
    assert nearness.tolist() == [0.5] * 4


def test_a_margin_is_small_where_a_row_lies_among_others(rng):
    X = np.concatenate([rng.normal(size=100), rng.normal(6, 1, size=100)])[:, None]
    codes = np.repeat([0, 1], 100).astype(np.int32)
    codes[[3, 150]] = 1, 0
    margins, others = by_margin(X, codes, rng)
    assert set(np.argsort(margins)[:2]) == {3, 150}
    assert (others == 1 - codes).all()
