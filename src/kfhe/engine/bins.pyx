"""Bins: each value of a numeric column becomes the number of its bin, one byte.

A column with few distinct values gets a bin for each of them. A column with more is cut at
quantiles of a sample of its rows. Missing values (NaN) share the bin after the last one.
Columns of a sparse matrix get the same bins, by a way on which zeros cost next to nothing.
"""

from cython.parallel cimport prange
from libc.math cimport INFINITY, isinf, isnan
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset
from libcpp.algorithm cimport lower_bound
from libcpp.vector cimport vector

from kfhe.engine.philox cimport BINS_STREAM, philox, scaled
from kfhe.engine.sorting cimport sort_numbers

import numpy as np

cdef enum:
    SAMPLE_ROWS = 65536
    PARALLEL_CELLS = 32768
    BLOCK = 512  # rows that are read together: their columns fit the nearest cache


cdef void greedy_starts(vector[double] &values, int64_t max_bins, vector[double] &starts) noexcept nogil:
    """Cut sorted values into bins of about equal size; a value that fills a bin has it for itself."""
    cdef int64_t n = <int64_t> values.size(), i = 0, j, k, size = 0, left = n, bins_left = max_bins
    cdef int64_t run, next_run, heavy = n // max_bins
    cdef bint open_bin = False
    while i < n:
        j = i
        while j < n and values[j] == values[i]:
            j += 1
        run = j - i
        if not open_bin:
            starts.push_back(values[i])
            open_bin = True
            size = 0
        size += run
        next_run = 0
        if j < n:
            k = j
            while k < n and values[k] == values[j] and k - j <= heavy:
                k += 1
            next_run = k - j
        if bins_left > 1 and (size * bins_left >= left or next_run > heavy):
            left -= size
            bins_left -= 1
            open_bin = False
        i = j


cdef bint find_starts(vector[double] &values, int64_t max_bins, vector[double] &starts) noexcept nogil:
    """Choose the first value of each bin of sorted values; return whether each bin is one value."""
    cdef size_t i
    starts.clear()
    for i in range(values.size()):
        if i == 0 or values[i] != values[i - 1]:
            if <int64_t> starts.size() == max_bins:
                starts.clear()
                greedy_starts(values, max_bins, starts)
                return False
            starts.push_back(values[i])
    return True


cdef inline int bin_of(const double *starts, double value) noexcept nogil:
    """Number of starts (padded to 256 with infinity) that are not above the value, less 1."""
    cdef int position = 0, step = 128
    while step:
        if starts[position + step - 1] <= value:
            position += step
        step //= 2
    return position - (position > 0)


cdef int64_t encode(
    const double *values, int64_t n, vector[double] &starts, uint8_t *codes, double *low, double *high
) noexcept nogil:
    """Write each value's bin and each bin's range; return how many values are not their bin's start."""
    cdef double padded[256]
    cdef int64_t i, odd = 0
    cdef int b, n_bins = <int> starts.size()
    for b in range(256):
        padded[b] = starts[b] if b < n_bins else INFINITY
        low[b] = INFINITY
        high[b] = -INFINITY
    for i in range(n):
        if isnan(values[i]):
            codes[i] = n_bins
            continue
        b = bin_of(padded, values[i])
        codes[i] = b
        odd += values[i] != padded[b]
        low[b] = min(low[b], values[i])
        high[b] = max(high[b], values[i])
    return odd


