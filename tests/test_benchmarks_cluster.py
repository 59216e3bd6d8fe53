"""The comparison of a study on a cluster with a local one."""

from dataclasses import replace

from benchmarks.cluster import differences, study
from kfhe.study.cells import Result
from kfhe.study.store import Store


def stored(path, results):
    with Store.write(path, study(5), {"kfhe": "0"}) as store:
        store.add(results)
    return path


def test_there_are_2000_cells():
    assert len(set(study(5).cells())) == 2000


def test_whatever_differs_but_times_is_found(tmp_path):
    one, other = (Result(cell, f1_macro=0.5, fit_seconds=1.0) for cell in study(5).cells()[:2])
    file = stored(tmp_path / "one.sqlite", [one, other])
    changes = {
        "times": ([one, replace(other, fit_seconds=2.0)], []),
        "scores": ([one, replace(other, f1_macro=0.6)], ["the column f1_macro"]),
        "traces": ([one, replace(other, trace={"gain": [0.1]})], ["the traces"]),
        "fewer": ([one], ["1 cells instead of 2"]),
    }
    for name, (results, found) in changes.items():
        assert differences(file, stored(tmp_path / name, results)) == found
