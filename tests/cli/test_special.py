"""Tables as they come: dates, money, decimal commas, mixed booleans, Windows files and Excel."""

import datetime
import json
import random
import struct
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest
import xlsxwriter

import kfhe as library
from kfhe.study.errors import StudyError
from kfhe.study.plan import Plan
from kfhe.study.store import Store
from kfhe.tables import sheet_size

FLAGS = {False: ["false", "0", "no"], True: ["true", "1", "yes"]}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def kfhe(kfhe):
    """Run the command; return all that it said as one text."""

    def command(*arguments, code=0):
        out, errors = kfhe(*arguments, code=code)
        return out.decode() + errors

    return command


def orders(n=200, seed=0):
    """Return rows of things as they are; None is a gap."""
    rng = random.Random(seed)
    rows = []
    for number in range(1000, 1000 + n):
        day = datetime.date(2020, 1, 1) + datetime.timedelta(days=rng.randrange(1400))
        price, size, share = rng.randrange(5000, 500_000) / 100, rng.gauss(3, 1), rng.randrange(101)
        member, town = rng.random() < 0.5, rng.choice(["Köln", "Zürich", "Bern"])
        label = "ja" if (day.month in (6, 7, 8)) ^ (price > 2500) else "nein"
        cells = [day, price, size, member, share, town]
        cells = [None if rng.random() < 0.04 else cell for cell in cells]
        rows.append([number, *cells, label])
    return rows


NAMES = ["id", "joined", "price", "size", "member", "share", "town", "label"]


def german(number):
    return f"{number:,.2f}".translate(str.maketrans(",.", ".,"))


def write_csv(path, rows):
    """Write as Excel does in Germany: semicolons, decimal commas, Windows' letters and line ends."""
    rng = random.Random(1)
    lines = [";".join(NAMES)]
    for number, day, price, size, member, share, town, label in rows:
        cells = [
            number,
            day and day.strftime("%d.%m.%Y"),
            price and f"{german(price)} €",
            size and f"{size:.3f}".replace(".", ","),
            None if member is None else rng.choice(FLAGS[member]),
            None if share is None else f"{share} %",
            town,
            label,
        ]
        lines.append(";".join("" if cell is None else str(cell) for cell in cells))
    Path(path).write_bytes("".join(f"{line}\r\n" for line in lines).encode("cp1252"))
    return path


def write_excel(path, rows, sheets=("orders",)):
    """Write dates as dates, and some prices and shares as somebody has typed them."""
    with xlsxwriter.Workbook(path, {"default_date_format": "dd.mm.yyyy"}) as book:
        for name in sheets:
            sheet = book.add_worksheet(name)
            for line, (number, day, price, size, member, share, town, label) in enumerate([NAMES, *rows]):
                cells = [number, day, price, size, member, share, town, label]
                if line:
                    cells[2] = price and f"{german(price)} €"
                    cells[4] = int(member) if member is not None and line % 2 else member
                    cells[5] = None if share is None else f"{share} %"
                for column, cell in enumerate(cells):
                    sheet.write(line, column, cell)
    return path


@pytest.mark.parametrize(
    ("name", "write"), [("orders.csv", write_csv), ("orders.xlsx", write_excel)], ids=["csv", "Excel"]
)
def test_a_table_as_it_comes_gets_a_model_predictions_and_an_audit(kfhe, name, write):
    write(name, orders())
    said = kfhe("fit", name, "--target", "label", "--drop", "id", "-o", "model.kfhe")
    assert 'numbers: price ("' in said
    assert 'share ("' in said
    assert "To keep one as text: --as COLUMN=category" in said
    for column, kind in (("joined", "date"), ("price", "number"), ("size", "number"), ("member", "number")):
        assert any(line.split("│")[1:3] == [f" {column:6} ", f" {kind:8} "] for line in said.splitlines())
    model = library.load("model.kfhe")
    assert model.feature_names_in_.tolist() == NAMES[1:-1]
    assert {*np.argsort(model.feature_importances_)[-2:]} == {0, 1}  # what the label is made of
    assert model.feature_importances_[:2].sum() > 0.6
    new = write(f"new_{name}", orders(60, seed=7))
    kfhe("predict", "model.kfhe", new, "--keep", "id", "-o", "out.csv")
    out = pd.read_csv("out.csv")
    assert out["id"].tolist() == [*range(1000, 1060)]
    labels = [row[-1] for row in orders(60, seed=7)]
    assert np.mean(out["prediction"] == labels) > 0.8
    said = kfhe("audit", name, "--target", "label", "--drop", "id", "--all", "-o", "audit.csv")
    assert 'numbers: price ("' in said
    audited = pd.read_csv("audit.csv").sort_values("id")
    assert audited["id"].tolist() == [*range(1000, 1200)]
    assert audited["price"].dropna().iloc[0].endswith(" €")  # as it was written


