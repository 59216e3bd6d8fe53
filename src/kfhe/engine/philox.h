// Philox4x64-10: random numbers that are a pure function of a key and a counter. `philox.pxd` says why.

#pragma once

#include <cstdint>

#ifndef KFHE_DEVICE
#define KFHE_DEVICE
#endif

// What random numbers are for. Each use has a stream of its own, so that no two see the same numbers.
enum {
    KFHE_ROWS_STREAM = 0,  // bootstrap samples
    KFHE_ESTIMATORS_STREAM = 1,  // seeds of scikit-learn's classifiers
    KFHE_FEATURES_STREAM = 2,  // features that a node tries
    KFHE_BINS_STREAM = 3,  // rows that quantiles are found from
    KFHE_CUTS_STREAM = 4,  // random cuts
    KFHE_FOLDS_STREAM = 5,  // folds that categories are encoded by
};

KFHE_DEVICE static inline uint64_t kfhe_multiply(uint64_t a, uint64_t b, uint64_t *high) {
#ifdef __SIZEOF_INT128__
    unsigned __int128 product = (unsigned __int128)a * b;
    *high = (uint64_t)(product >> 64);
    return (uint64_t)product;
#else
    uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    uint64_t middle = a1 * b0 + ((a0 * b0) >> 32);
    uint64_t cross = a0 * b1 + (uint32_t)middle;
    *high = a1 * b1 + (middle >> 32) + (cross >> 32);
    return a * b;
#endif
}

KFHE_DEVICE static inline void kfhe_philox(
    uint64_t key0, uint64_t key1, uint64_t c0, uint64_t c1, uint64_t c2, uint64_t c3, uint64_t *out
) {
    for (int round = 0; round < 10; ++round) {
        uint64_t high0, high1;
        uint64_t low0 = kfhe_multiply(0xD2E7470EE14C6C93ULL, c0, &high0);
        uint64_t low1 = kfhe_multiply(0xCA5A826395121157ULL, c2, &high1);
        c0 = high1 ^ c1 ^ key0;
        c1 = low1;
        c2 = high0 ^ c3 ^ key1;
        c3 = low0;
        key0 += 0x9E3779B97F4A7C15ULL;
        key1 += 0xBB67AE8584CAA73BULL;
    }
    out[0] = c0; out[1] = c1; out[2] = c2; out[3] = c3;
}

// Map a random 64-bit number onto 0 .. bound - 1, keeping its order.
KFHE_DEVICE static inline uint64_t kfhe_scaled(uint64_t number, uint64_t bound) {
    uint64_t high;
    kfhe_multiply(number, bound, &high);
    return high;
}
