"""Lines of a csv as rows of numbers: the very numbers that Python reads, or nothing if they are not plain."""

import struct

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kfhe.engine.csv_lines import LineReader

GAPS = [b"", b"NA"]
NUMBER, WORD, FLAG = (
    (0, None, False),
    (1, {b"a": 0.0, b"b": 1.0, b"NA": 7.0}, False),
    (2, {b"yes": 1.0}, True),
)


def read(text, *columns, sep=b",", decimal=b".", gaps=GAPS):
    """Read lines; nothing is returned of what is not plain."""
    found = LineReader(sep, decimal, gaps, list(columns) or [NUMBER]).read(text.encode())
    return None if found is None else found[0].tolist()


def bits(number):
    return struct.pack("d", number)


@given(
    st.one_of(
        st.floats(allow_nan=False, allow_infinity=False).map(repr),
        st.from_regex(r"-?[0-9]{1,24}(\.[0-9]{0,24})?([eE][-+]?[0-9]{1,3})?", fullmatch=True),
        st.from_regex(r"-?0?\.[0-9]{1,24}", fullmatch=True),
    ),
    st.sampled_from(",;"),
)
@example("9007199254740993", ",")  # as far from one double as from the next
@example("9007199254740993.00000000000000001", ",")
@example("2.2250738585072011e-308", ",")
@example("1e-400", ",")
@example("1e400", ",")
@example("-0.00", ",")
@example("0.0000000000000000000000000000001", ",")
@example("00000000000000000000000001", ",")
def test_numbers_have_the_bits_that_python_gives_them(text, mark):
    point = "." if mark == "," else ","
    found = read(text.replace(".", point), decimal=point.encode(), sep=mark.encode())
    if np.isinf(float(text)):
        assert found is None
    else:
        assert [bits(value) for (value,) in found] == [bits(float(text))]


@given(st.integers(2**52, 2**53 - 1), st.integers(-60, 60), st.sampled_from([-1, 0, 1]))
def test_numbers_near_the_middle_between_two_doubles_are_rounded_rightly(mantissa, power, beside):
    middle = (2 * mantissa + 1) * 2 ** (power + 60)  # times 2 ** -60, exactly in decimals
    text = f"{middle * 5**60 * 10 + beside}e-61"
    assert bits(read(text)[0][0]) == bits(float(text))


@given(st.lists(st.text("0123456789", min_size=1, max_size=20), min_size=1, max_size=20))
def test_a_cell_ends_where_it_ends_wherever_the_block_ends(cells):
    assert read("\n".join(cells)) == read("\n".join(cells) + "\n") == [[float(cell)] for cell in cells]


def test_words_gaps_and_columns_that_are_not_needed():
    found, unknown, n_lines = LineReader(b",", b".", GAPS, [WORD, None, NUMBER, FLAG]).read(
        'a,x,1,yes\r\n"b",,,yes\n\nNA,"u,v",NA,\nü,1,"-2.5",yes\nc,1, 3 ,yes'.encode()
    )
    nan = np.nan
    expected = [[1, 0, 1], [nan, 1, 1], [nan, nan, nan], [-2.5, nan, 1], [3, nan, 1]]
    np.testing.assert_array_equal(found, expected)
    assert unknown.tolist() == [0, 2, 0]
    assert n_lines == 6


def test_a_gap_may_look_like_a_number():
    np.testing.assert_array_equal(read("-9\n9\n-99\n", gaps=[b"-9"]), [[np.nan], [9], [-99]])


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "1,2",
        "+1",
        "1e",
        "1_0",
        "0x1",
        "inf",
        "--1",
        "1 2",
        "-",
        ".",
        '"1',
        '"1"2',
        '1"',
        '"1\n"',
        "1\r2",
    ],
)
def test_what_needs_more_thought_is_left_to_others(text):
    assert read(text) is None
    assert read(f"5\n{text}\n6") is None


def test_words_that_are_no_text_or_not_allowed_are_left_to_others():
    reader = LineReader(b",", b".", GAPS, [(0, {b"a": 0.0}, False)])
    assert reader.read(b"\xc3\xbc\n") is not None
    assert reader.read(b"\xc3\n") is None
    assert read("1,a,no", NUMBER, WORD, FLAG) is None
    assert read("1,a", NUMBER, WORD, FLAG) is None
