"""The records of a csv as they are written, so that unchanged ones stay the same byte for byte."""

from __future__ import annotations

import codecs
import csv
import io
import re

from kfhe.tables.errors import TableFileError

BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class Records:
    r"""A csv, split into records: the header first, without blank lines.

    Parameters
    ----------
    raw : bytes
        The file.
    sep : str
        The separator.
    encoding : str or None
        Its encoding; None is UTF-8.
    name : str
        Its name in messages.

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
        text = raw[len(self._bom) :].decode(self._codec)
        if self._bom + text.encode(self._codec) != raw:
            raise TableFileError(
                f"{name}: as {encoding} it can't be written back as it is; save it as UTF-8 first"
            )
        self._sep = sep
        # A quote opens a field only at its start, and there is no backtracking: one pass, whatever the file
        # contains
        self._field = re.compile(rf'(?:"(?:[^"]|"")*+")?+[^{re.escape(sep)}\r\n]*+')
        self._lines = list(io.StringIO(text, newline=""))
        self._spans: list[tuple[int, int]] = []  # start and end of each record's lines
        reader, start = csv.reader(self._lines, delimiter=sep), 0
        for cells in reader:
            if cells:
                self._spans.append((start, reader.line_num))
            start = reader.line_num

    def __len__(self) -> int:
        return len(self._spans)

    def fields(self, record: int) -> list[str]:
        """Return the fields of a record as they are written, with their quotes."""
        text = "".join(self._lines[slice(*self._spans[record])])
        return [text[start:end] for start, end in self._field_spans(text)]

    def changed(self, values: dict[tuple[int, int], str], dropped: set[int]) -> bytes:
        """Return the file with some fields, by record and column, changed and some records removed."""
        lines = [*self._lines]
        texts = dict.fromkeys(dropped, "")
        for (record, j), value in values.items():
            text = "".join(lines[slice(*self._spans[record])])
            start, end = self._field_spans(text)[j]
            texts[record] = f"{text[:start]}{self._written(text[start:end], value)}{text[end:]}"
        for record, text in texts.items():
            start, end = self._spans[record]
            lines[start:end] = [text] + [""] * (end - start - 1)
        return self._bom + "".join(lines).encode(self._codec)

    def _field_spans(self, text: str) -> list[tuple[int, int]]:
        spans, start = [], 0
        while (found := self._field.match(text, start)) and text[found.end() :][:1] == self._sep:
            spans.append(found.span())
            start = found.end() + 1
        return [*spans, found.span()] if found else spans

    def _written(self, old: str, value: str) -> str:
        """Return a value, in quotes if it needs them or the old one had them."""
        if old.startswith('"') or any(mark in value for mark in (self._sep, '"', "\r", "\n")):
            return '"{}"'.format(value.replace('"', '""'))
        return value


def _codec(raw: bytes, encoding: str | None) -> tuple[bytes, str]:
    """Return the byte order mark of a file, and the codec for the rest."""
    name = codecs.lookup(encoding or "utf-8").name
    for bom, codec in BOMS:
        if raw.startswith(bom) and name in (codec, codec[:6], f"{codec}-sig"):
            return bom, codec
    return b"", {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(name, name)
