// What is done row by row between two trees: samples, measurements, filters. The same operations, in the same order, as
// in engine/draws.pyx, engine/arrays.pyx and engine/bank.pyx; sums are of whole numbers.

#pragma once

#include "block.h"

#include "philox.h"

namespace kfhe {

enum { ROWS_OF_PIECE = 1024, ROWS_OF_DRAW = 8192, SEGMENTS = 256 };

constexpr double BASE_UNIT = 1152921504606846976.0;  // 2^60
constexpr double BANK_UNIT = 1125899906842624.0;  // 2^50

// As `ROWS` in rows.py: all fields have eight bytes.
struct Rows {
    int64_t n;
    int64_t n_classes;
    const int32_t *labels;
    const double *base;
    const int32_t *counts;  // of the sample
    const int32_t *leaves;
    const int32_t *classes;  // that rows vote for
    const double *votes;  // per leaf, or row, and class
    double *state;
    double *measured;
    uint8_t *missed;
    int32_t *n_read;
    int64_t n_filters;
    int64_t n_leaves;
    int64_t *sums;
    double one;
    double other;
    uint64_t *cumulated;
    int64_t *chosen;
    int32_t *drawn;
    uint8_t *seen;
    uint64_t seed;
    uint64_t iteration;
    uint64_t attempt;
    int64_t n_draws;
};

KFHE_DEVICE inline int64_t largest(const double *values, int64_t n) {
    int64_t best = 0;
    for (int64_t k = 1; k < n; ++k)
        if (values[k] > values[best]) best = k;
    return best;
}

KFHE_DEVICE inline int64_t units(double weight, double unit) { return int64_t(weight * unit + 0.5); }

// First place at which cumulated weights exceed a position.
KFHE_DEVICE inline int64_t place_of(const uint64_t *cumulated, int64_t n, uint64_t position) {
    int64_t low = 0, high = n - 1;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (cumulated[middle] <= position) low = middle + 1;
        else high = middle;
    }
    return low;
}

KFHE_DEVICE inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

}  // namespace kfhe

using namespace kfhe;