def test_csv_and_excel_give_the_same_model_and_read_each_others_rows(kfhe):
    rows = [[*row[:3], row[3] and round(row[3], 3), *row[4:]] for row in orders()]
    rows = [[*row[:4], row[4] if row[4] is None else float(row[4]), *row[5:]] for row in rows]
    write_excel("orders.xlsx", rows)
    write_csv("orders.csv", [[*row[:4], None if row[4] is None else bool(row[4]), *row[5:]] for row in rows])
    found = {}
    for name in ("orders.csv", "orders.xlsx"):
        kfhe("fit", name, "-t", "label", "--drop", "id", "-o", "model.kfhe")
        kfhe("predict", "model.kfhe", "orders.xlsx", "--proba", "-o", "out.csv")
        found[name] = pd.read_csv("out.csv")
    pd.testing.assert_frame_equal(*found.values())
    kfhe("fit", "orders.csv", "-t", "label", "--drop", "id", "-o", "model.kfhe")
    kfhe("predict", "model.kfhe", "orders.csv", "--proba", "-o", "out.csv")
    pd.testing.assert_frame_equal(pd.read_csv("out.csv"), found["orders.xlsx"])


def test_what_is_read_as_what_can_be_overruled(kfhe):
    write_csv("orders.csv", orders())
    fit = ("fit", "orders.csv", "-t", "label", "--drop", "id", "-o", "model.kfhe")
    said = kfhe(*fit)
    assert 'orders.csv: read as dates: joined (day first); as numbers: price ("' in said
    assert "; as true or false: member. To keep" in said
    said = kfhe(*fit, "--as", "joined=category", "--as", "price=category", "--as", "member=category")
    assert 'orders.csv: read as numbers: share ("' in said
    categories = library.load("model.kfhe").estimators_.schema.column_categories
    assert [known is not None for known in categories] == [True, True, False, True, False, True]
    kfhe("predict", "model.kfhe", "orders.csv", "-o", "out.csv")
    kfhe(*fit, "--as", "size=category")
    assert library.load("model.kfhe").estimators_.schema.columns == NAMES[1:-1]
    said = kfhe(*fit, "--as", "joined=month-first", code=1)
    assert "column 'joined', row " in said
    assert "accepted are dates such as 12/31/2024, and nothing for a gap; fix it: write" in said
    assert "--as" in kfhe(*fit, "--as", "joined=star-date", code=2)
    assert "there is no column 'joind'; did you mean 'joined'?" in kfhe(*fit, "--as", "joind=date", code=1)


def test_days_that_may_be_months_are_asked_for(kfhe):
    rows = "".join(f"0{1 + i % 9}/0{1 + i % 7}/2024,{'xy'[i % 2]}\n" for i in range(60))
    Path("mine.csv").write_text("due,label\n" + rows)
    fit = ("fit", "mine.csv", "-t", "label", "-o", "model.kfhe")
    said = kfhe(*fit)
    assert (
        "column 'due' may hold dates such as 01/01/2024, but no value shows whether the day or the month"
        in said
    )
    assert "so it is treated as categories. To choose: --as due=day-first or --as due=month-first" in said
    assert "; choose one: --as due=day-first or" in kfhe(*fit, "--as", "due=date", code=1)
    said = kfhe(*fit, "--as", "due=month-first")
    assert "read as dates: due (month first)" in said
    Path("new.csv").write_text("due\n3/1/2024\n12/31/2024\n")  # of which one tells nothing
    kfhe("predict", "model.kfhe", "new.csv", "-o", "out.csv")
    Path("new.csv").write_text("due\n3/1/2024\n31/12/2024\n")
    said = kfhe("predict", "model.kfhe", "new.csv", code=1)
    assert "new.csv: column 'due', row 3: found '31/12/2024'; accepted are dates such as 12/31/2024" in said
    assert "fix it: write it as the others are" in said
    kfhe("predict", "model.kfhe", "new.csv", "--na", "31/12/2024", "-o", "out.csv")


