"""Numbers of things, in words."""

from __future__ import annotations

OF_ONE = {"": "", "are": " is", "were": " was"}


def counted(number: int | str, what: str, are: str = "") -> str:
    """Return a number of things, and the verb that goes with it.

    Examples
    --------
    >>> from kfhe.look.counts import counted
    >>> counted(1, "row"), counted(1200, "row"), counted("no", "class")
    ('1 row', '1,200 rows', 'no classes')
    >>> counted(1, "cell", "were"), counted(2, "cell", "were")
    ('1 cell was', '2 cells were')
    """
    if number == 1:
        return f"1 {what}{OF_ONE[are]}"
    number = f"{number:,}" if isinstance(number, int) else number
    return f"{number} {what}{'es' if what.endswith('s') else 's'} {are}".rstrip()
