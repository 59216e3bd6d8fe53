"""Table files: what a csv or parquet file becomes, what is said of a bad one, and how it is written."""

import gzip
import io
import os
import re
from dataclasses import replace
from datetime import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from python_calamine import CalamineWorkbook

from kfhe.tables.errors import TableFileError
from kfhe.tables.files import Dialect, open_table, read_table
from kfhe.tables.labelled import ColumnRoles, LabelledTable
from kfhe.tables.output import write_batches, write_table
from kfhe.tables.parts import PartedTable

RULES = '''\
whole,fraction,gappy,zeros,signed,truth,gappy truth,mixed truth,text,gap words,date,empty,spaces
1,0.5,1,007,+5,True,true,1,red,NA,2020-01-31,,  3
2,1e-3,,07,-5,False,,True,"a, ""b""",x,2020-02-01,,4
3,-.5,3,7,5,True,false,0,blé,None,,, 5
'''


@pytest.fixture
def write(tmp_path):
    def write(content, name="mine.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def read_in(how, table, kinds):
    """Return the rows of an open file, whole or some columns of them in batches."""
    return [table.read()] if how == "whole" else [rows for rows, _ in table.batches(kinds)]


def test_columns_have_the_types_that_pandas_gives_them(write):
    path = write(RULES)
    ours, theirs = read_table(path).to_pandas(), pd.read_csv(path)
    for column in theirs.columns:
        numeric = [pd.api.types.is_numeric_dtype(frame[column]) for frame in (ours, theirs)]
        assert numeric[0] == numeric[1], column
        assert [None if pd.isna(value) else value for value in ours[column]] == [
            None if pd.isna(value) else value for value in theirs[column]
        ], column


def test_text_can_be_asked_for(write):
    assert read_table(write(RULES), text=["zeros"])["zeros"].to_list() == ["007", "07", "7"]


def test_a_column_without_a_name_gets_the_name_that_pandas_gives_it(write):
    path = write(",a\n0,x\n1,y\n")
    assert read_table(path).columns == list(pd.read_csv(path).columns) == ["Unnamed: 0", "a"]
    with open_table(path) as table:
        ((batch, _),) = table.batches({"Unnamed: 0": "number", "a": "category"})
    assert batch.to_dict(as_series=False) == {"Unnamed: 0": [0.0, 1.0], "a": ["x", "y"]}


@pytest.mark.parametrize(
    "start",
    [
        "a,b\n1,2\n",
        "a,b\r\n\r\n1,x\r\n",
        "a,b\n\n1,2",
        "a;b;c\n1;2,5;3\n",
        '"a","b"\n1,2\n',
        "a,b\r1,2\r",
        "é,b\n1,2\n",
        "a\n1\n\n2\n",
        "a,\n1,2\n",
        '"a,b",c\n1,2\n',
        "a,b\n" + 10_000 * "1.25,x\n" + "1,2,3\n",
    ],
)
def test_columns_are_named_as_by_whoever_reads_the_rows(write, start):
    path = write(start)
    with open_table(path) as table:
        names, sep = table.columns, ";" if ";" in start else ","
    assert names == list(pd.read_csv(path, sep=sep, nrows=1).columns)


@pytest.mark.parametrize("rows", ["1,2,3\n", "1\n", "1,2\n1,2,3\n", "1,2\n1\n"])
def test_what_is_wrong_with_the_first_rows_is_said_before_any_is_read(write, rows):
    with pytest.raises(TableFileError, match="row"), open_table(write(f"a,b\n{rows}")):
        pass


def test_types_are_found_in_all_rows_not_just_the_first(write):
    lines = ["a,b,c"] + ["1,1,2020-01-01"] * 50_000 + ["0.5,x,never"]
    table = read_table(write("\n".join(lines)))
    assert table.dtypes == [pl.Float64, pl.String, pl.String]
    assert table.slice(50_000).to_dict(as_series=False) == {"a": [0.5], "b": ["x"], "c": ["never"]}


def test_batches_are_the_table_in_pieces(write, monkeypatch):
    monkeypatch.setattr("kfhe.tables.csv.PIECE", 1 << 18)
    rows = "".join(f'{i / 7!r},{"uvw"[i % 3]},"two\nlines"\n' for i in range(90_000))
    path = write("number,text,ignored\n" + rows)
    with open_table(path) as table:
        batches = [rows for rows, _ in table.batches({"number": "number", "text": "category"})]
    assert len(batches) > 2
    assert max(map(len, batches)) < 60_000
    whole = read_table(path)
    for column in ("number", "text"):
        assert pl.concat(batches)[column].to_list() == whole[column].to_list()


def test_text_and_numbers_are_read_as_the_reader_wants_them(write):
    path = write("a,b,c\n1,1,True\n2,2,False\n")
    with open_table(path) as table:
        ((batch, _),) = table.batches({"a": "number", "c": "number", "b": "category"})
    assert batch.to_dict(as_series=False) == {"a": [1.0, 2.0], "b": ["1", "2"], "c": [True, False]}


def test_the_decimal_mark_of_the_file_decides_which_number_is_meant(write):
    path = write("price;size;class\n1.234;0,5;x\n2.500;1,5;y\n")
    table = LabelledTable.read(path, ColumnRoles(read_as={"price": "number"}), Dialect(decimal=","))
    assert table.X["price"].to_list() == [1234, 2500]


def test_a_table_can_be_wide(write):
    names = [f"a column with quite a long name, so that the header is long, {j}" for j in range(3_000)]
    path = write(",".join(f'"{name}"' for name in names) + "\n" + ",".join("1" * 3_000) + "\n")
    assert read_table(path).shape == (1, 3_000)
    with open_table(path) as table:
        ((batch, _),) = table.batches({names[7]: "number"})
    assert batch.to_dict(as_series=False) == {names[7]: [1.0]}


def test_gzip_parquet_and_pipes_give_the_same(write, monkeypatch):
    expected = read_table(write(RULES))
    expected.write_parquet(path := write("", "mine.parquet"))
    packed = write(gzip.compress(RULES.encode()), "mine.csv.gz")
    for piped in (None, RULES.encode(), packed.read_bytes(), path.read_bytes()):
        if piped is not None:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(piped))))
        for source in (path, packed) if piped is None else ("-",):
            assert read_table(source).equals(expected)


