"""Weighted bootstrap samples, as the number of times each row is drawn.

Rows are in blocks of fixed size. First each draw selects a block by the blocks' total weights, then each
block assigns its draws to its rows. Weights are fixed-point integers, and every random number is keyed by
(seed, iteration, attempt, block), so the counts do not depend on the number of threads or the order of the
blocks.
"""

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset
from libcpp.vector cimport vector

from kfhe.engine.philox cimport (
    BINS_STREAM, CUTS_STREAM, ESTIMATORS_STREAM, FEATURES_STREAM, FOLDS_STREAM, ROWS_STREAM, philox, scaled,
)

from enum import IntEnum

import numpy as np

cdef enum:
    BLOCK = 8192  # rows whose cumulative weights fit into a core's cache
    CHUNK = 65536  # draws that select their blocks at a time
    PARALLEL_ROWS = 65536
    MAX_REDRAWS = 100
    GUIDE_BITS = 12
    GUIDES = 1 << GUIDE_BITS  # entries of a lookup table of blocks

cdef uint64_t HALF = <uint64_t> 1 << 59
cdef uint64_t CHOOSE_BLOCK = <uint64_t> 1 << 63  # keeps the counters of this step apart from those of blocks


cdef uint64_t cumulate(const double *weights, int64_t n, uint64_t *cumulated) noexcept nogil:
    """Cumulate weights (which sum to 1 over all rows) as multiples of 2^-60."""
    cdef int64_t i
    cdef uint64_t total = 0
    for i in range(n):
        total += <uint64_t> (weights[i] * 1152921504606846976.0 + 0.5)
        cumulated[i] = total
    return total


