"""Workers that each have some of the rows train, all of them, the model of one machine."""

from dataclasses import replace

import numpy as np
import pytest
from cluster_tables import N, coded, mixed, numbers, patients, weights, with_copies
from components import as_parameters
from together import together

from kfhe import KFHEClassifier, RobustKFHEClassifier, StateSpace
from kfhe.engine.draws import ROWS_OF_BLOCK
from kfhe.trace import COLUMNS


def rows_of(model, X, y, sample_weight=None, groups=None):
    """The training rows of a model, and the table that its trees see."""
    rows = model._with_copies(model._validate(X, y, sample_weight, groups))
    return rows, model.make_run(rows).sensor.table


def part_of(rows, table, exchange):
    """The rows that a worker has: whole blocks."""
    n_blocks = -(-rows.n_rows // ROWS_OF_BLOCK)
    bounds = [n_blocks * q // exchange.n * ROWS_OF_BLOCK for q in range(exchange.n + 1)]
    own = slice(*bounds[exchange.rank : exchange.rank + 2])
    return replace(
        rows,
        X=replace(table, codes=np.ascontiguousarray(table.codes[:, own])),
        labels=rows.labels[own],
        base=rows.base[own],
        exchange=exchange,
    )


def trained(model, rows):
    """What a model finds out of rows, in its attributes."""
    run = model.make_run(rows)
    run.train(model.make_emphasis(run), model.n_estimators)
    return model._attributes(run, resumes=False)


def check(model, *given, n_workers=2, **further):
    rows, table = rows_of(model, *given, **further)
    expected = trained(model, rows)
    for found in together(n_workers, lambda exchange: trained(model, part_of(rows, table, exchange))):
        assert found["estimators_"].digest() == expected["estimators_"].digest()
        for column in COLUMNS:
            if column != "seconds":
                np.testing.assert_array_equal(found["trace_"][column], expected["trace_"][column], column)
        for name in ("noise_rate_", "oob_score_", "oob_log_loss_", "remarks_"):
            assert found.get(name) == expected.get(name), name
    return expected


E, L = {"n_estimators": 3}, {"n_estimators": 3, "emphasis": "linear"}


@pytest.mark.parametrize("n_workers", [2, 4])
@pytest.mark.parametrize("settings", [E, L], ids=["KFHE-e", "KFHE-l"])
@pytest.mark.parametrize(
    "given", [numbers(), (*numbers(), weights()), mixed()], ids=["", "weighted", "mixed"]
)
def test_the_papers_ensembles(given, settings, n_workers):
    check(KFHEClassifier(random_state=3, **settings), *given, n_workers=n_workers)


@pytest.mark.parametrize(
    "given", [numbers(), (*numbers(), weights()), mixed()], ids=["", "weighted", "mixed"]
)
@pytest.mark.parametrize("n_workers", [2, 4])
def test_the_robust_classifier(given, n_workers):
    check(RobustKFHEClassifier(n_estimators=21, random_state=3), *given, n_workers=n_workers)


@pytest.mark.parametrize(
    "settings",
    [
        {"voting": "soft", "shrinkage": "auto"},
        {"emphasis": "margin", "voting": "soft"},
        {"transition": 0.9, "process_noise": 0.1},
        {"state_space": StateSpace(measurement="out-of-bag")},
        {"max_leaf_nodes": 12, "max_samples": 0.3},
        {"class_weight": "balanced"},
    ],
    ids=str,
)
def test_settings(settings):
    check(KFHEClassifier(n_estimators=2, random_state=3, **as_parameters(settings)), *numbers(), weights())


@pytest.mark.parametrize("kind", [KFHEClassifier, RobustKFHEClassifier])
def test_groups_and_encoded_categories(kind):
    check(kind(n_estimators=3, random_state=3), *coded(), weights(), groups=patients())


def test_copies():
    found = check(RobustKFHEClassifier(n_estimators=6, random_state=3), *with_copies(*coded()), n_workers=3)
    assert "copies" in found["remarks_"][0]


@pytest.mark.parametrize("groups", [None, np.arange(N) // 2])
def test_samples_that_lack_a_rare_class_are_drawn_again(groups):
    X, y = numbers()
    y[17] = 3
    for seed in range(4, 6):  # of the second the first sample has no row of the class
        check(KFHEClassifier(n_estimators=1, random_state=seed), X, y, groups=groups)
