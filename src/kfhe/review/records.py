"""The records of a csv as they are written: what is not changed stays as it is, byte for byte."""

from __future__ import annotations

import codecs
import re

from kfhe.tables.files import TableFileError

BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class Records:
    r"""A csv, cut into records: the header first, blank lines left out, as readers do.

    Parameters
    ----------
    raw : bytes
        The file.
    sep : str
        What separates columns.
    encoding : str or None
        Its encoding; None is UTF-8.
    name : str
        What messages call it.

    Examples
    --------
    >>> from kfhe.review.records import Records
    >>> records = Records(b"x,y\r\n1,'a'\r\n\r\n2,b", ",", None, "t.csv")
    >>> len(records), records.fields(2)
    (3, ['2', 'b'])
    >>> records.changed({(1, 1): "b, or c"}, dropped={2})
    b'x,y\r\n1,"b, or c"\r\n\r\n'
    """

    def __init__(self, raw: bytes, sep: str, encoding: str | None, name: str) -> None:
        self._bom, self._codec = _codec(raw, encoding)
        self._text = raw[len(self._bom) :].decode(self._codec)
        if self._bom + self._text.encode(self._codec) != raw:
            raise TableFileError(
                f"{name}: as {encoding} it can't be written back as it is; save it as UTF-8 first"
            )
        self._sep = sep
        # A quote opens a field at its start only, and nothing is given back: one pass, whatever is in it
        ends = re.escape(sep) + r"\r\n"
        field = rf'(?:"(?:[^"]|"")*+")?+[^{ends}]*+'
        self._field = re.compile(field)
        record = re.compile(rf"((?:{field}{re.escape(sep)})*+{field})(?:\r\n|\r|\n|\Z)")
        self._spans: list[tuple[int, int, int]] = []  # start, end, and where the next record starts
        position = 0
        while position < len(self._text):
            found = record.match(self._text, position)
            if found is None:
                raise AssertionError("every text is a record and a line end")
            if found.end(1) > position:
                self._spans.append((position, found.end(1), found.end()))
            position = found.end()

    def __len__(self) -> int:
        return len(self._spans)

    def fields(self, record: int) -> list[str]:
        """Return the fields of a record as they are written, with their quotes."""
        return [self._text[start:end] for start, end in self._field_spans(record)]

    def changed(self, values: dict[tuple[int, int], str], dropped: set[int]) -> bytes:
        """Return the file with some fields, known by record and column, changed and some records left out."""
        edits = [(*self._field_spans(record)[j], value) for (record, j), value in values.items()]
        edits = [(start, end, self._written(self._text[start:end], value)) for start, end, value in edits]
        edits += [(self._spans[record][0], self._spans[record][2], "") for record in dropped]
        pieces, position = [], 0
        for start, end, new in sorted(edits):
            pieces += [self._text[position:start], new]
            position = end
        return self._bom + "".join([*pieces, self._text[position:]]).encode(self._codec)

    def _field_spans(self, record: int) -> list[tuple[int, int]]:
        start, end, _ = self._spans[record]
        spans = []
        while True:
            found = self._field.match(self._text, start, end)
            if found is None:
                raise AssertionError("a field may be empty")
            spans.append(found.span())
            if found.end() >= end:
                return spans
            start = found.end() + 1

    def _written(self, old: str, value: str) -> str:
        """Return a value in quotes if it needs them, or if the old one had them."""
        if old.startswith('"') or any(mark in value for mark in (self._sep, '"', "\r", "\n")):
            return '"{}"'.format(value.replace('"', '""'))
        return value


def _codec(raw: bytes, encoding: str | None) -> tuple[bytes, str]:
    """Return the mark that a file begins with, and the codec of what follows."""
    name = codecs.lookup(encoding or "utf-8").name
    for bom, codec in BOMS:
        if raw.startswith(bom) and name in (codec, codec[:6], f"{codec}-sig"):
            return bom, codec
    return b"", {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(name, name)
