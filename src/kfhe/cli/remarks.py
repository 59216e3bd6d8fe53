"""Remarks on tables, worded for the command line."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from shlex import quote

from kfhe.cli.echo import echo


@contextmanager
def without_warnings() -> Iterator[None]:
    """Keep quiet about tables in Python's words: `tell` says it in those of the command line."""
    from kfhe import TableWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        yield


def tell(remarks: Iterable[str]) -> None:
    """Print remarks, a line each, on standard error."""
    for remark in remarks:
        echo(f"kfhe: {in_options(remark)}", err=True)


def in_options(remark: str) -> str:
    """Return a remark with the options that help, if there are any."""
    from kfhe.remarks import COPIES, LEAK, Remark

    if not isinstance(remark, Remark):
        return remark
    if remark.topic == COPIES:
        return (
            f"{remark.found}. If they are observations of their own, name a column that has another value "
            "in each row: --groups COLUMN"
        )
    if remark.topic == LEAK and remark.column is not None:
        return (
            f"{remark.found}. If it is only known once the label is, leave it out: "
            f"--drop {quote(remark.column)}"
        )
    return remark


def remarks_of_tests(remarks: Sequence[Sequence[str]]) -> list[str]:
    """Return what to say of a table of which several parts were trained on, by the remarks on each part."""
    from kfhe.remarks import COPIES, Remark

    found = [[isinstance(each, Remark) and each.topic == COPIES for each in some] for some in remarks]
    told = [each for each, is_of_copies in zip(remarks[0], found[0], strict=True) if not is_of_copies]
    if any(map(any, found)):
        told.insert(
            0,
            "there are copies of rows. If a model is trained on a row and tested on its copy, it looks "
            "better than it is: leave copies out, or name a column that tells which rows belong together: "
            "--groups COLUMN",
        )
    return told