def test_years_of_two_digits_are_asked_for(kfhe):
    rows = "".join(f"{1 + i % 12}/{1 + i % 28}/24,{'xy'[i % 2]}\n" for i in range(60))
    Path("mine.csv").write_text("due,label\n" + rows)
    fit = ("fit", "mine.csv", "-t", "label", "-o", "model.kfhe")
    said = kfhe(*fit)
    assert "may hold dates such as 1/1/24, but years of two digits are ambiguous, so it is treated" in said
    assert "To choose: --as due=month-first\n" in said  # there is no 28th month
    said = kfhe(*fit, "--as", "due=month-first")
    assert "│ due    │ date   │ 2024-01-01 to 2024-12-24 │" in said


def test_a_mark_that_may_be_a_gap_is_named(kfhe):
    rows = [
        ("?" if i % 5 else i % 3, "-+"[i % 2], "?" if i % 7 else ["red", "blue"][i % 2]) for i in range(60)
    ]
    lines = [f"{size},{sign},{colour},{'xy'[i % 2]}\n" for i, (size, sign, colour) in enumerate(rows)]
    Path("mine.csv").write_text("size,sign,colour,label\n" + "".join(lines))
    fit = ("fit", "mine.csv", "-t", "label", "-o", "model.kfhe")
    said = kfhe(*fit)
    assert "'?' is treated as a category in size, colour. If it means missing: --na '?'" in said
    assert "'-'" not in said  # it is one of two signs
    said = kfhe(*fit, "--na", "?")
    assert "│ size   │ number   │ 0 to 2" in said
    assert "is treated as a category" not in said


def test_a_few_cells_that_do_not_fit_are_named(kfhe):
    rows = [f"2024-01-{1 + i:02},${i},{'xy'[i % 2]}\n" for i in range(31)] * 2
    rows[7] = "soon,unknown,x\n"
    Path("mine.csv").write_text("when,price,label\n" + "".join(rows))
    fit = ("fit", "mine.csv", "-t", "label", "-o", "model.kfhe")
    said = kfhe(*fit)
    assert "Column 'when' has dates except for soon, so it is treated as categories." in said
    assert "Column 'price' has numbers except for unknown" in said
    said = kfhe(*fit, "--na", "soon", "--na", "unknown")
    assert 'read as dates: when; as numbers: price ("$0")' in said


def test_rows_are_numbered_through_all_batches(kfhe, monkeypatch):
    monkeypatch.setattr("kfhe.tables.csv.PIECE", 200)
    days = [f"2024-{1 + i % 12:02}-{1 + i % 28:02},{'xy'[i % 2]}\n" for i in range(100)]
    Path("mine.csv").write_text("when,label\n" + "".join(days))
    kfhe("fit", "mine.csv", "-t", "label", "-o", "model.kfhe")
    Path("new.csv").write_text("when,label\n" + "".join(days) + "later,x\n")
    for command in (
        ("predict", "model.kfhe", "new.csv"),
        ("evaluate", "new.csv", "--model", "model.kfhe", "-t", "label"),
    ):
        assert "column 'when', row 102: found 'later'" in kfhe(*command, code=1)


