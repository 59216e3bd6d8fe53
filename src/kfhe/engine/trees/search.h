// The search for the best cut of one feature of one node.
//
// The score of a split is sum(left class weights squared) / left weight plus the same for the right child. The highest
// score is the lowest weighted Gini impurity. Sums are integers, and one formula computes all scores, so the result does
// not depend on where the sums come from: a histogram, rows in sorted order, the bins of a few rows, or categories in a
// promising order. Each of these is a feed, a sequence of entries, of which the first ones go left. It has
//
//     pair(i), eight(i)      two classes: the weight of an entry, and of eight entries from it on
//     add(i, left, &sums)    any number of classes: adds an entry to the left side
//     count(i)               the number of rows of an entry
//     may_cut(i)             whether the feature differs between an entry and the next
//     bin(i), is_empty(i)    the bin of an entry, and whether it has no rows
//     n_cuts(missing_left)   the number of entries after which there may be a cut
//     first_missing(), end() the entries of missing values
//
// The first of equal cuts is used; on a tie, missing values go right. For a random cut, a feed
// only has
//
//     find(&low, &high, &any_missing)    the bins with rows; whether the feature varies
//     add_bins(least, most, left)        adds bins to the left side; returns their number of rows
//     neighbours(cut, split)             the bins with rows next to the cut

#pragma once

#include <cstring>
#ifdef _MSC_VER
#include <intrin.h>
#endif

#include "rules.h"

namespace kfhe {

// The left side of a cut.
struct Sums {
    int64_t weight;
    int64_t squares;
    int64_t cross;  // sum of left times total
    int64_t count;
};

KFHE_DEVICE inline void add_class(int64_t k, int64_t weight, const int64_t *totals, int64_t *left, Sums *sums) {
    sums->squares += weight * (2 * left[k] + weight);
    sums->cross += weight * totals[k];
    left[k] += weight;
    sums->weight += weight;
}

// The sums are passed by value, so that a loop can keep them in registers.
KFHE_DEVICE inline bool sums_improve(Sums sums, const NodeTotals &node, Split *best) {
    return leaves_enough(node, node.weighted ? sums.count : sums.weight) && improves(
        double(sums.squares), double(node.squares - 2 * sums.cross + sums.squares), sums.weight, node.weight, best
    );
}

// ---------------------------------------------------------------- feeds

struct Row {
    uint32_t weight;
    uint32_t label;
};

// Bins of one feature, the last one for missing values; possibly only the bins of a few rows.
struct Histogram {
    const int32_t *cells;  // a number per class
    const int32_t *counts;  // of rows; NULL if weights are counts
    int64_t n_classes;
    int64_t last;  // the last entry: missing values, if there are any
    bool gaps;
    const uint8_t *bins;  // NULL: entries are bins

    uint64_t pair(int64_t i) const {
        uint64_t pair;
        std::memcpy(&pair, &cells[2 * i], sizeof pair);  // the first class is in the lower bits (little-endian)
        return pair;
    }
    uint64_t eight(int64_t i) const {
        return pair(i) + pair(i + 1) + pair(i + 2) + pair(i + 3)
            + pair(i + 4) + pair(i + 5) + pair(i + 6) + pair(i + 7);
    }
    void add(int64_t i, const int64_t *totals, int64_t *left, Sums *sums) const {
        for (int64_t k = 0; k < n_classes; ++k) add_class(k, cells[i * n_classes + k], totals, left, sums);
        sums->count += count(i);
    }
    int64_t count(int64_t i) const { return counts ? counts[i] : 0; }
    bool may_cut(int64_t) const { return true; }  // cuts after empty bins are equal
    bool is_empty(int64_t i) const {
        int32_t any = 0;
        for (int64_t k = 0; k < n_classes; ++k) any |= cells[i * n_classes + k];
        return any == 0;
    }
    int bin(int64_t i) const { return int(bins ? bins[i] : i); }
    int64_t stretch() const { return 8; }
    int64_t start() const {
        int64_t i = 0;
        while (i < last && is_empty(i)) ++i;
        return i;
    }
    int64_t first_missing() const { return last; }
    int64_t end() const { return last + 1; }
    bool any_missing() const { return gaps; }
    int64_t n_cuts(bool) const { return last; }

