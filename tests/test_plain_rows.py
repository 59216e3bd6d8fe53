"""Plain rows of a csv are read by threads of our own: to what pyarrow gives, and with the same errors."""

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfhe.cli.scoring import ModelReader
from kfhe.tables import csv, lines
from kfhe.tables.csv import CsvTable
from kfhe.tables.files import Dialect, TableFileError
from kfhe.tables.schema import Schema

SCHEMA = Schema.of_columns(["x", "word", "flag"], [None, {"a": 0, "b": 1, "é": 2, 5: 3}, None])
GOOD = {
    "x": ["1", "-2.5", "", "NA", "1e5", " 3", "12345678901234567890123", '"4"'],
    "word": ["a", "b", "é", "", "other", '"a"', '"NA"', "NULL", "  a"],
    "other": ["", "x y", '"u"'],
    "flag": ["true", "False", "", "TRUE"],
}
ODD = [
    '"x,y"',
    '"x\ny"',
    "inf",
    "1e999",
    "nan",
    "NAN",
    "+5",
    "1_0",
    'q"q',
    '"a""b"',
    "zz",
    "\r",
    "-",
    "true",
    "0",
    "\udcff",
]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(csv, "BLOCK", 1)  # but for the lines, which count
    monkeypatch.setattr(csv, "ROWS", 3)


def outcome(data, dialect=csv.AS_FOUND, *, plain):
    """Return all that is read, and how much of it was plain; or what is said to be wrong."""
    reader = ModelReader(SCHEMA, np.array(["p", "q"]), named=True)
    n_plain, found = 0, []
    try:
        table = CsvTable("new.csv", io.BytesIO(data), dialect)
        reader.match(table)
        if plain:
            found += reader.plain_rows(table, lambda rows: rows, 2)
            n_plain = sum(map(len, found))
        found += [SCHEMA.matrix(features) for features, _ in reader.batches(table, [])]
    except (TableFileError, ValueError) as error:
        return str(error), n_plain
    return (np.concatenate(found).tobytes(), reader.unknown, reader.notes(table)), n_plain


def same(data, dialect=csv.AS_FOUND):
    """Read in both ways; return what came of it, and the number of plain rows."""
    (found, n_plain), (expected, _) = (outcome(data, dialect, plain=plain) for plain in (True, False))
    assert found == expected
    return found, n_plain


rows = st.tuples(*map(st.sampled_from, GOOD.values()))
odd_cells = st.tuples(st.integers(0, 40), st.integers(0, 3), st.sampled_from(ODD))
odd_lines = st.tuples(st.integers(0, 40), st.just(slice(None)), st.sampled_from([[""], ["1"], list("12345")]))


@settings(deadline=None, max_examples=300)
@given(
    st.lists(rows, max_size=40),
    st.none() | odd_cells | odd_lines,  # one thing: of two that are wrong, either may be noticed first
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_what_is_read_and_what_is_said_does_not_depend_on_who_reads(rows, odd, newline, ended):
    cells = [list(row) for row in rows]
    if odd is not None and odd[0] < len(cells):
        i, j, instead = odd
        cells[i][j] = instead
    data = newline.join([",".join(GOOD), *map(",".join, cells)]) + newline * ended
    same(data.encode(errors="surrogateescape"))


def test_plain_rows_are_read_as_such():
    written = [f"{i}.5,{'ab'[i % 2]},x,true" for i in range(500)]
    _, n_plain = same("\n".join(["x,word,other,flag", *written]).encode())
    assert n_plain == 500


@pytest.mark.parametrize("header", ['"x","word","flag"', "\ufeffx,word,flag", "flag,word,x", "x,word,flag,"])
def test_headers_may_be_in_quotes_have_a_mark_or_another_order(header):
    row = "true,a,1" if header.startswith("flag") else "1,a,true"
    row += "," * header.endswith(",")
    _, n_plain = same(f"{header}\n{row}\n".encode())
    assert n_plain == 1


@pytest.mark.parametrize(
    "header", ['"x","word","flag","two\nlines"', '"x","word","flag","a""b"', '\n"x",word,flag']
)
def test_a_header_that_takes_more_than_a_look_is_left_to_others(header):
    _, n_plain = same(f"{header}\n1,a,true,0\n".encode())
    assert n_plain == 0


def test_decimal_commas_other_marks_and_encodings_are_plain_too():
    for data, dialect in [
        ("x;word;flag\n1,5;é;true\n2;a;\n".encode(), csv.AS_FOUND),
        ("x\tword\tflag\n1.5\té\ttrue\n".encode("latin-1"), Dialect(encoding="latin-1")),
        ("x,word,flag\n-9,é,true\n9,-9,-9\n".encode("cp1252"), Dialect(na=("-9",))),
    ]:
        _, n_plain = same(data, dialect)
        assert n_plain > 0


@pytest.mark.parametrize("cell", ["none", "1,2", '"' + "\n" * 30 + '"'])
def test_errors_behind_plain_rows_name_the_row_or_line(cell):
    written = [f"{i},a,true" for i in range(200)]
    written[150] = f"{cell},a,true"
    said, n_plain = same("\n".join(["x,word,flag", *written]).encode())
    assert 100 < n_plain <= 150
    assert "152" in said


def test_a_line_that_is_too_long_is_still_an_error():
    written = ["1,a,true"] * 50
    written[40] = f"1,{'a' * 10_000},true"
    said, _ = same("\n".join(["x,word,flag", *written]).encode())
    assert "a row has more than" in said


def test_no_rows_is_still_an_error():
    for data in (b"x,word,flag\n", b"x,word,flag\n\n\n"):
        said, _ = same(data)
        assert "there are no rows" in said


def test_few_blocks_are_in_memory_however_many_there_are(monkeypatch):
    made = []
    monkeypatch.setattr(lines, "bytearray", lambda n: made.append(n) or bytearray(n), raising=False)
    blocks = lines.Lines(b"start\n", io.BytesIO(b"line\n" * 1000), 50)
    assert b"".join(blocks.worked_on(bytes, 2)) == b"start\n" + b"line\n" * 1000
    assert blocks.rest() == b""
    assert 0 < len(made) <= 6


def test_what_goes_wrong_in_a_thread_is_raised():
    def work(block):
        raise MemoryError

    with pytest.raises(MemoryError):
        list(lines.Lines(b"", io.BytesIO(b"line\n" * 1000), 50).worked_on(work, 2))