def test_text_where_numbers_were_trained_says_what_to_do(kfhe):
    Path("mine.csv").write_text("size,label\n" + "".join(f"{i},{'xy'[i % 2]}\n" for i in range(60)))
    kfhe("fit", "mine.csv", "-t", "label", "-o", "model.kfhe")
    Path("new.csv").write_text("size\n1\nvery large\n")
    said = kfhe("predict", "model.kfhe", "new.csv", code=1)
    assert (
        "new.csv: column 'size', row 3: found 'very large'; accepted are numbers, and nothing for a gap"
        in said
    )
    assert "fix it, or treat it as missing: --na 'very large'" in said
    kfhe("predict", "model.kfhe", "new.csv", "--na", "very large", "-o", "out.csv")
    with xlsxwriter.Workbook("new.xlsx") as book:
        book.add_worksheet().write_column(0, 0, ["size", 1, "very large"])
    said = kfhe("predict", "model.kfhe", "new.xlsx", code=1)
    assert "new.xlsx: column 'size', row 3: found 'very large'; accepted are numbers" in said
    kfhe("predict", "model.kfhe", "new.xlsx", "--na", "very large", "-o", "out.csv")


def test_a_parquet_of_dates_can_be_read_as_categories(kfhe):
    frame = pd.DataFrame(
        {"when": pd.date_range("2024-01-01", periods=4).repeat(20), "label": ["x", "y"] * 40}
    )
    frame.to_parquet("mine.parquet")
    kfhe("fit", "mine.parquet", "-t", "label", "--as", "when=category", "-o", "model.kfhe")
    assert len(library.load("model.kfhe").estimators_.schema.categories[0]) == 4
    said = kfhe("predict", "model.kfhe", "mine.parquet", "-o", "out.csv")
    assert "never seen" not in said
    assert "it can't be read as number" in kfhe(
        "fit", "mine.parquet", "-t", "label", "--as", "when=number", "-o", "model.kfhe", code=1
    )


# ---------------------------------------------------------------- Excel


def test_the_first_sheet_is_read_and_others_can_be_named(kfhe):
    write_excel("orders.xlsx", orders(), sheets=("orders", "more"))
    fit = ("fit", "orders.xlsx", "-t", "label", "--drop", "id", "-o", "model.kfhe")
    assert "reading sheet 'orders' of orders, more; --sheet selects another" in kfhe(*fit)
    assert "--sheet" not in kfhe(*fit, "--sheet", "more")
    assert "there is no sheet 'mor'; did you mean 'more'?" in kfhe(*fit, "--sheet", "mor", code=1)
    write_csv("orders.csv", orders())
    said = kfhe("fit", "orders.csv", "-t", "label", "-o", "model.kfhe", "--sheet", "more", code=1)
    assert "orders.csv: has no sheets" in said


def test_titles_above_the_header_of_a_sheet_are_left_out(kfhe):
    with xlsxwriter.Workbook("book.xlsx") as book:
        sheet = book.add_worksheet()
        sheet.write_row(1, 0, ["Orders of 2024"])
        sheet.write_row(3, 0, ["id", "size", "label"])
        for i in range(40):
            sheet.write_row(4 + i, 0, [i, i % 7, "xy"[i % 2]])
        sheet.write(43, 1, "large")
    fit = ("fit", "book.xlsx", "-t", "label", "-o", "model.kfhe")
    said = kfhe(*fit)
    assert "book.xlsx: 40 rows" in said
    assert "book.xlsx: the header is row 4, below a title" in said
    assert "column 'size', row 44: found 'large'" in kfhe(*fit, "--as", "size=number", code=1)


