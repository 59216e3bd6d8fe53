"""Philox4x64-10: random numbers that are a pure function of a key and a counter.

Any thread, process or machine can work out any number on its own, which is what makes a
model independent of how its training was split up.
"""

from libc.stdint cimport uint64_t

cdef extern from "philox.h" nogil:
    enum:
        ROWS_STREAM "KFHE_ROWS_STREAM"
        ESTIMATORS_STREAM "KFHE_ESTIMATORS_STREAM"
        FEATURES_STREAM "KFHE_FEATURES_STREAM"
        BINS_STREAM "KFHE_BINS_STREAM"
        CUTS_STREAM "KFHE_CUTS_STREAM"
        FOLDS_STREAM "KFHE_FOLDS_STREAM"

    void philox "kfhe_philox"(
        uint64_t key0, uint64_t key1, uint64_t c0, uint64_t c1, uint64_t c2, uint64_t c3, uint64_t *out
    ) noexcept
    uint64_t scaled "kfhe_scaled"(uint64_t number, uint64_t bound) noexcept
