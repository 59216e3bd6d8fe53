"""kfhe predict on plain lines of a csv: the same bytes as in any other way, whatever is asked for."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from kfhe import KFHEClassifier
from kfhe.tables.csv import CsvTable
from kfhe.tables.lines import Lines

pytestmark = pytest.mark.usefixtures("elsewhere")

LABELS = {"names": ["no", "perhaps", "=yes"], "quoted": ["no", "a,b", "c"], "numbers": [1, 20, 300]}


@pytest.fixture
def table(rng):
    table = pd.DataFrame(rng.normal(size=(3000, 4)), columns=list("uvwx")).round(3)
    table["word"] = rng.choice(["red", "green", "blue"], len(table))
    table.loc[::7, "u"] = np.nan
    table.to_csv("new.csv", index=False)
    return table


def fit(table, labels):
    y = np.array(LABELS[labels])[(table["v"] > 0) + (table["w"] > 0.5).to_numpy().astype(int)]
    KFHEClassifier(n_estimators=5, random_state=0).fit(table, y).save("model.kfhe")


@pytest.fixture
def made_of_lines(monkeypatch):
    """Count the blocks of plain lines that are worked on."""
    count = []
    next_block = Lines._next_block
    monkeypatch.setattr(Lines, "_next_block", lambda lines: count.append(0) or next_block(lines))
    return count


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("options", [[], ["--proba"], ["--escape-formulas"], ["--keep", "word"]])
def test_the_output_does_not_depend_on_who_reads(kfhe, table, labels, options, made_of_lines, monkeypatch):
    fit(table, labels)
    printed, _ = kfhe("predict", "model.kfhe", "new.csv", *options)
    assert bool(made_of_lines) == (labels != "quoted" and "--keep" not in options)
    kfhe("predict", "model.kfhe", "new.csv", *options, "-o", "out.csv.gz")
    kfhe("predict", "model.kfhe", "-", *options, "-o", "piped.csv", piped=Path("new.csv").read_bytes())
    monkeypatch.setattr(CsvTable, "_plain_header", lambda table: b"")
    expected, _ = kfhe("predict", "model.kfhe", "new.csv", *options)
    assert printed == expected
    assert gzip.decompress(Path("out.csv.gz").read_bytes()) == expected
    assert Path("piped.csv").read_bytes() == expected
    assert expected.count(b"\n") == len(table) + 1


def test_categories_that_are_new_are_counted_over_all_blocks(kfhe, table, monkeypatch):
    fit(table, "names")
    table.loc[table.index[10::100], "word"] = "pink"
    table.to_csv("new.csv", index=False)
    monkeypatch.setattr("kfhe.tables.csv.BLOCK", 1 << 12)
    _, said = kfhe("predict", "model.kfhe", "new.csv", "-o", "out.csv")
    assert "column 'word': values in categories that the model has never seen: 30;" in said


def test_an_error_far_down_names_its_row_and_leaves_no_file(kfhe, table, monkeypatch):
    fit(table, "names")
    lines = Path("new.csv").read_text().splitlines()
    lines[2500] = lines[2500].replace(",", ",oops", 1)
    Path("new.csv").write_text("\n".join(lines))
    monkeypatch.setattr("kfhe.tables.csv.BLOCK", 1 << 12)
    _, said = kfhe("predict", "model.kfhe", "new.csv", "-o", "out.csv", code=1)
    assert "column 'v', row 2501: found 'oops" in said
    assert not Path("out.csv").exists()
