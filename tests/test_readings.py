"""Readings: text that stands for dates, numbers or true and false, and no text that does not."""

import numpy as np
import pytest

from kfhe.tables.readings import READINGS, UnreadableError, misfits, numbers_in, read, recognise


@pytest.mark.parametrize(
    ("texts", "reading", "expected"),
    [
        (["2024-12-31", "2024/1/5"], "date", ["2024-12-31", "2024-01-05"]),
        (["2024-12-31T18:30:15", "2024-12-31 18:30"], "date", ["2024-12-31T18:30:15", "2024-12-31T18:30"]),
        (["2024-12-31T18:30:15.123456789"], "date", ["2024-12-31T18:30:15.123456"]),
        (
            ["2024-12-31T18:30Z", "2024-12-31 23:30:00-01:00"],
            "date",
            ["2024-12-31T18:30", "2025-01-01T00:30"],
        ),
        (["31.12.2024", "1.2.2024 7:05"], "day-first", ["2024-12-31", "2024-02-01T07:05"]),
        (["12/31/2024", "1/2/2024 12:05 AM"], "month-first", ["2024-12-31", "2024-01-02T00:05"]),
        (["12/31/2024, 1:05:09 pm"], "month-first", ["2024-12-31T13:05:09"]),
        (["31-12-2024 18:30 +0200"], "day-first", ["2024-12-31T16:30"]),
        (["31-12-2024 18:30 +05"], "day-first", ["2024-12-31T13:30"]),
        (
            ["12 Mar 2024", "1. september 2024", "31-DEC-24"],
            "day-first",
            ["2024-03-12", "2024-09-01", "2024-12-31"],
        ),
        (["Mar 12, 2024", "Sept. 1 2024 6:30 PM"], "month-first", ["2024-03-12", "2024-09-01T18:30"]),
        (["31.12.24", "1/2/69"], "day-first", ["2024-12-31", "1969-02-01"]),
        (["12/31/68"], "month-first", ["2068-12-31"]),
        (
            ["9999-12-31T23:59:59-05:00", "0001-01-01 00:00+01"],
            "date",
            ["10000-01-01T04:59:59", "0000-12-31T23"],
        ),
        (["31.12.9999 23:00 -0200"], "day-first", ["10000-01-01T01:00"]),
    ],
)
def test_dates_are_read_in_utc(texts, reading, expected):
    np.testing.assert_array_equal(read(texts, reading), np.array(expected, dtype="M8[us]"))


@pytest.mark.parametrize(
    ("text", "reading", "expected"),
    [
        ("$1,200", "decimal-point", 1200),
        ("€ 3.50", "decimal-point", 3.5),
        ("3,50 €", "decimal-comma", 3.5),
        ("1.234.567,89", "decimal-comma", 1234567.89),
        ("1 234 567,89", "decimal-comma", 1234567.89),
        ("1\u202f234", "decimal-comma", 1234),
        ("CHF 1'200.50", "decimal-point", 1200.5),
        ("45 %", "decimal-point", 45),
        ("-$5", "decimal-point", -5),
        ("$-5", "decimal-point", -5),
        ("\u22125", "decimal-point", -5),
        ("(1,200.50)", "decimal-point", -1200.5),
        ("1e3", "decimal-point", 1000),
        (".5", "decimal-point", 0.5),
        (" 7 ", "decimal-point", 7),
    ],
)
def test_numbers_are_read_with_their_marks(text, reading, expected):
    assert read([text], reading).tolist() == [expected]


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize(
    "text",
    ["", "-", ".", "x", "1.2.3", "1,23,4", "--5", "($5", "2024-02-30", "31.13.2024", "12/2024", "9" * 400],
)
def test_other_text_is_told_with_its_position(text, reading):
    with pytest.raises(UnreadableError, match="accepted are") as told:
        read(
            [next(iter(READINGS[reading].split(", "))) if reading == "boolean" else READINGS[reading], text],
            reading,
        )
    assert (told.value.position, told.value.text) == (1, text)


@pytest.mark.parametrize("text", ["31.12.2024 25:00", "12/31/2024 13:00 PM", "2024-12-31T00:00+25:00"])
def test_there_are_no_such_times(text):
    for reading in ("date", "day-first", "month-first"):
        with pytest.raises(UnreadableError):
            read([text], reading)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["2024-12-31", "2024-01-01"], ["date"]),
        (["05/03/2024", "31/03/2024"], ["day-first"]),
        (["05/03/2024", "03/31/2024"], ["month-first"]),
        (["05/03/2024", "06/03/2024"], ["day-first", "month-first"]),
        (["31/03/2024", "03/31/2024"], []),
        (["2024-12-31", "soon"], []),
        (["31/03/24"], ["day-first", "month-first"]),  # which of them is the year?
        (["$1,200", "7"], ["decimal-point"]),
        (["$1,200", "€7"], []),
        (["12,5", "7"], ["decimal-comma"]),
        (["1.234,56"], ["decimal-comma"]),
        (["1.200 €", "950 €"], ["decimal-comma"]),  # money has no three decimals
        (["1.2.3", "1.2.4"], []),
        (["true", "FALSE", "1"], ["boolean"]),
        (["Yes", "yes", "no"], ["boolean"]),
        (["yes", "no"], []),  # two categories are as good
        (["true", "1", "yes"], []),  # nothing is false
        (["red", "green"], []),
        ([], []),
    ],
)
def test_a_column_is_recognised_where_it_leaves_no_doubt(texts, expected):
    assert recognise(texts) == expected


def test_the_decimal_mark_of_the_file_comes_first():
    assert numbers_in(["1,200", "7"], ".") == ["decimal-point"]
    assert numbers_in(["1,200", "7"], ",") == ["decimal-comma"]
    assert numbers_in(["3.50 %"], ",") == ["decimal-point"]  # it can't be otherwise


def test_names_of_months_leave_no_doubt_but_years_of_two_digits_do():
    assert recognise(["12 Mar 2024", "5 May 2024"]) == ["day-first"]
    assert recognise(["Mar 12, 2024", "May 5, 2024"]) == ["month-first"]
    assert recognise(["1/31/24", "2/28/24"]) == ["day-first", "month-first"]
    assert recognise(["31.12.24", "01.02.24"]) == ["day-first", "month-first"]


@pytest.mark.parametrize(
    "text", ["24-12-31", "1.2.24", "12 Mag 2024", "Mar 2024", "31 Feb 2024", "12Mar2024"]
)
def test_numbers_of_versions_and_other_words_are_no_dates(text):
    assert recognise([text]) == []


def test_a_number_behind_a_date_is_no_hour():
    assert recognise(["2024-01-05-07", "2024-01-05-08"]) == []


@pytest.mark.parametrize("reading", READINGS)
def test_long_texts_are_given_up_at_once(reading):
    assert misfits(["$" + " " * 200_000 + "x", "9" * 200_000], reading)
