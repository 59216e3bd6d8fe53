"""Memory: prefetching of rows that are far apart."""

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
        #define KFHE_PREFETCH(address) __builtin_prefetch(address)
    #else
        #define KFHE_PREFETCH(address)
    #endif
    """
    void prefetch "KFHE_PREFETCH"(const void *address) noexcept nogil

cdef enum:
    AHEAD = 12  # rows that are prefetched
    CACHE_LINE = 64  # bytes