cdef void choose_blocks(
    const uint64_t *cumulated, int64_t n_blocks, int64_t first, int64_t last,
    uint64_t seed, uint64_t iteration, uint64_t attempt, int64_t *chosen,
) noexcept nogil:
    """Count how many of the draws ``first .. last - 1`` are in each block, with a lookup table."""
    cdef uint64_t numbers[4]
    cdef uint32_t guide[GUIDES]
    cdef uint64_t total = cumulated[n_blocks - 1], position
    cdef int64_t j, block = 0
    for j in range(GUIDES):
        position = scaled(<uint64_t> j << (64 - GUIDE_BITS), total)
        while cumulated[block] <= position:
            block += 1
        guide[j] = <uint32_t> block
    for j in range(first, last):
        if j % 4 == 0:
            philox(seed, ROWS_STREAM, j // 4, CHOOSE_BLOCK, attempt, iteration, numbers)
        position = scaled(numbers[j % 4], total)
        block = guide[numbers[j % 4] >> (64 - GUIDE_BITS)]
        while cumulated[block] <= position:
            block += 1
        chosen[block] += 1


cdef void draw_in_block(
    const uint64_t *cumulated, int64_t n, int64_t n_draws,
    uint64_t seed, uint64_t iteration, uint64_t attempt, uint64_t block, int32_t *counts,
) noexcept nogil:
    """Assign a block's draws to its rows, with a lookup table."""
    cdef uint16_t guide[2 * BLOCK + 1]
    cdef uint64_t numbers[4]
    cdef uint64_t total = cumulated[n - 1], position
    cdef int64_t i, row
    cdef int shift
    memset(counts, 0, n * sizeof(int32_t))
    if n_draws == 0:
        return
    shift = make_guide(cumulated, n, guide)
    for i in range(n_draws):
        if i % 4 == 0:
            philox(seed, ROWS_STREAM, i // 4, block, attempt, iteration, numbers)
        position = scaled(numbers[i % 4], total)
        row = guide[position >> shift]
        row += cumulated[row] <= position  # nearly always near, so that there is no branch to mispredict
        row += cumulated[row] <= position
        while cumulated[row] <= position:
            row += 1
        counts[row] += 1


cdef int make_guide(const uint64_t *cumulated, int64_t n, uint16_t *guide) noexcept nogil:
    """For each range of 2^shift positions, find a row before which none of them is; return the shift."""
    cdef uint64_t total = cumulated[n - 1]
    cdef int64_t i
    cdef uint16_t row = 0
    cdef int shift = 0
    while total >> shift >= <uint64_t> (2 * n):
        shift += 1
    memset(guide, 0, (2 * n + 1) * sizeof(uint16_t))
    for i in range(n):
        guide[(cumulated[i] >> shift) + 1] = <uint16_t> (i + 1)
    for i in range(2 * n + 1):
        row = max(row, guide[i])
        guide[i] = row
    return shift


cpdef bootstrap(
    const double[::1] weights, uint64_t seed, uint64_t iteration, uint64_t attempt, int n_threads=1,
    int64_t n_draws=0, exchange=None,
):
    """Draw rows by weights (non-negative, summing to 1), with replacement.

    ``n_draws`` is the number of draws; 0: the number of weights. With an exchange, ``weights`` are those of a
    worker's own rows, which are whole blocks, and ``n_draws`` is for the rows of all workers. Returns how
    often each row was drawn (int32).
    """
    cdef int64_t n = weights.shape[0]
    if n_draws <= 0:
        n_draws = n
    result = np.empty(n, dtype=np.int32)
    cdef int32_t[::1] counts = result
    cdef vector[uint64_t] cumulated = vector[uint64_t](n)
    if n <= BLOCK and exchange is None:
        check_total(cumulate(&weights[0], n, cumulated.data()))
        with nogil:
            draw_in_block(cumulated.data(), n, n_draws, seed, iteration, attempt, 0, &counts[0])
    else:
        draw_blocks(
            &weights[0], n, n_draws, seed, iteration, attempt, n_threads, exchange, cumulated.data(), &counts[0]
        )
    return result


cdef int check_total(uint64_t total) except -1:
    """Reject weights that would make the search for rows leave the arrays."""
    if not HALF < total < 4 * HALF:
        raise ValueError("weights to draw by must be at least 0 and sum to 1")
    return 0


cdef draw_blocks(
    const double *weights, int64_t n, int64_t n_draws, uint64_t seed, uint64_t iteration, uint64_t attempt,
    int n_threads, exchange, uint64_t *cumulated, int32_t *counts,
):
    """Draw from several blocks: first the number of draws of each block, then the rows."""
    cdef int64_t n_blocks = (n + BLOCK - 1) // BLOCK, first_block = 0, block, size
    cdef vector[uint64_t] own_totals = vector[uint64_t](n_blocks)
    cdef const int64_t[::1] chosen
    if n < PARALLEL_ROWS:
        n_threads = 1
    for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="dynamic"):
        size = min(<int64_t> BLOCK, n - block * BLOCK)
        own_totals[block] = cumulate(&weights[block * BLOCK], size, &cumulated[block * BLOCK])
    totals = np.asarray(<uint64_t[:n_blocks]> own_totals.data())
    if exchange is not None:
        of_workers = exchange.gather(totals)
        first_block = sum(len(each) for each in of_workers[:exchange.rank])
        totals = np.concatenate(of_workers)
    chosen = draws_of_blocks(np.cumsum(totals, dtype=np.uint64), n_draws, seed, iteration, attempt, n_threads, exchange)
    for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="dynamic"):
        size = min(<int64_t> BLOCK, n - block * BLOCK)
        draw_in_block(
            &cumulated[block * BLOCK], size, chosen[first_block + block], seed, iteration, attempt,
            first_block + block, &counts[block * BLOCK],
        )


cdef draws_of_blocks(
    const uint64_t[::1] cumulated, int64_t n_draws, uint64_t seed, uint64_t iteration, uint64_t attempt, int n_threads,
    exchange,
):
    """Return the number of draws in each block, from their cumulative totals; workers share the work."""
    cdef int64_t n_blocks = cumulated.shape[0], n_chunks = (n_draws + CHUNK - 1) // CHUNK, chunk
    cdef int64_t first = 0, last = n_chunks
    check_total(cumulated[n_blocks - 1])
    if exchange is not None:
        first, last = n_chunks * exchange.rank // exchange.n, n_chunks * (exchange.rank + 1) // exchange.n
    by_thread = np.zeros((n_threads, n_blocks), dtype=np.int64)
    cdef int64_t[:, ::1] chosen = by_thread
    for chunk in prange(first, last, nogil=True, num_threads=n_threads, schedule="dynamic"):
        choose_blocks(
            &cumulated[0], n_blocks, chunk * CHUNK, min(n_draws, (chunk + 1) * CHUNK),
            seed, iteration, attempt, &chosen[threadid(), 0],
        )
    own = by_thread.sum(axis=0)
    return own if exchange is None else exchange.sum(own)