cdef int bin_column(
    const double *values, int64_t n, int64_t max_bins, uint64_t column, uint8_t *codes, double *low, double *high
) noexcept nogil:
    """Bin one column; return its number of bins, or -1 if it has infinite values."""
    cdef vector[double] sample, starts
    cdef uint64_t numbers[4]
    cdef int64_t i, row
    cdef bint exact
    for i in range(n):
        if isinf(values[i]):
            return -1
    if n > SAMPLE_ROWS:
        sample.reserve(SAMPLE_ROWS)
        for i in range(SAMPLE_ROWS):
            if i % 4 == 0:
                philox(0, BINS_STREAM, i // 4, column, 0, 0, numbers)
            row = scaled(numbers[i % 4], n)
            if not isnan(values[row]):
                sample.push_back(values[row])
    else:
        for i in range(n):
            if not isnan(values[i]):
                sample.push_back(values[i])
    sort_numbers(sample)
    exact = find_starts(sample, max_bins, starts)
    if encode(values, n, starts, codes, low, high) and exact:
        # The sample had few distinct values, but the column has others: look at all of it.
        sample.clear()
        for i in range(n):
            if not isnan(values[i]):
                sample.push_back(values[i])
        sort_numbers(sample)
        find_starts(sample, max_bins, starts)
        encode(values, n, starts, codes, low, high)
    return <int> starts.size()


# The same in steps, for columns of which each part may be somewhere else


def sampled_rows(int64_t n, uint64_t column):
    """Return the rows (int64) of a column of n rows by whose values bins are chosen."""
    cdef uint64_t numbers[4]
    cdef int64_t i
    if n <= SAMPLE_ROWS:
        return np.arange(n)
    result = np.empty(SAMPLE_ROWS, dtype=np.int64)
    cdef int64_t[::1] rows = result
    for i in range(SAMPLE_ROWS):
        if i % 4 == 0:
            philox(0, BINS_STREAM, i // 4, column, 0, 0, numbers)
        rows[i] = scaled(numbers[i % 4], n)
    return result


def bin_starts(const double[::1] values, int64_t max_bins):
    """Return the first value of each bin, chosen by some values, and whether each bin is just one value."""
    cdef vector[double] present, starts
    cdef int64_t i
    for i in range(values.shape[0]):
        if not isnan(values[i]):
            present.push_back(values[i])
    sort_numbers(present)
    exact = find_starts(present, max_bins, starts)
    return np.array(starts, dtype=np.float64), bool(exact)


def encoded(const double[::1] values, const double[::1] starts):
    """Return the bin of each value (uint8), the range of each of 256 bins, and how many values don't start theirs."""
    cdef vector[double] first
    cdef int64_t i, n = values.shape[0], odd = 0
    codes, low, high = np.empty(n, dtype=np.uint8), np.full(256, np.inf), np.full(256, -np.inf)
    cdef uint8_t[::1] bins = codes
    cdef double[::1] lowest = low, highest = high
    for i in range(starts.shape[0]):
        first.push_back(starts[i])
    if n:
        with nogil:
            odd = encode(&values[0], n, first, &bins[0], &lowest[0], &highest[0])
    return codes, low, high, odd


ctypedef fused number_t:
    float
    double


def columns_of(const number_t[:, :] table, int n_threads=1):
    """Return a table's columns as numbers in double precision, each as a row."""
    cdef int64_t i, j, block, n = table.shape[0], n_columns = table.shape[1]
    result = np.empty((n_columns, n))
    cdef double[:, ::1] columns = result
    if n * n_columns < PARALLEL_CELLS:
        n_threads = 1
    for block in prange((n + BLOCK - 1) // BLOCK, nogil=True, num_threads=n_threads, schedule="static"):
        for j in range(n_columns):
            for i in range(block * BLOCK, min(n, (block + 1) * BLOCK)):
                columns[j, i] = table[i, j]
    return result


ctypedef fused index_t:
    int32_t
    int64_t


cdef void sort_with_zeros(
    const double *stored, int64_t n_stored, int64_t n_zeros, vector[double] &values
) noexcept nogil:
    """Sort the values of a sparse column, missing ones left out, and put the zeros in between."""
    cdef int64_t i
    values.clear()
    for i in range(n_stored):
        if not isnan(stored[i]):
            values.push_back(stored[i])
    sort_numbers(values)
    values.insert(lower_bound(values.begin(), values.end(), <double> 0), n_zeros, <double> 0)


cdef void sample_sparse(
    const double *stored, const index_t *rows, int64_t n_stored, int64_t n, uint64_t column, vector[double] &values
) noexcept nogil:
    """Sort the values of the rows that the sample of a dense column has, too."""
    cdef vector[double] dense = vector[double](n)
    cdef vector[double] drawn
    cdef uint64_t numbers[4]
    cdef int64_t i
    cdef double value
    for i in range(n_stored):
        dense[rows[i]] = stored[i]
    for i in range(SAMPLE_ROWS):
        if i % 4 == 0:
            philox(0, BINS_STREAM, i // 4, column, 0, 0, numbers)
        value = dense[scaled(numbers[i % 4], n)]
        if value != 0:
            drawn.push_back(value)
    sort_with_zeros(drawn.data(), <int64_t> drawn.size(), SAMPLE_ROWS - <int64_t> drawn.size(), values)


cdef int bin_sparse_column(
    const double *stored, const index_t *rows, int64_t n_stored, int64_t n, int64_t max_bins, uint64_t column,
    uint8_t *codes, double *low, double *high,
) noexcept nogil:
    """Bin one column of a sparse matrix as `bin_column` does the dense one."""
    cdef vector[double] sample, starts
    # What a bin is to be found for: each stored value, then zero for all others
    cdef vector[double] values = vector[double](n_stored + 1)
    cdef vector[uint8_t] bins = vector[uint8_t](n_stored + 1)
    cdef int64_t i, n_values = n_stored + (n_stored < n)
    cdef bint exact
    for i in range(n_stored):
        if isinf(stored[i]):
            return -1
        values[i] = stored[i]
    if n > SAMPLE_ROWS:
        sample_sparse(stored, rows, n_stored, n, column, sample)
    else:
        sort_with_zeros(stored, n_stored, n - n_stored, sample)
    exact = find_starts(sample, max_bins, starts)
    if encode(values.data(), n_values, starts, bins.data(), low, high) and exact:
        sort_with_zeros(stored, n_stored, n - n_stored, sample)
        find_starts(sample, max_bins, starts)
        encode(values.data(), n_values, starts, bins.data(), low, high)
    memset(codes, bins[n_stored], n)
    for i in range(n_stored):
        codes[rows[i]] = bins[i]
    return <int> starts.size()


def bin_columns(
    const double[:, ::1] columns,
    int64_t first,
    int64_t max_bins,
    uint8_t[:, ::1] codes,
    double[:, ::1] low,
    double[:, ::1] high,
    int n_threads=1,
):
    """Bin numeric columns (one per row of ``columns``) into rows ``first ..`` of the output arrays.

    Returns the columns' numbers of bins, -1 for a column with infinite values.
    """
    cdef int64_t j, n = columns.shape[1]
    result = np.empty(columns.shape[0], dtype=np.int32)
    cdef int[::1] n_bins = result
    if columns.shape[0] * n < PARALLEL_CELLS:
        for j in range(columns.shape[0]):
            n_bins[j] = bin_column(
                &columns[j, 0], n, max_bins, first + j, &codes[first + j, 0], &low[first + j, 0], &high[first + j, 0]
            )
        return result
    for j in prange(columns.shape[0], nogil=True, num_threads=n_threads, schedule="dynamic", chunksize=1):
        n_bins[j] = bin_column(
            &columns[j, 0], n, max_bins, first + j, &codes[first + j, 0], &low[first + j, 0], &high[first + j, 0]
        )
    return result


def bin_sparse_columns(
    const double[::1] stored,
    const index_t[::1] rows,
    const int64_t[::1] starts,
    int64_t first,
    int64_t max_bins,
    uint8_t[:, ::1] codes,
    double[:, ::1] low,
    double[:, ::1] high,
    int n_threads=1,
):
    """Bin columns of a sparse matrix into rows ``first ..`` of the output arrays, as `bin_columns` does.

    ``stored`` are the values, ``rows`` where they are, one column after the other; ``starts``: where each starts, and
    the end. All other values are 0.
    """
    cdef int64_t j, n = codes.shape[1]
    cdef const double *values = &stored[0] if stored.shape[0] else NULL
    cdef const index_t *places = &rows[0] if rows.shape[0] else NULL
    result = np.empty(starts.shape[0] - 1, dtype=np.int32)
    cdef int[::1] n_bins = result
    if n_bins.shape[0] * n < PARALLEL_CELLS:
        n_threads = 1
    for j in prange(n_bins.shape[0], nogil=True, num_threads=n_threads, schedule="dynamic", chunksize=1):
        n_bins[j] = bin_sparse_column(
            values + starts[j], places + starts[j], starts[j + 1] - starts[j], n, max_bins, first + j,
            &codes[first + j, 0], &low[first + j, 0], &high[first + j, 0],
        )
    return result
