"""kfhe predict on a csv: the same bytes however it is read, whatever is asked for."""

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from python_calamine import CalamineWorkbook

from kfhe import KFHEClassifier
from kfhe.tables.csv import CsvTable

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


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("options", [[], ["--proba"], ["--escape-formulas"], ["--keep", "word"]])
def test_the_output_does_not_depend_on_how_it_is_read(kfhe, table, labels, options, monkeypatch):
    fit(table, labels)
    printed, _ = kfhe("predict", "model.kfhe", "new.csv", *options)
    kfhe("predict", "model.kfhe", "new.csv", *options, "-o", "out.csv.gz")
    kfhe("predict", "model.kfhe", "-", *options, "-o", "piped.csv", piped=Path("new.csv").read_bytes())
    monkeypatch.setattr("kfhe.tables.csv.PIECE", 1 << 12)
    in_pieces, _ = kfhe("predict", "model.kfhe", "new.csv", *options)
    monkeypatch.setattr(CsvTable, "_at_once", lambda table, *block: None)
    expected, _ = kfhe("predict", "model.kfhe", "new.csv", *options)
    assert printed == in_pieces == expected
    assert gzip.decompress(Path("out.csv.gz").read_bytes()) == expected
    assert Path("piped.csv").read_bytes() == expected
    assert expected.count(b"\n") == len(table) + 1


def test_an_excel_file_gets_numbers_as_the_model_reads_them(kfhe):
    lines = [f"{i % 7};{i % 5},50;0{i % 9};{'yes' if i % 3 else 'no'}" for i in range(60)]
    Path("rows.csv").write_text("a;b;zip;y\n" + "\n".join(lines))
    kfhe("fit", "rows.csv", "-t", "y", "--as", "zip=category", "-o", "rows.kfhe", "--n-estimators", "3")
    kfhe("predict", "rows.kfhe", "rows.csv", "--keep", "a,b,zip", "-o", "out.xlsx")
    sheet = CalamineWorkbook.from_path("out.xlsx").get_sheet_by_index(0).to_python()
    assert sheet[0] == ["a", "b", "zip", "prediction"]
    assert sheet[2][:3] == [1.0, 1.5, "01"]


def test_no_more_is_loaded_than_it_takes(model):
    script = "import sys; from kfhe.cli import main\n"
    script += "try: main()\n"
    script += "finally: print({'rich', 'sklearn', 'pandas', 'pyarrow'} & {*sys.modules})"
    command = [sys.executable, "-c", script, "predict", model, "new_customers.csv", "-o", "out.csv"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout == "set()\n"
    assert result.stderr.endswith("The predictions are in out.csv\n")


def test_categories_that_are_new_are_counted_over_all_blocks(kfhe, table, monkeypatch):
    fit(table, "names")
    table.loc[table.index[10::100], "word"] = "pink"
    table.to_csv("new.csv", index=False)
    monkeypatch.setattr("kfhe.tables.csv.PIECE", 1 << 12)
    _, said = kfhe("predict", "model.kfhe", "new.csv", "-o", "out.csv")
    assert "column 'word': values in categories that the model has never seen: 30;" in said


def test_an_error_far_down_names_its_row_and_leaves_no_file(kfhe, table, monkeypatch):
    fit(table, "names")
    lines = Path("new.csv").read_text().splitlines()
    lines[2500] = lines[2500].replace(",", ",oops", 1)
    Path("new.csv").write_text("\n".join(lines))
    monkeypatch.setattr("kfhe.tables.csv.PIECE", 1 << 12)
    _, said = kfhe("predict", "model.kfhe", "new.csv", "-o", "out.csv", code=1)
    assert "column 'v', row 2501: found 'oops" in said
    assert not Path("out.csv").exists()
