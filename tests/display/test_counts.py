"""Numbers of things, in words."""

import pytest

from kfhe.display.text import counted


@pytest.mark.parametrize(
    ("number", "what", "are", "expected"),
    [
        (1, "decision", "", "1 decision"),
        (0, "decision", "", "0 decisions"),
        (1234, "class", "", "1,234 classes"),
        ("no", "component", "", "no components"),
        (1, "cell", "are", "1 cell is"),
        (2, "cell", "are", "2 cells are"),
    ],
)
def test_one_thing_is_no_several(number, what, are, expected):
    assert counted(number, what, are) == expected