    int missing() const { return int(last); }
    bool find(int *low, int *high, bool *any) const {
        *any = any_missing();
        *low = int(start());
        *high = int(last) - 1;
        while (*high > *low && is_empty(*high)) --*high;
        return *low < last && (*low < *high || *any);
    }
    int64_t add_bins(int least, int most, int64_t *left) const {
        int64_t n = 0;
        for (int64_t b = least; b <= most; ++b) {
            for (int64_t k = 0; k < n_classes; ++k) left[k] += cells[b * n_classes + k];
            n += count(b);
        }
        return n;
    }
    void neighbours(int cut, Split *best) const {
        best->last_left = cut;
        best->first_right = cut + 1;
        while (is_empty(best->last_left)) --best->last_left;
        while (is_empty(best->first_right)) ++best->first_right;
    }
};

inline Histogram bins_of(const int32_t *cells, const int32_t *counts, int64_t n_bins, int64_t n_classes) {
    Histogram bins = {cells, counts, n_classes, n_bins - 1, false, nullptr};
    bins.gaps = !bins.is_empty(bins.last);
    return bins;
}

// Position of the lowest set bit; at least one is set.
inline int lowest_bit(uint64_t bits) {
#if defined(__CUDACC__)
    return __ffsll(bits) - 1;
#elif defined(__GNUC__) || defined(__clang__)
    return __builtin_ctzll(bits);
#else
    unsigned long place;
    _BitScanForward64(&place, bits);
    return int(place);
#endif
}

// Histogram of rows of two classes, for nodes of few rows without sorted orders; only bins with rows are visited.
struct SparseHistogram {
    uint64_t sums[256];  // all zero between uses,
    uint64_t present[4][4];  // as are these; four lanes avoid waiting for the last write
    uint8_t bins[256];
    int32_t cells[512];

    Histogram build(const uint8_t *codes, const uint16_t *members, int64_t n, const uint64_t *pairs, uint8_t missing) {
        int64_t n_bins = 0;
        for (int64_t i = 0; i < n; ++i) {
            const uint8_t code = codes[members[i]];
            sums[code] += pairs[members[i]];
            present[i % 4][code >> 6] |= uint64_t(1) << (code & 63);
        }
        for (int word = 0; word < 4; ++word) {
            uint64_t bits = present[0][word] | present[1][word] | present[2][word] | present[3][word];
            for (int lane = 0; lane < 4; ++lane) present[lane][word] = 0;
            for (; bits; bits &= bits - 1, ++n_bins) {
                const int b = 64 * word + lowest_bit(bits);
                bins[n_bins] = uint8_t(b);
                std::memcpy(&cells[2 * n_bins], &sums[b], sizeof sums[b]);  // in one piece, as it is read
                sums[b] = 0;
            }
        }
        return {cells, nullptr, 2, n_bins - 1, bins[n_bins - 1] == missing, bins};
    }
};

// Rows in the order of their bins. An entry has the row in its lower 16 bits, and the bin above them. Rows of weight
// zero don't belong to the node any more.
struct Order {
    const uint32_t *order;
    int64_t n;
    const Row *rows;
    const uint64_t *pairs;  // two classes: the weights of the rows; more: whether they have any
    uint32_t missing_bin;

    uint64_t pair(int64_t i) const { return pairs[order[i] & 0xFFFF]; }
    uint64_t eight(int64_t i) const {  // unrolled, because compilers turn a loop into something slower
        return pair(i) + pair(i + 1) + pair(i + 2) + pair(i + 3)
            + pair(i + 4) + pair(i + 5) + pair(i + 6) + pair(i + 7);
    }
    void add(int64_t i, const int64_t *totals, int64_t *left, Sums *sums) const {
        const Row row = rows[order[i] & 0xFFFF];
        add_class(row.label, row.weight, totals, left, sums);
        ++sums->count;
    }
    int64_t count(int64_t i) const { return pair(i) != 0; }
    bool may_cut(int64_t i) const { return (order[i] ^ order[i + 1]) > 0xFFFF; }
    bool is_empty(int64_t i) const { return pair(i) == 0; }
    int bin(int64_t i) const { return int(order[i] >> 16); }
    int64_t stretch() const { return n > 192 ? 16 : 8; }
    int64_t start() const { return 0; }
    int64_t first_missing() const {
        int64_t i = n;
        while (i > 0 && order[i - 1] >> 16 == missing_bin) --i;
        return i;
    }
    int64_t end() const { return n; }
    bool any_missing() const {
        bool any = false;
        for (int64_t i = n; i > 0 && order[i - 1] >> 16 == missing_bin; --i) any |= pair(i - 1) != 0;
        return any;
    }
    int64_t n_cuts(bool missing_left) const { return (missing_left ? first_missing() : n) - 1; }
};

// Rows of a node, by their bins. Loops have no branches, because these would be unpredictable.
struct Members {
    const uint8_t *found;  // their bins
    const uint16_t *members;
    int64_t n;
    const Row *rows;
    const uint64_t *pairs;
    int64_t n_classes;
    bool weighted;
    uint8_t missing_bin;