def test_row_names_of_pandas_are_no_column_of_a_parquet_file(tmp_path):
    pd.DataFrame({"a": [1, 2]}, index=[5, 6]).to_parquet(tmp_path / "mine.parquet")
    assert read_table(tmp_path / "mine.parquet").columns == ["a"]


BAD = {
    "empty": ("", "is empty; the first row must name the columns"),
    "blank": ("\n\n", "is empty"),
    "header only": ("a,b\n", "there are no rows below the header"),
    "ragged": ("a,b\n1,2\n\n1,2,3\n", r"row 3 has 3 values, but the header \(row 1\) names 2 columns"),
    "title": ("My report\n\na,b\n1,2\n", r"row 2 has 2 values, .* names one column; remove titles above"),
    "short": ("a,b\n1,2\n1\n", r"row 3 has 1 value, but the header \(row 1\) names 2 columns"),
    "no names": ("a,,b,\n1,2,3,4\n", "columns 2, 4 have no name in the header; name them"),
    "same names": ("a,b,a\n1,2,3\n", "there are several columns named 'a'; rename them"),
    "open quote": ('a,b\n1,"x\n2,y\n', r'a quote \("\) is opened in line 2 and never closed: .x\\n2,y'),
    "no UTF-8": (
        b"a,b\n1,\xc3\xa9\n2,\xe9\n",
        "column 'b', row 3: there are bytes that are not UTF-8; .*--encoding latin-1",
    ),
    "no UTF-8 in the header": (b"a,\xe9\n1,\xc3\xa9\n", "the header has bytes that are not UTF-8"),
    "no text": (b"a,b\n1,\x01\xe9\n", "column 'b', row 2: there are bytes that are not UTF-8"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("how", ["whole", "in batches"])
def test_a_bad_csv_gets_an_error_that_says_where_and_why(write, case, how):
    content, message = BAD[case]
    path = write(content)
    with pytest.raises(TableFileError, match=f"mine.csv: {message}"), open_table(path) as table:
        read_in(how, table, {"a": "number", "b": "category"})


@pytest.mark.parametrize("how", ["whole", "in batches"])
@pytest.mark.parametrize(
    ("content", "dialect"),
    [
        ("a;b\n1,5;x\n-2,25;y, z\n", Dialect()),
        ('"a, b";b\r\n1,5;x\r\n"-2,25";"y, z"\r\n', Dialect()),
        ("a\tb\n1.5\tx\n-2.25\ty, z\n", Dialect()),
        ("a|b\n1.5|x\n-2.25|y, z\n", Dialect(sep="|")),
    ],
)
def test_separators_and_decimal_commas_are_recognised_or_told(write, content, dialect, how):
    with open_table(write(content), dialect) as table:
        number, text = table.columns
        (found,) = read_in(how, table, {number: "number", text: "category"})
        (note,) = table.notes
    assert found[number].to_list() == [1.5, -2.25]
    assert found[text].to_list() == ["x", "y, z"]
    assert "mine.csv: columns are separated by" in note


def test_one_mark_cant_separate_columns_and_decimals(write):
    with pytest.raises(TableFileError, match="can't both be separated by ','"):
        read_table(write("a,b\n1,2\n"), dialect=Dialect(decimal=","))


def test_points_and_commas_that_are_no_decimals_are_left_alone(write):
    assert read_table(write("a;b\n1.5;1,200.5\n2.5;x\n"))["a"].to_list() == [1.5, 2.5]
    assert read_table(write("a;b\n1,5;2.5\n2,5;3.5\n"))["b"].to_list() == [2.5, 3.5]
    assert read_table(write("a,b\n1;2,x\n"))["a"].to_list() == ["1;2"]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-8"])
@pytest.mark.parametrize("how", ["whole", "in batches"])
def test_other_encodings_are_read_if_they_are_named(write, encoding, how):
    text = "a,blé\n" + "1,ü\n2,ß\n" * 1000
    with open_table(write(text.encode(encoding)), Dialect(encoding=encoding)) as table:
        found = read_in(how, table, {"a": "number", "blé": "category"})
    assert [word for batch in found for word in batch["blé"].to_list()] == ["ü", "ß"] * 1000


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16"])
@pytest.mark.parametrize("how", ["whole", "in batches"])
def test_what_windows_writes_is_read_and_said(write, encoding, how):
    path = write("größe,b\n1,Zoë\n2,x\n".encode(encoding))
    with open_table(path) as table:
        rows = pl.concat(read_in(how, table, {"größe": "number", "b": "category"}))
        (note,) = table.notes
    assert rows.to_dict(as_series=False) == {"größe": [1, 2], "b": ["Zoë", "x"]}
    found = "utf-16" if encoding == "utf-16" else "cp1252"
    assert f"it is not UTF-8, so it is read as {found}; --encoding sets another" in note


def test_an_encoding_that_is_wrong_or_unknown_is_said(write):
    path = write("a,b\n1,é\n".encode("latin-1"))
    with pytest.raises(TableFileError, match=r"mine\.csv: there are bytes that are not utf-8"):
        read_table(path, dialect=Dialect(encoding="utf-8"))
    with pytest.raises(TableFileError, match="unknown encoding 'latin-x'; for example, utf-8, latin-1"):
        read_table(path, dialect=Dialect(encoding="latin-x"))


def test_further_words_are_gaps(write):
    path = write("a,b\n-,x\n2,?\n3,NA\n")
    found = read_table(path, dialect=Dialect(na=("-", "?")))
    assert found.to_dict(as_series=False) == {"a": [None, 2, 3], "b": ["x", None, None]}


def rows_with_quotes(*changed, n_rows=100, before=""):
    """Return a csv of three columns in which some rows have a quote at the start of their text."""
    quote = dict.fromkeys(changed, '"')
    return f"a,b,c\n{before}" + "".join(f"{row},{quote.get(row, '')}w{row},x\n" for row in range(n_rows))


@pytest.mark.parametrize("how", ["whole", "in batches", "in batches, without the column"])
@pytest.mark.parametrize("far", [0, 100_000])
def test_a_stray_quote_that_swallows_rows_is_an_error_that_names_the_line(write, how, far):
    path = write(rows_with_quotes(20, 30, before="1,y,z\n\n" * far))
    said = f"mine.csv: line {22 + 2 * far}: a value in quotes runs over 11 lines: 'w20,x"
    text = "b" if how == "in batches" else "c"
    with pytest.raises(TableFileError, match=said), open_table(path) as table:
        read_in(how, table, {"a": "number", text: "category"})


@pytest.mark.parametrize("how", ["whole", "in batches"])
def test_a_text_may_have_a_few_lines_and_that_is_said(write, how):
    path = write('a,b,c\n1,"two\nlines",x\n2,5" and 6,"q"\n3,7","a ""b""\n"\n4,5",y\n')
    with open_table(path) as table:
        (found,) = read_in(how, table, {"a": "number", "b": "category", "c": "category"})
        notes = table.notes
    assert found["b"].to_list() == ["two\nlines", '5" and 6', '7"', '5"']
    assert found["c"].to_list() == ["x", "q", 'a "b"\n', "y"]
    assert [note.split(". If")[0] for note in notes] == [
        f"{path}: 2 values have line breaks in quotes; they begin in lines 2, 5"
    ]


def test_three_lines_of_a_text_that_look_like_rows_are_taken_for_rows(write):
    rows = ["1,x,y"] * 4
    with pytest.raises(TableFileError, match="line 2: a value in quotes runs over 5 lines"):
        read_table(write("\n".join(["a,b,c", '0,"text', *rows[:3], 'more",z', ""])))
    found = read_table(write("\n".join(["a,b,c", '0,"text', *rows[:2], 'more",z', ""])))
    assert found["b"].to_list() == ["text\n1,x,y\n1,x,y\nmore"]


def test_a_text_of_very_many_lines_is_taken_for_a_mistake(write):
    with pytest.raises(TableFileError, match="line 3: a value in quotes runs over 21 lines"):
        read_table(write('a,b\n1,x\n2,"' + "text\n" * 20 + '"\n'))
    assert len(read_table(write('a,b\n1,x\n2,"' + "text\n" * 19 + '"\n'))) == 2


@pytest.mark.parametrize("far", [0, 100_000])
def test_another_type_is_told_with_column_row_and_value(write, far):
    path = write("id,size,flag\n" + "1,2,True\n" * far + "1,2,False\nx,many,1\n")
    said = f"column 'size', row {far + 3}: found 'many'; accepted are numbers"
    with pytest.raises(TableFileError, match=said), open_table(path) as table:
        list(table.batches({"size": "number"}))
    first = (
        f"row {far + 3}: found '1'; accepted are true and"
        if far
        else "row 2: found 'False'; accepted are num"
    )
    with pytest.raises(TableFileError, match=f"column 'flag', {first}"), open_table(path) as table:
        list(table.batches({"flag": "number"}))


def test_damaged_files_are_told_from_others(write):
    packed = gzip.compress(RULES.encode() * 1000)
    frame = io.BytesIO()
    pd.DataFrame({"a": np.arange(1000.0)}).to_parquet(frame)
    for content, name in (
        (b"no gzip", "mine.csv.gz"),
        (packed[: len(packed) // 2], "mine.csv.gz"),
        (packed[:-20] + bytes(20), "mine.csv.gz"),
        (b"no parquet", "mine.parquet"),
        (frame.getvalue()[:-30], "mine.parquet"),
        (frame.getvalue()[:20] + bytes(200) + frame.getvalue()[220:], "mine.parquet"),
    ):
        with pytest.raises(TableFileError, match=f"{name}: is damaged"):
            read_table(write(content, name))


def of_first_part(table):
    return table.view.table(table.parts[0])


@pytest.mark.parametrize("damaged", ["größe", "Köln"])
@pytest.mark.parametrize("stored_as", [str, "category"])
def test_a_parquet_file_whose_text_is_none_is_damaged(tmp_path, damaged, stored_as):
    path = tmp_path / "mine.parquet"
    frame = pd.DataFrame({"größe": ["Köln", "Bern"] * 5, "y": ["a", "b"] * 5}, dtype=stored_as)
    frame.to_parquet(path, compression=None)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(damaged.encode(), damaged.encode().replace(b"\xc3", b"x")))
    told = f"{path.name}: is damaged, or no parquet file"
    with pytest.raises(TableFileError, match=told):
        read_table(path)
    with pytest.raises(TableFileError, match=told), open_table(path) as table:
        list(table.batches({"y": "category"}, kept=["größe"]))
    with pytest.raises(TableFileError, match=told):
        of_first_part(PartedTable.open([path], ColumnRoles("y")))


def test_a_parquet_file_whose_columns_are_called_in_two_ways_is_damaged(tmp_path):
    path = tmp_path / "mine.parquet"
    pa.parquet.write_table(pa.table({"colour": ["red", "blue"] * 5, "y": ["a", "b"] * 5}), path)
    head, _, tail = path.read_bytes().rpartition(b"colour")  # as the column is stored
    path.write_bytes(head + b"favour" + tail)
    with pytest.raises(TableFileError, match=r"mine\.parquet: is damaged.* column 'colour' is not stored"):
        PartedTable.open([path], ColumnRoles("y"))


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("mine.json", pd.DataFrame.to_json),
        ("mine.feather", pd.DataFrame.to_feather),
        ("mine.csv.zip", pd.DataFrame.to_csv),
        ("mine.csv.bz2", pd.DataFrame.to_csv),
        ("mine.csv.xz", pd.DataFrame.to_csv),
        ("mine.pkl", pd.DataFrame.to_pickle),
    ],
)
def test_files_of_other_kinds_are_told_from_damaged_ones(tmp_path, name, write):
    write(pd.DataFrame({"a": [1, 2, 3], "y": ["u", "v", "u"]}), tmp_path / name)
    ending = re.escape(name[name.rindex(".") :])
    with pytest.raises(
        TableFileError, match=rf"{ending} files are not supported; accepted are \.csv, \.csv\.gz"
    ):
        read_table(tmp_path / name)
    if name in ("mine.feather", "mine.csv.bz2", "mine.csv.xz"):
        called = (tmp_path / name).rename(tmp_path / "mine.csv")
        with pytest.raises(TableFileError, match=r"mine\.csv: this kind of file is not supported"):
            read_table(called)


def test_a_parquet_file_without_rows_or_of_another_type_is_refused(tmp_path):
    pd.DataFrame({"a": []}).to_parquet(tmp_path / "none.parquet")
    with pytest.raises(TableFileError, match=r"none.parquet: there are no rows"):
        read_table(tmp_path / "none.parquet")
    pd.DataFrame({"a": ["x"], "b": [1]}).to_parquet(tmp_path / "mine.parquet")
    with open_table(tmp_path / "mine.parquet") as table:
        with pytest.raises(TableFileError, match=r"column 'a' is text; accepted are numbers"):
            list(table.batches({"a": "number"}))
        with pytest.raises(TableFileError, match=r"column 'b' has numbers; accepted is text"):
            list(table.batches({"b": "category"}))


def test_a_column_whose_name_has_spaces_around_it_is_shown_with_them(write):
    with pytest.raises(TableFileError, match="there is no column 'y'; did you mean ' y '"):
        LabelledTable.read(write("a, b, y \n1,2,p\n3,4,q\n"), ColumnRoles("y"))


def test_rows_are_numbered_as_in_the_file_though_some_are_left_out(write):
    path = write("a,given,true\n1,x,x\n2,,y\n3,y,\n4,x,x\n5,y,y\n")
    roles = ColumnRoles("given", true="true", drop_unlabelled=True)
    with pytest.raises(TableFileError, match="column 'true' of true labels has 1 gap, in row 4 "):
        LabelledTable.read(path, roles)
    assert LabelledTable.read(path, replace(roles, true=None)).row_numbers.tolist() == [2, 4, 5, 6]


def test_files_that_are_not_there_are_named_with_those_most_like_them(write, tmp_path):
    write(RULES, "customers.csv")
    with pytest.raises(TableFileError, match=r"there is no such file; did you mean 'customers.csv'\?"):
        read_table(tmp_path / "Customer.csv")
    with pytest.raises(TableFileError, match="is a folder"):
        read_table(tmp_path)


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.parquet", "out.xlsx"])
def test_what_is_written_can_be_read(name, tmp_path):
    table = pl.DataFrame({"label": ["a, b", 'say "x"', "plain"], "score": [0.1, 1 / 3, 1e-300]})
    write_batches(tmp_path / name, table.schema, iter([table, table[2:]]))
    assert read_table(tmp_path / name).equals(pl.concat([table, table[2:]]))


def test_quotes_are_written_only_where_they_are_needed(tmp_path):
    write_table(tmp_path / "out.csv", pl.DataFrame({"a, b": ["x", None], "c": [1.5, None]}))
    assert (tmp_path / "out.csv").read_text() == '"a, b",c\nx,1.5\n,\n'


def test_text_of_an_excel_file_stays_text_and_numbers_are_exact(tmp_path):
    texts = ["=1+1", "http://example.org", "007", "12", None]
    ids = [2**53 + 1, -(2**60) - 1, 2**53, 1, None]
    times = [datetime(2024, 1, 5), datetime(2024, 1, 5, 13, 30), None, None, None]
    written = pl.DataFrame(
        {"text": texts, "id": ids, "time": times, "share": [float("nan"), 0.5, 1e-300, -1.0, 0.0]}
    )
    write_table(tmp_path / "out.xlsx", written)
    sheet = CalamineWorkbook.from_path(tmp_path / "out.xlsx").get_sheet_by_index(0).to_python()
    assert sheet == [
        ["text", "id", "time", "share"],
        ["=1+1", str(2**53 + 1), "2024-01-05 00:00:00", ""],
        ["http://example.org", str(-(2**60) - 1), "2024-01-05 13:30:00", 0.5],
        ["007", 2.0**53, "", 1e-300],
        ["12", 1.0, "", -1.0],
        ["", "", "", 0.0],
    ]


def test_what_does_not_fit_into_an_excel_file_is_told(tmp_path, monkeypatch):
    with pytest.raises(TableFileError, match=r"out\.xlsx: row 3, column 'b': too long for a cell of Excel"):
        write_table(tmp_path / "out.xlsx", pl.DataFrame({"a": [1, 2], "b": ["x", "y" * 40_000]}))
    monkeypatch.setattr("kfhe.tables.output.MOST_ROWS", 3)
    rows = pl.DataFrame({"a": [1, 2]})
    with pytest.raises(
        TableFileError, match=r"out\.xlsx: an Excel sheet has at most 3 rows below its header"
    ):
        write_batches(tmp_path / "out.xlsx", rows.schema, [rows, rows])
    assert not (tmp_path / "out.xlsx").exists()


def test_the_ending_of_an_output_file_has_to_tell_its_kind(tmp_path):
    with pytest.raises(TableFileError, match=r"out.txt: the name must end in .csv, .csv"):
        write_table(tmp_path / "out.txt", pl.DataFrame({"a": [1]}))


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.parquet", "out.xlsx"])
def test_a_disk_that_fills_up_leaves_the_old_file(name, tmp_path, rng):
    resource = pytest.importorskip("resource")
    path = tmp_path / name
    path.write_bytes(b"old")
    table = pl.DataFrame({"a": rng.random(100_000)})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(OSError, match=f"{name}: can't be written: File too large"):
            write_table(path, table)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.parquet", "out.xlsx"])
def test_an_error_in_between_leaves_the_old_file(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(b"old")
    table = pl.DataFrame({"a": [1]})

    def batches():
        yield table
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        write_batches(path, table.schema, batches())
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [path.name]
