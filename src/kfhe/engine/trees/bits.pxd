"""Bits of a number, and which of them are set."""

from libc.stdint cimport uint64_t

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
        #define KFHE_LOWEST_BIT(bits) __builtin_ctzll(bits)
    #else
        #include <intrin.h>
        static inline int KFHE_LOWEST_BIT(unsigned long long bits) {
            unsigned long place;
            _BitScanForward64(&place, bits);
            return (int) place;
        }
    #endif
    """
    int lowest_bit "KFHE_LOWEST_BIT"(uint64_t bits) noexcept nogil  # at least one is set