def test_true_and_false_of_excel_are_read_in_any_spelling(kfhe):
    with xlsxwriter.Workbook("book.xlsx") as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["member", "paid", "size", "label"])
        for i in range(40):
            sheet.write_row(1 + i, 0, [[True, False, 1, 0][i % 4], i % 3 > 0, i % 2, "xy"[i // 2 % 2]])
    kfhe("fit", "book.xlsx", "-t", "label", "-o", "model.kfhe")
    Path("new.csv").write_text("member,paid,size\ntrue,1,1\n0,yes,0\nFALSE,,1\n")
    kfhe("predict", "model.kfhe", "new.csv", "-o", "out.csv")
    numbers = pd.DataFrame({"member": [1, 0, 0], "paid": [1, 1, np.nan], "size": [1, 0, 1]})
    expected = library.load("model.kfhe").predict(numbers)
    assert pd.read_csv("out.csv")["prediction"].tolist() == expected.tolist()
    Path("new.csv").write_text("member,paid,size\n0,1,1\n0,1,true\n")
    said = kfhe("predict", "model.kfhe", "new.csv", code=1)
    assert "column 'size', row 3: found 'true'; accepted are numbers" in said
    assert "write 1 for true and 0 for false" in said


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and so on", b"a,b\n1,2\n"])
def test_an_excel_file_that_is_none_is_said(kfhe, content):
    Path("mine.xlsx").write_bytes(content)
    said = kfhe("fit", "mine.xlsx", "-t", "label", "-o", "model.kfhe", code=1)
    assert "mine.xlsx: is damaged, or no Excel file" in said


@pytest.mark.parametrize(("rows", "message"), [([], "the sheet is empty"), ([["a", "b"]], "no rows below")])
def test_an_excel_file_without_rows_is_said(kfhe, rows, message):
    with xlsxwriter.Workbook("mine.xlsx") as book:
        sheet = book.add_worksheet()
        for line, cells in enumerate(rows):
            sheet.write_row(line, 0, cells)
    assert message in kfhe("fit", "mine.xlsx", "-t", "b", "-o", "model.kfhe", code=1)


@pytest.mark.parametrize("cells", [["XFD1048576"], ["XFD3", "A1048576"], ["AAA900000"]])
def test_a_cell_far_from_all_others_does_not_fill_the_memory(kfhe, cells):
    with xlsxwriter.Workbook("book.xlsx") as book:
        sheet = book.add_worksheet()
        sheet.write_row("A1", ["size", "label"])
        for cell in cells:
            sheet.write(cell, "x")
    said = kfhe("fit", "book.xlsx", "-t", "label", "-o", "model.kfhe", code=1)
    assert "delete cells far from the table" in said


SPELLINGS = {
    "single quotes": lambda sheet: sheet.replace(b'r="XFD1048576"', b"r='XFD1048576'"),
    "blanks": lambda sheet: sheet.replace(b'r="XFD1048576"', b'r = "XFD1048576"'),
    "line break": lambda sheet: sheet.replace(b'r="XFD1048576"', b'r\n=\n"XFD1048576"'),
    "lower case": lambda sheet: sheet.replace(b"XFD1048576", b"xfd1048576"),
    "prefixed": lambda sheet: sheet.replace(b'<c r="XFD1048576">', b"<s:c r='XFD1048576'/>" + b"<c>"),
    "no place": lambda sheet: sheet.replace(b'<c r="XFD1048576">', b"<c/>" * 16000 + b"<c>"),
    "zeros": lambda sheet: sheet.replace(b"XFD1048576", b"XFD001048576"),
    "document type": lambda sheet: SPELLINGS["blanks"](sheet).replace(b"<works", b"<!DOCTYPE w><works"),
}


def spelled(spelling, source="book.xlsx", target="spelled.xlsx", folder="worksheets"):
    """Write an Excel file again, its sheet in other words or in another folder."""
    with ZipFile(source) as book, ZipFile(target, "w") as other:
        for part in book.namelist():
            content = book.read(part)
            if part == "xl/worksheets/sheet1.xml":
                part, content = f"xl/{folder}/sheet1.xml", spelling(content)
            other.writestr(part, content.replace(b'"worksheets/', f'"{folder}/'.encode()))


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_far_cell_is_seen_however_it_is_written(kfhe, spelling):
    with xlsxwriter.Workbook("book.xlsx") as book:
        sheet = book.add_worksheet()
        sheet.write_row("A1", ["size", "label"])
        sheet.write("XFD1048576", 1)
    spelled(SPELLINGS[spelling])
    said = kfhe("fit", "spelled.xlsx", "-t", "label", "-o", "model.kfhe", code=1)
    assert "delete cells far from the table" in said or "is damaged, or no Excel file" in said


def test_a_far_cell_is_seen_whatever_its_folder(kfhe):
    with xlsxwriter.Workbook("book.xlsx") as book:
        book.add_worksheet().write_row("A1", ["size", "label"])
        book.worksheets()[0].write("XFD1048576", 1)
    spelled(bytes, folder="others")
    said = kfhe("fit", "spelled.xlsx", "-t", "label", "-o", "model.kfhe", code=1)
    assert "delete cells far from the table" in said


def write_binary_excel(path, cells):
    """Write an .xlsb file: cells of a row, a column and a number or text."""

    def record(kind, content=b""):
        head = [kind] if kind < 128 else [kind & 127 | 128, kind >> 7]
        return bytes([*head, len(content)]) + content

    def text(value):
        return struct.pack("<I", len(value)) + value.encode("utf-16-le")

    sheet = [record(129), record(148, bytes(16)), record(145)]
    for row, column, value in cells:
        place = struct.pack("<II", column, 0)
        sheet.append(record(0, struct.pack("<IIHHBI", row, 0, 300, 0, 0, 0)))
        is_text = isinstance(value, str)
        sheet.append(
            record(6, place + text(value)) if is_text else record(5, place + struct.pack("<d", value))
        )
    sheet += [record(146), record(130)]
    named = record(156, struct.pack("<II", 0, 1) + text("rId1") + text("mine"))
    book = [record(131), record(143), named, record(144), record(132)]
    with ZipFile(path, "w") as file:
        file.writestr("xl/workbook.bin", b"".join(book))
        file.writestr(
            "xl/_rels/workbook.bin.rels",
            '<Relationships><Relationship Id="rId1" Target="worksheets/sheet1.bin"/></Relationships>',
        )
        file.writestr("xl/worksheets/sheet1.bin", b"".join(sheet))


LABELLED = [(0, 0, "size"), (0, 1, "label")]
LABELLED += [cell for i in range(1, 41) for cell in ((i, 0, float(i)), (i, 1, "xy"[i % 2]))]


@pytest.mark.parametrize("far", [[(1048575, 16383)], [(50, 16383), (1048575, 0)]])
def test_a_cell_far_from_all_others_does_not_fill_the_memory_in_a_binary_file_either(kfhe, far, monkeypatch):
    fit = ("fit", "book.xlsb", "-t", "label", "-o", "model.kfhe")
    write_binary_excel("book.xlsb", LABELLED)
    assert "book.xlsb: 40 rows" in kfhe(*fit)
    write_binary_excel("book.xlsb", [*LABELLED, *((*place, 1.0) for place in far)])
    for chunk in (sheet_size.CHUNK, 7):  # a record that comes in several pieces is seen as well
        monkeypatch.setattr(sheet_size, "CHUNK", chunk)
        assert "a sheet has 1,048,576 rows and 16,384 columns" in kfhe(*fit, code=1)


def test_what_is_embedded_in_a_file_is_no_sheet(kfhe):
    fit = ("fit", "book.xlsb", "-t", "label", "-o", "model.kfhe")
    write_binary_excel("book.xlsb", LABELLED)
    with ZipFile("book.xlsb", "a") as book:
        far = (
            b"\x00\x11"
            + struct.pack("<I", 2**20)
            + bytes(13)
            + b"\x05\x10"
            + struct.pack("<I", 2**14)
            + bytes(12)
        )
        book.writestr("xl/printerSettings/printerSettings1.bin", far)
        book.writestr("xl/embeddings/oleObject1.bin", far)
    assert "book.xlsb: 40 rows" in kfhe(*fit)


def test_a_far_cell_of_a_binary_file_is_seen_whatever_its_folder(kfhe):
    write_binary_excel("whole.xlsb", [*LABELLED, (1048575, 16383, 1.0)])
    with ZipFile("whole.xlsb") as whole, ZipFile("book.xlsb", "w") as book:
        for part in whole.namelist():
            content = whole.read(part).replace(b'"worksheets/', b'"others/')
            book.writestr(part.replace("worksheets", "others"), content)
    said = kfhe("fit", "book.xlsb", "-t", "label", "-o", "model.kfhe", code=1)
    assert "a sheet has 1,048,576 rows and 16,384 columns" in said


def test_a_binary_file_that_ends_too_soon_is_said(kfhe):
    write_binary_excel("whole.xlsb", LABELLED)
    with ZipFile("whole.xlsb") as whole, ZipFile("book.xlsb", "w") as book:
        for part in whole.namelist():
            book.writestr(part, whole.read(part)[:100])
    said = kfhe("fit", "book.xlsb", "-t", "label", "-o", "model.kfhe", code=1)
    assert "book.xlsb: is damaged, or no Excel file" in said


def write_open_document(path, *rows):
    """Write an .ods file; a row is what stands in front of a cell, and the number of its repetitions."""
    uri = "urn:oasis:names:tc:opendocument:xmlns"
    spaces = "".join(f' xmlns:{name}="{uri}:{name}:1.0"' for name in ("office", "table", "text"))
    lines = [
        f'<table:table-row table:number-rows-repeated="{times}">{before}'
        '<table:table-cell office:value-type="string"><text:p>x</text:p></table:table-cell></table:table-row>'
        for before, times in rows
    ]
    with ZipFile(path, "w") as file:
        file.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        file.writestr("META-INF/manifest.xml", "<manifest/>")
        file.writestr(
            "content.xml",
            f"<office:document-content{spaces}><office:body><office:spreadsheet>"
            f'<table:table table:name="mine">{"".join(lines)}</table:table>'
            "</office:spreadsheet></office:body></office:document-content>",
        )


def test_a_cell_far_from_all_others_does_not_fill_the_memory_in_an_open_document_either(kfhe):
    fit = ("fit", "book.ods", "-t", "x", "-o", "model.kfhe")
    write_open_document("book.ods", ("", 1))
    assert "there are no rows below the header" in kfhe(*fit, code=1)
    write_open_document(
        "book.ods", ("", 1), ('<table:table-cell table:number-columns-repeated="16383"/>', 10**6)
    )
    assert "book.ods: is damaged, or a cell is far away from all others" in kfhe(*fit, code=1)


# ---------------------------------------------------------------- studies


def test_studies_read_tables_as_fit_does(kfhe):
    write_csv("orders.csv", orders())
    write_excel("book.xlsx", orders())
    kfhe(*plan_of_orders("{}", ("orders.csv", "book.xlsx")))
    show = ("data", "show", "orders.csv", "-t", "label")
    said = kfhe(*show)
    assert "9 features" in said  # id, three of a date, price, size, member, share, town
    assert "read as dates: joined (day first)" in said
    assert "categorical: town" in said
    said = kfhe(*show, "--as", "joined=category", "--encoding", "cp1252")
    assert "categorical: joined, town" in said
    assert "not UTF-8" not in said


def plan_of_orders(reading, datasets=("orders.csv",)):
    """Write a plan; return the options that run it."""
    Path("plan.toml").write_text(
        f'datasets = {json.dumps(datasets)}\nfolds = 2\ntarget = "label"\ndrop = ["id"]\n'
        f"reading = {reading}\n[algorithms]\nKFHE-l = {{}}\n"
    )
    return "study", "run", "plan.toml", "--jobs", "1", "--results", "all.sqlite"


def test_a_study_remembers_how_tables_are_read(kfhe):
    write_csv("orders.csv", orders())
    said = kfhe(*plan_of_orders('{ na = ["Bern"], as = { joined = "category" } }'))
    assert "read as numbers: price" in said
    with Store.read(Path("all.sqlite")) as store:
        assert store.plan.reading == {"na": ["Bern"], "as": {"joined": "category"}}
        assert Plan.from_json(store.plan.to_json()) == store.plan
    assert "reading" in kfhe(*plan_of_orders("{}"), code=1)  # it is another study


def test_a_study_names_a_column_that_no_table_has(kfhe):
    write_csv("orders.csv", orders())
    said = kfhe(*plan_of_orders('{ as = { joind = "date" } }'), code=1)
    assert "no table has a column 'joind' to be read as date; did you mean 'joined'?" in said
    kfhe(*plan_of_orders('{ as = { joined = "date" } }', ["orders.csv", "iris"]))


@pytest.mark.parametrize(
    "reading", [7, {"colour": "red"}, {"as": {"a": "star-date"}}, {"as": "date"}, {"na": "x"}, {"sep": 1}]
)
def test_a_plan_is_checked_for_how_tables_are_read(reading):
    with pytest.raises(StudyError, match="'reading"):
        replace(Plan.preset("quick"), reading=reading).checked()
