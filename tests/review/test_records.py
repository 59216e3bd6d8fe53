"""The records of a csv: what is not changed stays byte for byte."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfhe.review.records import Records
from kfhe.tables.files import TableFileError

cells = st.text(st.sampled_from('ab,;"\n\r é\t'), max_size=5)


def rewritten(text, sep=",", encoding=None, **changes):
    return Records(text.encode(encoding or "utf-8"), sep, encoding, "t.csv").changed(**changes)


@given(
    table=st.lists(st.tuples(cells, cells, cells), min_size=2, max_size=6),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    sep=st.sampled_from(",;\t"),
    quotes=st.booleans(),
    encoding=st.sampled_from([None, "latin-1", "utf-16", "utf-8-sig", "utf-32"]),
    value=cells,
)
def test_one_field_is_changed_and_all_else_stays(table, end, sep, quotes, encoding, value):
    def written(rows):
        return "".join(sep.join(map(field, row)) + end for row in rows)

    def field(cell):
        doubled = cell.replace('"', '""')
        return f'"{doubled}"' if quotes or set(cell) & set(f'{sep}"\n\r') else cell

    table = [("x", *row) for row in table]  # so that no line is blank
    text = written(table)
    raw = text.encode(encoding or "utf-8")
    records = Records(raw, sep, encoding, "t.csv")
    assert len(records) == len(table)
    assert records.changed({}, set()) == raw
    after = records.changed({(1, 2): value}, {0}).decode(encoding or "utf-8")
    expected = [list(row) for row in table[1:]]
    expected[0][2] = value
    assert list(csv.reader(io.StringIO(after, newline=""), delimiter=sep)) == expected
    assert after.endswith(written(table[2:]))


def test_quotes_inside_a_field_are_no_quotes():
    text = 'x,y\n5" disk,a\n3" disk,b\n'
    assert rewritten(text, values={(1, 1): "c"}, dropped=set()) == b'x,y\n5" disk,c\n3" disk,b\n'


def test_blank_lines_are_kept_and_not_counted():
    text = "\nx,y\n\n1,a\n\r\n2,b"
    assert rewritten(text, values={(2, 1): "c"}, dropped={1}) == b"\nx,y\n\n\r\n2,c"


def test_the_mark_at_the_start_and_the_order_of_bytes_stay():
    for encoding, mark in (("utf-16-be", b"\xfe\xff"), ("utf-16-le", b"\xff\xfe")):
        raw = mark + "x,y\n1,é\n".encode(encoding)
        assert Records(raw, ",", "utf-16", "t.csv").changed({(1, 0): "2"}, set()) == raw.replace(b"1", b"2")


def test_a_value_that_was_in_quotes_stays_in_quotes():
    assert rewritten('x,y\n"1",a\n', values={(1, 0): "2"}, dropped=set()) == b'x,y\n"2",a\n'


def test_what_cannot_be_written_back_is_refused():
    with pytest.raises(TableFileError, match="can't be written back as it is"):
        Records(b"x,y\n+AGE-,b\n", ",", "utf-7", "t.csv")
