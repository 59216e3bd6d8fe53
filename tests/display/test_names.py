"""Names where there is little room: on one line, shortened in the middle, in any script."""

import pytest
from rich.cells import cell_len

from kfhe.display.text import shortened


@pytest.mark.parametrize("name", ["short", "zwölf", "中文", "مرحبا", "😀", ""])
def test_a_name_that_has_room_stays_as_it_is(name):
    assert shortened(name, 10) == name


@pytest.mark.parametrize(
    "name", ["a" * 50, "很长的中文名字" * 5, "مرحبا بالعالم " * 5, "😀🎉" * 20, "e\u0301" * 40]
)
def test_no_name_is_wider_than_there_is_room(name):
    for width in (6, 11, 20):
        found = shortened(name, width)
        assert cell_len(found) <= width
        assert cell_len(found) >= width - 2  # a wide letter may not fit by half
        assert "…" in found


def test_both_ends_of_a_long_name_can_be_seen():
    assert shortened("measurement of the first sensor, number 17", 24) == "measurement of t…mber 17"


def test_a_mark_does_not_lose_its_letter():
    assert shortened("e\u0301" * 20, 10).split("…")[1][0] == "e"


def test_a_name_is_one_line_of_plain_text():
    assert shortened("two\nlines\tand\x1b[2J \u202eevil") == "two lines and[2J evil"