ROWS_OF_BLOCK = BLOCK
REDRAWS = MAX_REDRAWS


class Stream(IntEnum):
    """Purposes of random numbers; each has a separate stream."""

    ROWS = ROWS_STREAM
    ESTIMATORS = ESTIMATORS_STREAM
    FEATURES = FEATURES_STREAM
    BINS = BINS_STREAM
    CUTS = CUTS_STREAM
    FOLDS = FOLDS_STREAM


def random_numbers(uint64_t seed, uint64_t stream, uint64_t c0, uint64_t c1, uint64_t c2, uint64_t c3):
    """Return the four 64-bit numbers of Philox for a key (seed and stream) and a counter."""
    cdef uint64_t numbers[4]
    philox(seed, stream, c0, c1, c2, c3, numbers)
    return [numbers[0], numbers[1], numbers[2], numbers[3]]


def folds(const int64_t[::1] ids, uint64_t seed, int64_t n_folds):
    """Assign rows to folds (uint8) by their numbers; rows with the same number are in the same fold."""
    cdef int64_t i
    cdef uint64_t numbers[4]
    result = np.empty(ids.shape[0], dtype=np.uint8)
    cdef uint8_t[::1] dealt = result
    with nogil:
        for i in range(ids.shape[0]):
            philox(seed, FOLDS_STREAM, <uint64_t> ids[i], 0, 0, 0, numbers)
            dealt[i] = <uint8_t> scaled(numbers[0], <uint64_t> n_folds)
    return result


cdef int64_t mark_drawn(
    const int32_t *counts, const int32_t *labels, int64_t n, int64_t n_present, vector[uint8_t] &seen
) noexcept nogil:
    """Mark the classes that were drawn, and return their number; ``n_present`` is the total."""
    cdef int64_t i, n_seen = 0
    memset(seen.data(), 0, seen.size())
    for i in range(n):
        if counts[i] > 0 and not seen[labels[i]]:
            seen[labels[i]] = 1
            n_seen += 1
            if n_seen == n_present:
                break
    return n_seen


cdef class Draws:
    """Weighted bootstrap samples with a row of every class, if possible.

    Parameters
    ----------
    labels : int32 array of shape (n_rows,)
        The rows' classes.
    n_classes, n_present : int
        Number of classes, and number of those that have a row.
    seed : int
        The key of the draws, with the iteration and the attempt.
    n_threads : int
        Number of threads for a large table.
    n_draws : int
        Number of rows in a sample; 0: as many as there are.
    exchange : Exchange or None
        The other workers, if each has some of the rows.
    """

    cdef const int32_t[::1] labels
    cdef int64_t n_present
    cdef uint64_t seed
    cdef int n_threads
    cdef int64_t n_draws
    cdef vector[uint8_t] seen
    cdef object exchange
    cdef object arguments  # of the constructor, for pickling

    def __cinit__(
        self, labels, int64_t n_classes, int64_t n_present, uint64_t seed, int n_threads=1, int64_t n_draws=0,
        exchange=None,
    ):
        self.labels = labels
        self.n_present, self.seed, self.n_threads, self.n_draws = n_present, seed, n_threads, n_draws
        self.seen.resize(n_classes)
        self.exchange = exchange
        self.arguments = (labels, n_classes, n_present, seed, n_threads, n_draws)

    def __reduce__(self):
        return Draws, self.arguments

    def draw(self, const double[::1] weights, uint64_t iteration, uint64_t attempt):
        """Return how often each row is in the sample; redraw up to a limit while a class is missing."""
        cdef uint64_t first = attempt * (MAX_REDRAWS + 1), redraw
        for redraw in range(first, first + MAX_REDRAWS + 1):
            result = bootstrap(
                weights, self.seed, iteration, redraw, self.n_threads, self.n_draws, self.exchange
            )
            if self.covers(result):
                break
        return result

    cdef bint covers(self, const int32_t[::1] counts):
        """Whether every class was drawn."""
        cdef int64_t n_seen = mark_drawn(
            &counts[0], &self.labels[0], counts.shape[0], self.n_present, self.seen
        )
        if self.exchange is not None:
            seen = np.asarray(<uint8_t[:self.seen.size()]> self.seen.data(), dtype=np.int64)
            n_seen = np.count_nonzero(self.exchange.sum(seen))
        return n_seen == self.n_present
