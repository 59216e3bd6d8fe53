"""What single cells of a table say: gaps, labels that print like numbers, formulas, and where sheets are."""

import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xlsxwriter

import kfhe as library
from kfhe.tables.output import write_table
from kfhe.tables.sheet_size import CHUNK

pytestmark = pytest.mark.usefixtures("elsewhere")

GAPS = ["", "#N/A", "#N/A N/A", "#NA", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"]


def write_sheet(name, rows):
    with xlsxwriter.Workbook(name) as book:
        sheet = book.add_worksheet()
        for line, cells in enumerate(rows):
            sheet.write_row(line, 0, cells)


@pytest.mark.parametrize("word", GAPS)
@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_words_that_programs_write_for_nothing_are_gaps(kfhe, word, kind):
    rows = [["size", "colour", "label"]]
    rows += [
        [word if i % 9 == 0 else i / 2, word if i % 7 == 0 else "rb"[i % 2], "ab"[i % 3 % 2]]
        for i in range(63)
    ]
    if kind == "csv":
        Path("t.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    else:
        write_sheet("t.xlsx", rows)
    _, said = kfhe("fit", f"t.{kind}", "-t", "label", "--n-estimators", 2, "-o", "m.kfhe")
    columns = {line.split("│")[1].strip(): line.split("│")[2:5] for line in said.splitlines() if "│" in line}
    assert [cell.strip() for cell in columns["size"]] == ["number", "0.5 to 31", "7"]
    assert [cell.strip() for cell in columns["colour"]] == ["category", "2: b, r", "9"]


@pytest.mark.parametrize("of", [hex, oct, bin, "{}_000".format], ids=["hex", "octal", "binary", "Python's"])
def test_numbers_as_programs_write_them_are_text(kfhe, of):
    rows = [f"{of(i % 5)},{'ab'[i % 5 // 2 % 2]}\n" for i in range(60)]
    Path("t.csv").write_text("".join(["code,label\n", *rows]))
    kfhe("fit", "t.csv", "-t", "label", "--n-estimators", 2, "-o", "m.kfhe")
    (categories,) = library.load("m.kfhe").estimators_.schema.categories
    assert sorted(categories) == sorted(map(of, range(5)))


@pytest.mark.parametrize(
    ("labels", "kind"),
    [(["1.0", "2.0"], float), (["1.0", "inf"], str), (["2", "-inf"], str), (["1", "nano"], str)],
)
def test_labels_are_numbers_if_all_of_them_print_like_some_that_can_be_learnt(kfhe, labels, kind):
    pd.DataFrame({"x": np.arange(60) % 7, "y": labels * 30}).to_csv("t.csv", index=False)
    kfhe("fit", "t.csv", "-t", "y", "--n-estimators", 2, "-o", "m.kfhe")
    classes = library.load("m.kfhe").classes_.tolist()
    assert classes == sorted(map(kind, labels))
    assert {type(each) for each in classes} == {kind}


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_text_that_a_spreadsheet_may_run_gets_an_apostrophe(start):
    write_table(Path("out.csv"), pl.DataFrame({"x": [f"{start}1+1", f"a{start}"]}), escape_formulas=True)
    written = Path("out.csv").read_bytes().decode()
    assert f"'{start}1+1" in written
    assert f"'a{start}" not in written


@pytest.mark.parametrize("before", range(10))
def test_a_sheet_is_one_wherever_its_name_is_in_its_file(kfhe, before):
    """Parts of a file are looked through piece by piece, and a name may be in two of these each time."""
    name, far = b"sheetData", b'<row r="1048576"><c r="XFD1048576"/></row>'

    def padded(content, end):
        """Add a comment, so that what comes next is so far from the start."""
        return content + b"<!--" + b"." * (end - len(content) - 7) + b"-->"

    write_sheet("book.xlsx", [["size", "label"]])
    with (
        zipfile.ZipFile("book.xlsx") as book,
        zipfile.ZipFile("far.xlsx", "w", zipfile.ZIP_DEFLATED) as other,
    ):
        for part in book.namelist():
            content = book.read(part)
            if part == "xl/worksheets/sheet1.xml":
                head, _, rest = content.partition(b"<sheetData>")
                rows, _, rest = rest.partition(b"</sheetData>")
                content = padded(head, CHUNK - before - 1) + b"<sheetData>"
                content = padded(content + rows + far, 2 * CHUNK - before - 2) + b"</sheetData>" + rest
                starts = content.index(name), content.rindex(name)
                assert starts == (CHUNK - before, 2 * CHUNK - before)
            other.writestr(part, content)
    _, said = kfhe("fit", "far.xlsx", "-t", "label", "-o", "model.kfhe", code=1)
    assert "delete cells far from the table" in said
