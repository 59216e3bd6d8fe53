"""Decimal numbers as doubles, rounded as Python does; `decimals.pyx` says how."""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
        #define KFHE_LEADING_ZEROS(bits) __builtin_clzll(bits)
        #define KFHE_TRAILING_ZEROS(bits) __builtin_ctzll(bits)
        static inline unsigned long long kfhe_product(
            unsigned long long a, unsigned long long b, unsigned long long *low) {
            unsigned __int128 product = (unsigned __int128) a * b;
            *low = (unsigned long long) product;
            return (unsigned long long) (product >> 64);
        }
    #else
        #include <intrin.h>
        static inline int KFHE_LEADING_ZEROS(unsigned long long bits) {
            unsigned long place;
            _BitScanReverse64(&place, bits);
            return 63 - (int) place;
        }
        static inline int KFHE_TRAILING_ZEROS(unsigned long long bits) {
            unsigned long place;
            _BitScanForward64(&place, bits);
            return (int) place;
        }
        static inline unsigned long long kfhe_product(
            unsigned long long a, unsigned long long b, unsigned long long *low) {
            *low = a * b;
            return __umulh(a, b);
        }
    #endif
    static const unsigned long long KFHE_TENS[] = {
        1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000
    };
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        #define KFHE_LITTLE_ENDIAN 0
    #else
        #define KFHE_LITTLE_ENDIAN 1
    #endif
    """
    int leading_zeros "KFHE_LEADING_ZEROS"(uint64_t bits) noexcept nogil  # at least one is set
    int trailing_zeros "KFHE_TRAILING_ZEROS"(uint64_t bits) noexcept nogil
    uint64_t upper_product "kfhe_product"(uint64_t a, uint64_t b, unsigned long long *low) noexcept nogil
    const uint64_t *TENS "KFHE_TENS"
    const bint LITTLE_ENDIAN "KFHE_LITTLE_ENDIAN"


cdef enum:
    LOWEST_POWER = -300  # of ten: what is beyond may be no ordinary double
    HIGHEST_POWER = 288
    MOST_DIGITS = 19  # that fit in 64 bits


cdef enum Found:
    NO_NUMBER
    NUMBER
    HARD_NUMBER  # that somebody else has to read


cdef struct Power:  # of five: 128 bits, the highest set, times a power of two
    uint64_t upper
    uint64_t lower
    int32_t exponent  # of two, for the same power of ten


cdef const Power *powers_of_ten() noexcept nogil


cdef inline Found read_decimal(
    const char **at, const char *end, char point, const Power *powers, double *value
) noexcept nogil:
    """Read the number that begins at a place; that moves behind it if there is one."""
    cdef const char *first = at[0]
    cdef const char *here
    cdef const char *fraction
    cdef bint negative = first < end and first[0] == c"-"
    cdef uint64_t digits = 0
    cdef int64_t exponent = 0, n_digits
    first += negative
    here = first
    while here < end and here - first < 3 and c"0" <= here[0] <= c"9":  # few, as a rule: a branch is soon foreseen
        digits = 10 * digits + <uint64_t> (here[0] - c"0")
        here += 1
    if here - first == 3:
        here = read_digits(here, end, &digits)
    n_digits = here - first
    if here < end and here[0] == point:
        fraction = here + 1
        here = read_digits(fraction, end, &digits)
        exponent = fraction - here
        n_digits += here - fraction
    if n_digits == 0:
        return NO_NUMBER
    if here < end and (here[0] | 32) == c"e" and not read_exponent(&here, end, &exponent):
        return NO_NUMBER
    at[0] = here
    if n_digits > MOST_DIGITS and n_digits - zeros_before(first, end, point) > MOST_DIGITS:
        return HARD_NUMBER
    if digits == 0:
        value[0] = -0.0 if negative else 0.0
        return NUMBER
    if not LOWEST_POWER <= exponent <= HIGHEST_POWER:
        return HARD_NUMBER
    return rounded(digits, &powers[exponent - LOWEST_POWER], negative, value)


cdef inline Found rounded(uint64_t digits, const Power *power, bint negative, double *value) noexcept nogil:
    """Return the double nearest to digits times a power of ten.

    The product is too low by less than one unit of its upper half, or of its lower half if that is looked at: what
    could be a tie, or beyond one, is hard.
    """
    cdef int64_t zeros = leading_zeros(digits), shift, exponent
    cdef uint64_t upper, half, rest, bits
    cdef unsigned long long lower, unused
    upper = upper_product(digits << zeros, power.upper, &lower)
    shift = 10 + <int64_t> (upper >> 63)  # 53 bits remain
    half = <uint64_t> 1 << (shift - 1)
    rest = upper & (2 * half - 1)
    if rest == half - 1 or (rest == half and lower == 0):
        bits = upper_product(digits << zeros, power.lower, &unused)
        lower += bits
        upper += lower < bits
        rest = upper & (2 * half - 1)
        if (rest == half - 1 and lower + 2 < 2) or (rest == half and lower == 0):
            return HARD_NUMBER
    bits = (upper >> shift) + (rest >= half)
    exponent = power.exponent + shift - zeros + 1074  # of the lowest bit, from that of the smallest double
    bits += <uint64_t> exponent << 52  # the highest bit of the 53, or a carry beyond it, adds one to this
    bits |= <uint64_t> negative << 63
    memcpy(value, &bits, 8)
    return NUMBER


cdef inline uint64_t eight_digits(uint64_t word) noexcept nogil:
    """Return the number that eight digits make, the first one in the lowest byte."""
    word = word * 2561 >> 8  # neighbours make numbers of two digits
    word = (word & 0x00FF00FF00FF00FFULL) * 6553601 >> 16  # of four
    return (word & 0x0000FFFF0000FFFFULL) * 42949672960001ULL >> 32


cdef inline const char *read_digits(const char *at, const char *end, uint64_t *number) noexcept nogil:
    """Append the digits at a place to a number, modulo 2^64; return where they end."""
    cdef uint64_t word, others
    cdef int64_t place
    while LITTLE_ENDIAN and end - at >= 8:
        memcpy(&word, at, 8)
        word ^= 0x3030303030303030ULL
        # Highest bit of the first byte that is no digit, and none before it
        others = ((word + 0x7676767676767676ULL) | word) & 0x8080808080808080ULL
        if others:
            place = trailing_zeros(others)
            number[0] = number[0] * TENS[place // 8] + eight_digits(word << (63 - place) << 8)
            return at + place // 8
        number[0] = number[0] * TENS[8] + eight_digits(word)
        at += 8
    while at < end and c"0" <= at[0] <= c"9":
        number[0] = 10 * number[0] + <uint64_t> (at[0] - c"0")
        at += 1
    return at


cdef inline bint read_exponent(const char **at, const char *end, int64_t *exponent) noexcept nogil:
    """Add the exponent that an e announces, if there is one."""
    cdef const char *first = at[0] + 1
    cdef const char *here
    cdef uint64_t size = 0
    cdef bint negative = first < end and first[0] == c"-"
    if first < end and (first[0] == c"-" or first[0] == c"+"):
        first += 1
    here = read_digits(first, end, &size)
    if here == first:
        return False
    if here - first > 4:
        size = 100000  # more than there is
    exponent[0] += -<int64_t> size if negative else <int64_t> size
    at[0] = here
    return True


cdef inline int64_t zeros_before(const char *at, const char *end, char point) noexcept nogil:
    """Count the zeros before the first other digit."""
    cdef int64_t n = 0
    while at < end and (at[0] == c"0" or at[0] == point):
        n += at[0] == c"0"
        at += 1
    return n
