"""The store: whatever happens to a result file, it is said clearly and nothing stored is lost."""

import sqlite3
from dataclasses import replace

import pytest

from kfhe.study.cells import Result
from kfhe.study.dataset import read_table
from kfhe.study.errors import StudyError
from kfhe.study.plan import Plan
from kfhe.study.store import Store

VERSIONS = {"kfhe": "1", "numpy": "2"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.sqlite"


@pytest.fixture
def stored(path, plan, csv):
    """A result file of four cells."""
    with Store.write(path, plan, VERSIONS) as store:
        store.note_datasets([read_table(csv)], {"absent": "it is not here"})
        store.add(Result(cell, f1_macro=0.5) for cell in plan.cells()[:4])
    return path


def count(path):
    with Store.read(path) as store:
        return len(store.done())


def test_what_was_added_is_there(stored, plan):
    with Store.read(stored) as store:
        assert store.plan == plan
        assert store.done() == set(plan.cells()[:4])
        cells = store.cells()
        assert cells["f1_macro"].tolist() == [0.5] * 4
        assert store.versions() == [VERSIONS]
        assert store.datasets().loc["small", ["rows", "features", "classes"]].tolist() == [90, 2, 3]


def test_a_trace_comes_back(path, plan):
    trace = {"gain": [0.5, 0.25]}
    with Store.write(path, plan, VERSIONS) as store:
        store.add([Result(plan.cells()[0], f1_macro=1.0, trace=trace)])
    with Store.read(path) as store:
        assert store.traces() == {("small", "tree", 0.0): trace}


def test_a_batch_is_stored_as_a_whole_or_not_at_all(stored, plan):
    fresh, known = plan.cells()[5], plan.cells()[0]
    with Store.write(stored, plan, VERSIONS) as store, pytest.raises(StudyError, match="UNIQUE"):
        store.add([Result(fresh, f1_macro=0.1), Result(known, f1_macro=0.2)])
    assert count(stored) == 4


def test_failed_cells_can_be_forgotten(path, plan):
    with Store.write(path, plan, VERSIONS) as store:
        store.add([Result(plan.cells()[0], error="it broke"), Result(plan.cells()[1], f1_macro=1.0)])
        assert store.forget_failures() == 1
        assert store.done() == {plan.cells()[1]}


def test_another_plan_is_refused_and_the_keys_named(stored, plan):
    other = Plan(plan.datasets, plan.algorithms, plan.noise_levels, repeats=3, folds=3, seed=7)
    with pytest.raises(
        StudyError, match=r"another plan \(it differs in 'repeats', 'seed'\); nothing was changed"
    ):
        Store.write(stored, other, VERSIONS)
    assert count(stored) == 4


def test_a_plan_may_get_more_repeats_but_not_fewer(stored, plan):
    more = replace(plan, repeats=plan.repeats + 2)
    with Store.write(stored, more, VERSIONS) as store:
        assert store.done() == set(plan.cells()[:4])
    with Store.read(stored) as store:
        assert store.plan == more
    with pytest.raises(StudyError, match=r"another plan \(it differs in 'repeats'\)"):
        Store.write(stored, plan, VERSIONS)


def test_a_plan_gets_no_more_repeats_if_versions_must_not_mix(stored, plan):
    with pytest.raises(StudyError, match="other versions"):
        Store.write(stored, replace(plan, repeats=plan.repeats + 2), {**VERSIONS, "numpy": "3"})
    with Store.read(stored) as store:
        assert store.plan == plan


def test_other_versions_are_refused_unless_they_may_mix(stored, plan):
    later = {**VERSIONS, "numpy": "3"}
    with pytest.raises(StudyError, match=r"other versions \(numpy 2 is now 3.*--mix-versions"):
        Store.write(stored, plan, later)
    with Store.write(stored, plan, later, mix_versions=True) as store:
        store.add([Result(plan.cells()[4], f1_macro=0.5)])
    with Store.read(stored) as store:
        assert store.versions() == [VERSIONS, later]
        assert sorted(store.cells()["versions"]) == [1, 1, 1, 1, 2]


def test_changed_data_are_refused(stored, plan, csv, rows):
    rows.loc[0, "width"] += 1
    rows.to_csv(csv, index=False)
    with (
        Store.write(stored, plan, VERSIONS) as store,
        pytest.raises(StudyError, match=r"'small' .* has changed"),
    ):
        store.note_datasets([read_table(csv)], {})
    assert count(stored) == 4


def test_a_second_writer_is_refused_while_a_reader_is_not(stored, plan):
    with Store.write(stored, plan, VERSIONS) as store:
        with pytest.raises(StudyError, match=r"results\.sqlite: it is in use by another program"):
            Store.write(stored, plan, VERSIONS)
        store.add([Result(plan.cells()[4], f1_macro=0.5)])
        assert count(stored) == 5
    assert count(stored) == 5


def test_a_locked_file_is_said_to_be_in_use(stored, plan):
    other = sqlite3.connect(stored, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StudyError, match="in use by another program"):
        Store.write(stored, plan, VERSIONS)
    other.close()
    assert count(stored) == 4


def test_a_damaged_file_is_left_as_it_is(stored, plan):
    content = bytearray(stored.read_bytes())
    # The first page tells whose file it is; all others are spoilt
    content[4096:] = b"\xff" * (len(content) - 4096)
    stored.write_bytes(content)
    for attempt in (lambda: Store.write(stored, plan, VERSIONS), lambda: Store.read(stored)):
        with pytest.raises(StudyError, match=r"results\.sqlite: the file is damaged"):
            attempt()
    assert stored.read_bytes() == content


def test_a_truncated_file_is_damaged(stored, plan):
    content = stored.read_bytes()[:-5000]
    stored.write_bytes(content)
    with pytest.raises(StudyError, match="the file is damaged"):
        Store.write(stored, plan, VERSIONS)
    assert stored.read_bytes() == content


def test_a_file_of_another_kind_is_left_as_it_is(path, plan):
    path.write_text("my notes, " * 100)
    for attempt in (lambda: Store.write(path, plan, VERSIONS), lambda: Store.read(path)):
        with pytest.raises(StudyError, match="this is not a result file of a study; nothing was changed"):
            attempt()
    assert path.read_text() == "my notes, " * 100


def test_another_programs_database_is_left_as_it_is(path, plan):
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE addresses (name)")
    other.close()
    content = path.read_bytes()
    with pytest.raises(StudyError, match="this is another program's file"):
        Store.write(path, plan, VERSIONS)
    assert path.read_bytes() == content


def test_a_file_of_a_later_format_is_refused(stored):
    with sqlite3.connect(stored) as other:
        other.execute("UPDATE study SET value = '99' WHERE key = 'format'")
    other.close()
    with pytest.raises(StudyError, match="have format 99, this version reads 1"):
        Store.read(stored)


def test_a_full_disk_is_said_and_what_was_stored_is_kept(stored, plan):
    with Store.write(stored, plan, VERSIONS) as store:
        # SQLite's own limit stands in for the disk: it fails in the same way
        store._connection.execute("ROLLBACK")
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        store._connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(
            StudyError, match="the disk is full; free some space and run again; stored results are kept"
        ):
            store.add(Result(cell, error="long" * 5000) for cell in plan.cells()[4:])
    assert count(stored) == 4
    with Store.write(stored, plan, VERSIONS) as store:
        store.add(Result(cell, f1_macro=0.5) for cell in plan.cells()[4:])
    assert count(stored) == len(plan.cells())


def test_missing_empty_and_impossible_files_are_named(path, plan, tmp_path):
    with pytest.raises(StudyError, match=r"results\.sqlite: there is no such result file"):
        Store.read(path)
    path.touch()
    with pytest.raises(StudyError, match="this result file is empty"):
        Store.read(path)
    with pytest.raises(StudyError, match="this is a folder"):
        Store.write(tmp_path, plan, VERSIONS)
    with pytest.raises(StudyError, match=r"below\.sqlite: its folder can't be made or read"):
        Store.write(path / "below.sqlite", plan, VERSIONS)


def test_an_empty_file_is_filled(path, plan):
    path.touch()
    Store.write(path, plan, VERSIONS).close()
    assert count(path) == 0