// A loop over the rows of a block's piece.
#define EACH_ROW(i) \
    EACH(i##_place, smaller(given.n - BLOCK * ROWS_OF_PIECE, ROWS_OF_PIECE)) \
        if (const int64_t i = BLOCK * ROWS_OF_PIECE + i##_place; true)

// ---------------------------------------------------------------- the bank

KFHE_KERNEL(update_bank, Rows) {
    const int64_t c = given.n_classes;
    EACH_ROW(i) if (given.counts[i] == 0) {
        const double gain = 1.0 / (1 + given.n_read[i]);
        for (int64_t b = 0; b < given.n_filters; ++b) {
            const double *vote = &given.votes[(b * given.n_leaves + given.leaves[i]) * c];
            double *row = &given.state[(b * given.n + i) * c];
            for (int64_t k = 0; k < c; ++k) row[k] += gain * (vote[k] - row[k]);
        }
        given.n_read[i] += 1;
    }
}

KFHE_KERNEL(judge_unseen, Rows) {
    int64_t wrong = 0, unseen = 0;
    EACH_ROW(i) {
        given.missed[i] = 0;
        if (given.counts[i] > 0) continue;
        const int64_t weight = units(given.base[i], BANK_UNIT);
        given.missed[i] = largest(&given.votes[given.leaves[i] * given.n_classes], given.n_classes) != given.labels[i];
        unseen += weight;
        wrong += weight * given.missed[i];
    }
    add_to(&given.sums[0], wrong);
    add_to(&given.sums[1], unseen);
}

KFHE_KERNEL(sum_brier, Rows) {
    int64_t total = 0;
    EACH_ROW(i) {
        double squares = 0;
        for (int64_t k = 0; k < given.n_classes; ++k) {
            const double difference = given.state[i * given.n_classes + k] - (k == given.labels[i]);
            squares += difference * difference;
        }
        total += int64_t(given.base[i] * squares * BANK_UNIT + 0.5);
    }
    add_to(&given.sums[0], total);
}

// ---------------------------------------------------------------- measurements

KFHE_KERNEL(measure, Rows) {
    const int64_t c = given.n_classes;
    const double fusion = given.one, rest = 1 - fusion;
    int64_t of_measurement = 0, of_component = 0;
    EACH_ROW(i) {
        const double *s = &given.state[i * c];
        double *z = &given.measured[i * c];
        int64_t vote;
        if (given.classes) {
            vote = given.classes[i];
            for (int64_t k = 0; k < c; ++k) z[k] = rest * s[k];
            z[vote] = rest * s[vote] + fusion;
        } else {
            vote = largest(&given.votes[i * c], c);
            for (int64_t k = 0; k < c; ++k) z[k] = rest * s[k] + fusion * given.votes[i * c + k];
        }
        given.missed[i] = largest(z, c) != given.labels[i];
        of_measurement += given.missed[i] * units(given.base[i], BASE_UNIT);
        of_component += (vote != given.labels[i]) * units(given.base[i], BASE_UNIT);
    }
    add_to(&given.sums[0], of_measurement);
    add_to(&given.sums[1], of_component);
}

KFHE_KERNEL(sum_misses, Rows) {
    int64_t total = 0;
    EACH_ROW(i) {
        const bool missed = largest(&given.state[i * given.n_classes], given.n_classes) != given.labels[i];
        total += missed * units(given.base[i], BASE_UNIT);
    }
    add_to(&given.sums[0], total);
}

// The votes of rows, by those of their leaves.
KFHE_KERNEL(take_votes, Rows) {
    EACH_ROW(i) for (int64_t k = 0; k < given.n_classes; ++k)
        given.measured[i * given.n_classes + k] = given.votes[given.leaves[i] * given.n_classes + k];
}

KFHE_KERNEL(take_classes, Rows) {
    EACH_ROW(i) given.drawn[i] = given.classes[given.leaves[i]];
}

// ---------------------------------------------------------------- filters; here n counts cells

KFHE_KERNEL(correct, Rows) {
    EACH_ROW(i) given.state[i] += given.one * (given.measured[i] - given.state[i]);
}

KFHE_KERNEL(divide, Rows) {
    EACH_ROW(i) given.state[i] /= given.one;
}

KFHE_KERNEL(multiply, Rows) {
    EACH_ROW(i) given.measured[i] = given.state[i] * (given.missed[i] ? given.other : given.one);
}

// The highest of values that are at least 0, as bits; and how many are not, or not finite.
KFHE_KERNEL(find_highest, Rows) {
    uint64_t top = 0;
    int64_t n_bad = 0;
    EACH_ROW(i) {
        const double value = given.state[i];
        if (!(0 <= value && value <= 1.7976931348623157e308)) ++n_bad;
        else if (value > 0 && bits_of(value) > top) top = bits_of(value);
    }
    raise_to(reinterpret_cast<uint64_t *>(&given.sums[0]), top);
    add_to(&given.sums[1], n_bad);
}

// Sums of values, and of their squares, in units whose scale is the product of two numbers.
KFHE_KERNEL(sum_units, Rows) {
    int64_t total = 0;
    EACH_ROW(i) total += int64_t(given.state[i] * given.one * given.other + 0.5);
    add_to(&given.sums[0], total);
}

KFHE_KERNEL(sum_squares, Rows) {
    int64_t total = 0;
    EACH_ROW(i) total += int64_t(given.state[i] * given.state[i] * given.one * given.other + 0.5);
    add_to(&given.sums[0], total);
}

// ---------------------------------------------------------------- samples; a block has ROWS_OF_DRAW rows

// Cumulate the weights of a block's rows.
KFHE_KERNEL(cumulate, Rows) {
    SHARED(uint64_t, before[SEGMENTS + 1]);
    const int64_t start = BLOCK * ROWS_OF_DRAW, n = smaller(given.n - start, ROWS_OF_DRAW);
    const int64_t length = ROWS_OF_DRAW / SEGMENTS;
    EACH(s, SEGMENTS) {
        uint64_t sum = 0;
        for (int64_t i = s * length; i < smaller(n, (s + 1) * length); ++i)
            sum += uint64_t(given.state[start + i] * BASE_UNIT + 0.5);
        before[s + 1] = sum;
    }
    BARRIER();
    ONCE {
        before[0] = 0;
        for (int64_t s = 0; s < SEGMENTS; ++s) before[s + 1] += before[s];
    }
    BARRIER();
    EACH(s, SEGMENTS) {
        uint64_t sum = before[s];
        for (int64_t i = s * length; i < smaller(n, (s + 1) * length); ++i) {
            sum += uint64_t(given.state[start + i] * BASE_UNIT + 0.5);
            given.cumulated[start + i] = sum;
        }
    }
    ONCE given.sums[BLOCK] = int64_t(before[SEGMENTS]);
}

// Count how many of the draws fall into each block; `cumulated` has the blocks' totals, and n is their number.
KFHE_KERNEL(choose_blocks, Rows) {
    const uint64_t total = given.cumulated[given.n - 1];
    const int64_t n_turns = (given.n_draws + 3) / 4, own = (n_turns - BLOCK + N_BLOCKS - 1) / N_BLOCKS;
    const bool has_room = given.n <= ROOM;
    if (has_room) EACH(b, given.n) room[b] = 0;
    BARRIER();
    EACH(t, own) {
        const int64_t turn = BLOCK + t * N_BLOCKS;
        uint64_t numbers[4];
        kfhe_philox(
            given.seed, KFHE_ROWS_STREAM, uint64_t(turn), uint64_t(1) << 63, given.attempt, given.iteration, numbers
        );
        for (int64_t j = 4 * turn; j < smaller(4 * turn + 4, given.n_draws); ++j) {
            const int64_t place = place_of(given.cumulated, given.n, kfhe_scaled(numbers[j % 4], total));
            if (has_room) add_to(&room[place], 1);
            else add_to(&given.chosen[place], int64_t(1));
        }
    }
    BARRIER();
    if (has_room) EACH(b, given.n) if (room[b]) add_to(&given.chosen[b], int64_t(room[b]));
}

// Hand out a block's draws, and note which classes were drawn.
KFHE_KERNEL(draw_rows, Rows) {
    const int64_t start = BLOCK * ROWS_OF_DRAW, n = smaller(given.n - start, ROWS_OF_DRAW);
    const int64_t n_draws = given.chosen[BLOCK];
    const uint64_t *cumulated = &given.cumulated[start];
    EACH(i, n) room[i] = 0;
    BARRIER();
    EACH(t, (n_draws + 3) / 4) {
        uint64_t numbers[4];
        kfhe_philox(
            given.seed, KFHE_ROWS_STREAM, uint64_t(t), uint64_t(BLOCK), given.attempt, given.iteration, numbers
        );
        for (int64_t j = 4 * t; j < smaller(4 * t + 4, n_draws); ++j)
            add_to(&room[place_of(cumulated, n, kfhe_scaled(numbers[j % 4], cumulated[n - 1]))], 1);
    }
    BARRIER();
    EACH(i, n) {
        given.drawn[start + i] = room[i];
        if (room[i]) given.seen[given.labels[start + i]] = 1;
    }
}
