"""Lines of a csv as rows of numbers, if they are plain: anything that needs more thought is left to others.

Plain lines have as many cells as there are columns. A cell of numbers is a decimal number or a gap; one of words is
looked up. Quotes may be around whole cells, with neither quotes nor line breaks inside.
"""

cimport cython
from libc.math cimport NAN, isfinite
from libc.stdint cimport int64_t
from libc.string cimport memchr
from libcpp.string_view cimport string_view
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

from kfhe.engine.decimals cimport HARD_NUMBER, NO_NUMBER, NUMBER, Found, Power, powers_of_ten, read_decimal

import numpy as np

ctypedef unordered_map[string_view, double] Words


cdef struct Column:
    int64_t place  # in a row of numbers; -1: not needed
    bint numbers
    bint closed  # words that are not known are not plain
    Words words  # gaps are not among them


@cython.final
cdef class LineReader:
    """Reads lines of a csv.

    Parameters
    ----------
    sep, decimal : bytes
        What separates columns, and the fraction of a number: one byte each.
    gaps : list of bytes
        Cells that stand for a gap.
    columns : list of (None or tuple)
        For each column that is needed its place in the rows and, if it holds words, what they stand for; and
        whether there are no others.
    """

    cdef char sep
    cdef char decimal
    cdef Words gaps
    cdef bint gaps_first  # some of them could be numbers
    cdef vector[Column] columns
    cdef int64_t width
    cdef const Power *powers
    cdef object known  # keeps the words in memory

    def __init__(self, bytes sep, bytes decimal, list gaps, list columns):
        self.sep, self.decimal = sep[0], decimal[0]
        self.gaps_first = any(gap[:1] in b"0123456789+-." for gap in gaps if gap)
        self.width = sum(column is not None for column in columns)
        self.powers = powers_of_ten()
        self.known = []
        self.add_words(&self.gaps, dict.fromkeys(gaps, NAN))
        self.columns.resize(len(columns))
        for j, column in enumerate(columns):
            self.columns[j].place = -1
            if column is not None:
                place, words, closed = column
                self.columns[j].place = place
                self.columns[j].closed = closed
                self.columns[j].numbers = words is None
                words = {word: value for word, value in (words or {}).items() if word not in gaps}
                self.add_words(&self.columns[j].words, words)

    cdef add_words(self, Words *known, dict words):
        cdef bytes word
        for word, value in words.items():
            self.known.append(word)
            known[0][string_view(<const char *> word, len(word))] = value

    def read(self, const unsigned char[::1] data):
        """Return the rows, for each place how many words are not known, and the number of lines.

        None if they are not plain.
        """
        cdef const char *at = <const char *> &data[0] if data.shape[0] else NULL
        cdef const char *end = at + data.shape[0]
        cdef int64_t n_rows
        found = np.empty((count_lines(at, end), self.width))
        unknown = np.zeros(self.width, dtype=np.int64)
        cdef double[:, ::1] rows = found
        cdef int64_t[::1] counts = unknown
        cdef double *row = &rows[0, 0] if found.size else NULL
        cdef int64_t *count = &counts[0] if unknown.size else NULL
        with nogil:
            n_rows = self.read_rows(at, end, row, count)
        return None if n_rows < 0 else (found[:n_rows], unknown, len(found))

    cdef int64_t read_rows(
        self, const char *at, const char *end, double *row, int64_t *unknown
    ) except? -1 nogil:
        """Return the number of rows, or -1."""
        cdef int64_t n_rows = 0
        cdef const char *here
        cdef Column *column
        cdef size_t j
        while at < end:
            if is_end(at, end):
                at = next_line(at, end)  # an empty one is no row
                continue
            for j in range(self.columns.size()):
                if j > 0:
                    if at == end or at[0] != self.sep:
                        return -1
                    at += 1
                column = &self.columns[j]
                here = at
                if column.numbers and not self.gaps_first and self.reads_number(&here, end, &row[column.place]):
                    at = here
                    continue
                at = self.read_cell(column, at, end, row, unknown)
                if at == NULL:
                    return -1
            if not is_end(at, end):
                return -1
            at = next_line(at, end)
            row += self.width
            n_rows += 1
        return n_rows

    cdef inline bint reads_number(self, const char **at, const char *end, double *value) noexcept nogil:
        """Whether all of a cell is a number as most are, which is read then."""
        return read_decimal(at, end, self.decimal, self.powers, value) == NUMBER and (
            at[0] == end or at[0][0] == self.sep or is_end(at[0], end)
        )

    cdef const char *read_cell(
        self, Column *column, const char *at, const char *end, double *row, int64_t *unknown
    ) except? NULL nogil:
        """Read a cell and return where it ends; NULL if it is not plain."""
        cdef const char *here
        cdef const char *last
        cdef bint quoted = at < end and at[0] == c'"'
        at += quoted
        here = at
        while here < end and here[0] != c'"' and here[0] != c"\n" and here[0] != c"\r" and (
            quoted or here[0] != self.sep
        ):
            here += 1
        last = here
        if quoted:
            if here == end or here[0] != c'"':
                return NULL
            here += 1
        if column.place >= 0 and not self.read_word(column, at, last, &row[column.place], unknown):
            return NULL
        return here

    cdef bint read_word(
        self, Column *column, const char *at, const char *end, double *value, int64_t *unknown
    ) except? False nogil:
        """Read what is in a cell; whether it is plain."""
        cdef string_view word = string_view(at, end - at)
        cdef unordered_map[string_view, double].iterator known = column.words.find(word)
        if known != column.words.end():
            value[0] = cython.operator.dereference(known).second
            return True
        if self.gaps.count(word):
            value[0] = NAN
            return True
        if column.numbers:
            return self.read_number(at, end, value)
        value[0] = NAN
        unknown[column.place] += 1
        return not column.closed and is_text(at, end)

    cdef bint read_number(self, const char *at, const char *end, double *value) except? False nogil:
        """Read a cell that may have spaces around a number, or a number that Python has to read."""
        cdef const char *here
        cdef Found found
        while at < end and at[0] == c" ":
            at += 1
        while at < end and (end - 1)[0] == c" ":
            end -= 1
        here = at
        found = read_decimal(&here, end, self.decimal, self.powers, value)
        if found == NO_NUMBER or here != end:
            return False
        if found == HARD_NUMBER:
            with gil:
                value[0] = float(at[: end - at].replace(bytes([self.decimal]), b"."))
            return isfinite(value[0])
        return True


cdef bint is_text(const char *at, const char *end) noexcept nogil:
    """Whether bytes are UTF-8."""
    cdef const char *here = at
    while here < end and 0 <= <signed char> here[0]:
        here += 1
    if here == end:
        return True
    with gil:
        try:
            at[: end - at].decode()
        except UnicodeDecodeError:
            return False
    return True


cdef inline int64_t count_lines(const char *at, const char *end) noexcept nogil:
    """Count the lines; the last one may have no end."""
    cdef int64_t n = 0
    while at < end:
        at = <const char *> memchr(at, c"\n", end - at)
        at = end if at == NULL else at + 1
        n += 1
    return n


cdef inline bint is_end(const char *at, const char *end) noexcept nogil:
    """Whether a line ends here."""
    return at == end or at[0] == c"\n" or (at[0] == c"\r" and at + 1 < end and at[1] == c"\n")


cdef inline const char *next_line(const char *at, const char *end) noexcept nogil:
    """Return where the next line begins, from the end of one."""
    return at + (at < end) + (at < end and at[0] == c"\r")
