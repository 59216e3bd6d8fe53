"""Decimal numbers as doubles: 64 bits of digits times a power of ten, by one multiplication of integers, seldom two.

What the powers lack of their true values can't turn the rounding but near a tie. There, and for numbers with more
than 19 digits or at the ends of the range, Python's own function has the word.
"""

from libc.stdint cimport int64_t

cdef Power POWERS[HIGHEST_POWER - LOWEST_POWER + 1]


cdef const Power *powers_of_ten() noexcept nogil:
    return POWERS


def fill_powers():
    """Write the powers of five, rounded down to 128 bits."""
    cdef int64_t q
    for q in range(LOWEST_POWER, HIGHEST_POWER + 1):
        power = 5 ** abs(q)
        if q >= 0:
            exponent = power.bit_length() - 128
            bits = power >> exponent if exponent > 0 else power << -exponent
        else:
            exponent = -127 - power.bit_length()
            bits = (1 << -exponent) // power
        POWERS[q - LOWEST_POWER] = Power(bits >> 64, bits & 0xFFFFFFFFFFFFFFFF, exponent + q + 128)


fill_powers()