    int missing() const { return missing_bin; }
    bool find(int *low, int *high, bool *any) const {
        uint8_t least = 255, most = 0, below = 0;
        for (int64_t i = 0; i < n; ++i) {
            least = found[i] < least ? found[i] : least;
            most = found[i] > most ? found[i] : most;
        }
        *any = most == missing_bin;
        if (*any)
            for (int64_t i = 0; i < n; ++i) {
                const uint8_t bin = found[i] != missing_bin ? found[i] : uint8_t(0);
                below = bin > below ? bin : below;
            }
        *low = least;
        *high = *any ? below : most;
        return least != most;
    }
    int64_t add_bins(int from, int to, int64_t *left) const {
        const uint8_t least = uint8_t(from), most = uint8_t(to);
        int64_t count = 0;
        if (n_classes == 2) {
            uint64_t pair = 0;
            for (int64_t i = 0; i < n; ++i)
                pair += pairs[members[i]] & -uint64_t((least <= found[i]) & (found[i] <= most));
            left[0] += first_of(pair);
            left[1] += second_of(pair);
        } else {
            for (int64_t i = 0; i < n; ++i) {
                const Row row = rows[members[i]];
                left[row.label] += row.weight & -uint32_t((least <= found[i]) & (found[i] <= most));
            }
        }
        if (weighted)
            for (int64_t i = 0; i < n; ++i) count += (least <= found[i]) & (found[i] <= most);
        return count;
    }
    void neighbours(int cut, Split *best) const {
        uint8_t last_left = 0, first_right = missing_bin;
        for (int64_t i = 0; i < n; ++i) {
            const uint8_t goes_left = -uint8_t(found[i] <= cut);
            const uint8_t left = found[i] & goes_left, right = found[i] | goes_left;
            last_left = left > last_left ? left : last_left;
            first_right = right < first_right ? right : first_right;
        }
        best->last_left = last_left;
        best->first_right = first_right;
    }
};

// ---------------------------------------------------------------- the search
//
// Loops use local copies, which can stay in registers because writes can't change them.

// Two classes: by ranges of entries, few of which are searched in detail. -1: no cut is better than the best so far.
template <class Feed>
int64_t search_stretches(const Feed &given, bool missing_left, const NodeTotals &node, Split *best) {
    const Feed feed = given;
    const int64_t n_cuts = feed.n_cuts(missing_left), stretch = feed.stretch();
    int64_t found = -1, n_before = 0;
    uint64_t left = 0;
    Bound bound = bound_of(node, best->score);
    if (missing_left)
        for (int64_t i = feed.first_missing(); i < feed.end(); ++i) {
            left += feed.pair(i);
            n_before += feed.count(i);
        }
    Place after = place_of(left);
    for (int64_t start = feed.start(), stop; start < n_cuts; start = stop) {
        const Place before = after;
        uint64_t sum = left;
        stop = start + stretch;
        if (stop <= n_cuts) {
            for (int64_t i = start; i < stop; i += 8) left += feed.eight(i);
        } else {
            stop = n_cuts;
            for (int64_t i = start; i < stop; ++i) left += feed.pair(i);
        }
        after = place_of(left);
        if (!may_win(bound, before, after)) continue;
        int64_t count = n_before;
        if (node.weighted)
            for (int64_t i = 0; i < start; ++i) count += feed.count(i);
        for (int64_t i = start; i < stop; ++i) {
            sum += feed.pair(i);
            count += feed.count(i);
            if ((feed.may_cut(i) & cut_may_win(bound, place_of(sum))) && cut_improves(sum, count, node, best)) {
                found = i;
                raise_bar(&bound, best->score);
            }
        }
    }
    return found;
}

// Any number of classes: all cuts one by one, because bounds are too loose.
template <class Feed>
int64_t search_all(const Feed &given, bool missing_left, const NodeTotals &node, int64_t *left, Split *best) {
    const Feed feed = given;
    const NodeTotals totals = node;
    const int64_t n_cuts = feed.n_cuts(missing_left), most = node.count - node.min_count;
    int64_t found = -1;
    double bar = best->score * MARGIN;
    const double size = double(node.weight);
    Sums sums = {0, 0, 0, 0};
    std::memset(left, 0, totals.n_classes * sizeof(int64_t));
    if (missing_left)
        for (int64_t i = feed.first_missing(); i < feed.end(); ++i) feed.add(i, totals.classes, left, &sums);
    for (int64_t i = 0; i < n_cuts; ++i) {
        feed.add(i, totals.classes, left, &sums);
        const int64_t count = totals.weighted ? sums.count : sums.weight;
        const double left_size = double(sums.weight);
        // A single condition, because none of its parts is predictable. Its terms are all positive, so nothing cancels out
        // even if one side has little weight.
        if ((feed.may_cut(i) & (count >= totals.min_count) & (count <= most)
             & (double(sums.squares) * (size - left_size)
                    + double(totals.squares - 2 * sums.cross + sums.squares) * left_size
                > bar * (left_size * (size - left_size))))
            && sums_improve(sums, node, best)) {
            found = i;
            bar = best->score * MARGIN;
        }
    }
    return found;
}

// Try each cut of a numeric feature, with missing values on the right and, if there are any, on the left. `left` is a
// workspace with a number per class.
template <class Feed>
void cut_at_best(const Feed &feed, const NodeTotals &node, int64_t *left, Split *best) {
    const bool any_missing = feed.any_missing();
    int64_t found = -1;
    for (int missing_left = 0; missing_left <= any_missing; ++missing_left) {
        const int64_t cut = node.n_classes == 2 ? search_stretches(feed, missing_left, node, best)
                                                : search_all(feed, missing_left, node, left, best);
        if (cut < 0) continue;
        found = cut;
        best->missing_left = any_missing ? missing_left : is_heavier(best->left_weight, node);
    }
    if (found < 0) return;
    int64_t last_left = found, first_right = found + 1;
    while (feed.is_empty(last_left)) --last_left;
    while (feed.is_empty(first_right)) ++first_right;
    best->last_left = feed.bin(last_left);
    best->first_right = feed.bin(first_right);
}

// ---------------------------------------------------------------- random cuts

// For each feature that a node tries, one random threshold instead of the best of all: uniform among the bins between the
// lowest and the highest with rows of the node, by a random number that depends only on the node and the feature.
// Missing values go to the better side.
template <class Feed>
void cut_at_random(const Feed &feed, uint64_t number, const NodeTotals &node, int64_t *left, Split *best) {
    int low, high, missing = feed.missing();
    bool any_missing, found = false;
    if (!feed.find(&low, &high, &any_missing)) return;
    const int cut = low + int(kfhe_scaled(number, high - low));
    std::memset(left, 0, node.n_classes * sizeof(int64_t));
    int64_t count = feed.add_bins(low, cut, left);
    for (int missing_left = 0; missing_left <= (any_missing && cut < high); ++missing_left) {
        Sums sums = {0, 0, 0, 0};
        if (missing_left) count += feed.add_bins(missing, missing, left);
        sums.count = count;
        for (int64_t k = 0; k < node.n_classes; ++k) {
            sums.weight += left[k];
            sums.squares += left[k] * left[k];
            sums.cross += left[k] * node.classes[k];
        }
        if (sums_improve(sums, node, best)) {
            found = true;
            best->missing_left = any_missing ? missing_left : is_heavier(sums.weight, node);
        }
    }
    if (found) feed.neighbours(cut, best);
}

}  // namespace kfhe
