"""How a file is written: separator, decimal mark, encoding and gaps; told, or found in its first rows."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kfhe.tables.errors import TableFileError

SEPARATORS = ";\t|"  # besides commas


@dataclass(frozen=True)
class Dialect:
    """How a csv or Excel file is written; None stands for what its first rows look like.

    Attributes
    ----------
    sep : str or None
        What separates columns: one letter.
    decimal : str or None
        What separates the fraction of a number: a point or a comma.
    encoding : str or None
        A name that Python knows, such as latin-1; None is UTF-8 or, if it can't be that, what Windows writes.
    na : tuple of str
        Words that are gaps, besides the usual ones.
    sheet : str or None
        Of an Excel file, the sheet to read; None is the first one.
    """

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    na: tuple[str, ...] = ()
    sheet: str | None = None

    def found_in(self, start: bytes) -> Dialect:
        """Return the dialect with separator and decimal mark, if need be as the file's start has them."""
        header, _, rows = re.sub(rb'"[^"]*"', b"", start[: 1 << 16]).partition(b"\n")
        others = [mark for mark in SEPARATORS if mark.encode() in header]
        sep = self.sep or (others[0] if others and b"," not in header else ",")
        decimal = self.decimal or ("," if sep != "," and _has_decimal_commas(rows, sep) else ".")
        if decimal == sep:
            raise TableFileError(f"columns and decimals can't both be separated by {sep!r}")
        return replace(self, sep=sep, decimal=decimal)

    def in_words(self) -> str:
        """Say how a csv is written that is not written as usual."""
        fractions = ", and decimals have a comma" if self.decimal == "," else ""
        return f"columns are separated by {self.sep!r}{fractions}"


def _has_decimal_commas(rows: bytes, sep: str) -> bool:
    """Whether there are numbers with a comma, and none with a point."""
    ends = re.escape(sep.encode())
    number = rb"(?:^|%s)\s*[-+]?\d+%s\d+\s*(?=%s|\r?$)"
    comma, point = (
        re.search(number % (ends, mark, ends), rows, re.MULTILINE) is not None for mark in (b",", rb"\.")
    )
    return comma and not point


def usual_encoding(start: bytes) -> str | None:
    """Return the encoding of a text that is not in UTF-8: UTF-16 if it says so, else what Windows writes."""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if start.isascii() or re.search(rb"[\x00-\x08\x0e-\x1f]", start):  # the latter is no text at all
        return None
    # Letters in UTF-8 beside bytes that are not make a damaged file: it can't be read as anything else
    return None if re.search(rb"[\xc2-\xf4][\x80-\xbf]", start) else "cp1252"


def recoded(name: str, pieces: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Yield a text in UTF-8 that has another encoding; `name` is what messages call it."""
    try:
        for text in codecs.iterdecode(pieces, encoding):
            yield text.encode()
    except LookupError:
        raise TableFileError(
            f"encoding {encoding!r} is not known; there are utf-8, latin-1, cp1252, utf-16 and others"
        ) from None
    except UnicodeError as error:
        reason = getattr(error, "reason", error)
        raise TableFileError(f"{name}: there are bytes that are not {encoding}: {reason}") from error
