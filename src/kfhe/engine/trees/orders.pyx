"""Orders: rows sorted by the bins of one feature, and the parts of such an order.

An entry of an order has the row in its lower 16 bits, and the row's bin above them.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from kfhe.engine.trees.bits cimport lowest_bit

import numpy as np

cdef enum:
    FEW_ROWS = 72  # most bins have none of them, and are passed over; fewer than 256


cdef void sort_members(
    const uint8_t *codes, const uint16_t *members, int64_t n_members, int64_t n_bins, uint32_t *order
) noexcept nogil:
    """Sort rows by bin, stably; each entry gets its bin above the row's 16 bits."""
    cdef uint32_t starts[257]
    cdef int64_t i
    cdef uint32_t code
    if n_members <= FEW_ROWS:
        sort_few(codes, members, n_members, order)
        return
    memset(starts, 0, (n_bins + 1) * sizeof(uint32_t))
    for i in range(n_members):
        starts[codes[members[i]] + 1] += 1
    for i in range(n_bins):
        starts[i + 1] += starts[i]
    for i in range(n_members):
        code = codes[members[i]]
        order[starts[code]] = code << 16 | members[i]
        starts[code] += 1


cdef void sort_few(
    const uint8_t *codes, const uint16_t *members, int64_t n_members, uint32_t *order
) noexcept nogil:
    """The same, looking at those bins only that have rows."""
    cdef uint8_t starts[256]
    cdef uint64_t bits, present[4]
    cdef int64_t i, b
    cdef uint8_t code, size, start = 0
    memset(starts, 0, sizeof(starts))
    memset(present, 0, sizeof(present))
    for i in range(n_members):
        code = codes[members[i]]
        starts[code] += 1
        present[code >> 6] |= <uint64_t> 1 << (code & 63)
    for i in range(4):
        bits = present[i]
        while bits:
            b = 64 * i + lowest_bit(bits)
            size, starts[b] = starts[b], start
            start += size
            bits &= bits - 1
    for i in range(n_members):
        code = codes[members[i]]
        order[starts[code]] = <uint32_t> code << 16 | members[i]
        starts[code] += 1


cdef int64_t part_members(uint16_t *members, int64_t n, const uint8_t *side, uint16_t *spare) noexcept nogil:
    """Move the rows that go left to the front, keeping both sides in order."""
    cdef int64_t i, n_left = 0, n_right = 0
    cdef uint16_t member
    cdef uint8_t left
    for i in range(n):
        member = members[i]
        left = side[member]
        members[n_left] = member
        spare[n_right] = member
        n_left += left
        n_right += 1 - left
    memcpy(&members[n_left], spare, n_right * sizeof(uint16_t))
    return n_left


cdef void part_order(
    uint32_t *order, int64_t n, const uint8_t *side, uint8_t wanted, uint32_t *target
) noexcept nogil:
    """Move the entries of the rows on one side to the target; both parts stay in order."""
    cdef int64_t i, n_moved = 0
    cdef uint32_t entry
    for i in range(n):
        entry = order[i]
        order[i - n_moved] = entry
        target[n_moved] = entry
        n_moved += side[entry & 0xFFFF] == wanted


cdef int64_t copy_side(
    const uint32_t *order, int64_t n, const uint8_t *side, uint8_t wanted, uint32_t *target
) noexcept nogil:
    """Copy the entries of the rows on one side, in their order; there must be room for one more than they are."""
    cdef int64_t i, n_copied = 0
    for i in range(n):
        target[n_copied] = order[i]
        n_copied += side[order[i] & 0xFFFF] == wanted
    return n_copied


def sorted_order(const uint8_t[::1] codes, const uint16_t[::1] members, int64_t n_bins):
    """Return some rows (members) in the order of their bins, rows of a bin in the order given.

    An entry (uint32) has the row in its lower 16 bits, and the row's bin above them.
    """
    result = np.empty(members.shape[0], dtype=np.uint32)
    cdef uint32_t[::1] order = result
    if members.shape[0]:
        sort_members(&codes[0], &members[0], members.shape[0], n_bins, &order[0])
    return result


def side_of_sorted(const uint32_t[::1] order, const uint8_t[::1] side, uint8_t wanted):
    """Return the entries of a sorted order whose row is on the wanted side (0 or 1), in their order."""
    result = np.empty(order.shape[0] + 1, dtype=np.uint32)
    cdef uint32_t[::1] target = result
    return result[: copy_side(&order[0], order.shape[0], &side[0], wanted, &target[0]) if order.shape[0] else 0]
