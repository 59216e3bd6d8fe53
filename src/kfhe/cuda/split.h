// The search for the best cut of a feature in a histogram, shared by the threads of a block. What a cut scores, and which
// of two is better, rules.h says; of equal cuts the first one is taken, as everywhere.

#pragma once

#include "growth.h"

namespace kfhe {

enum { SEGMENT = 16, MOST_CUTS = 512 };

// What the threads of a block share while they search.
struct Search {
    NodeTotals totals;
    Split best;
    Split split;  // of one feature
    uint64_t top;  // score, as bits: of positive numbers, the higher has the higher bits
    int32_t place;  // of the first cut that has it
    uint64_t scores[MOST_CUTS];
};

// The bins that some rows of a node are in, for random cuts.
struct PresentBins : Histogram {
    int missing_bin;

    KFHE_DEVICE int missing() const { return missing_bin; }
    KFHE_DEVICE bool find(int *low, int *high, bool *any) const {
        *any = gaps;
        *low = bins[0];
        *high = bins[gaps && last > 0 ? last - 1 : last];
        return last > 0;
    }
    KFHE_DEVICE int64_t add_bins(int least, int most, int64_t *left) const {
        int64_t n = 0;
        for (int64_t i = 0; i <= last; ++i) {
            if (bins[i] < least || bins[i] > most) continue;
            for (int64_t k = 0; k < n_classes; ++k) left[k] += cells[i * n_classes + k];
            n += count(i);
        }
        return n;
    }
    KFHE_DEVICE void neighbours(int cut, Split *best) const {
        int64_t i = 0;
        while (bins[i + 1] <= cut) ++i;
        best->last_left = bins[i];
        best->first_right = bins[i + 1];
    }
};

// Score the cut after an entry, if it leaves enough rows on both sides. `before` has what is in the segments before each.
KFHE_DEVICE inline bool score_cut(
    const Histogram &bins, const int32_t *before, int64_t n_channels, int64_t i, bool missing_left,
    const NodeTotals &node, Split *split
) {
    const int32_t *start = &before[i / SEGMENT * n_channels];
    int64_t weight = 0, left_squares = 0, right_squares = 0;
    for (int64_t k = 0; k < bins.n_classes; ++k) {
        int64_t left = start[k] + (missing_left ? bins.cells[bins.last * bins.n_classes + k] : 0);
        for (int64_t b = i / SEGMENT * SEGMENT; b <= i; ++b) left += bins.cells[b * bins.n_classes + k];
        const int64_t right = node.classes[k] - left;
        weight += left;
        left_squares += left * left;
        right_squares += right * right;
    }
    int64_t count = weight;
    if (bins.counts) {
        count = start[bins.n_classes] + (missing_left ? bins.counts[bins.last] : 0);
        for (int64_t b = i / SEGMENT * SEGMENT; b <= i; ++b) count += bins.counts[b];
    }
    split->score = 0;
    return leaves_enough(node, count)
        && improves(double(left_squares), double(right_squares), weight, node.weight, split);
}

// Search all cuts of a numeric feature; `before` has room for the sums of its segments.
KFHE_DEVICE inline void search_cuts(const Histogram &bins, Search &search, int32_t *before) {
    const NodeTotals &node = search.totals;
    const int64_t n_channels = bins.n_classes + (bins.counts != nullptr), n_cuts = bins.last;
    const int64_t n_segments = bins.last / SEGMENT + 1;
    EACH(s, n_segments * n_channels) {
        const int64_t segment = s / n_channels, k = s % n_channels;
        int32_t sum = 0;
        for (int64_t b = segment * SEGMENT; b < (segment + 1) * SEGMENT && b < bins.last; ++b)
            sum += k < bins.n_classes ? bins.cells[b * bins.n_classes + k] : bins.counts[b];
        before[s] = sum;
    }
    ONCE {
        search.top = 0;
        search.place = MOST_CUTS;
    }
    BARRIER();
    EACH(k, n_channels) {
        int32_t sum = 0;
        for (int64_t segment = 0; segment < n_segments; ++segment) {
            const int32_t own = before[segment * n_channels + k];
            before[segment * n_channels + k] = sum;
            sum += own;
        }
    }
    BARRIER();
    EACH(c, n_cuts * (1 + bins.gaps)) {
        Split split;
        const bool any = score_cut(bins, before, n_channels, c % n_cuts, c >= n_cuts, node, &split);
        search.scores[c] = any ? bits_of(split.score) : 0;
        if (any) raise_to(&search.top, search.scores[c]);
    }
    BARRIER();
    EACH(c, n_cuts * (1 + bins.gaps))
        if (search.scores[c] == search.top && search.top) lower_to(&search.place, int32_t(c));
    BARRIER();
    ONCE if (search.top) {
        Split &split = search.split;
        const bool missing_left = search.place >= n_cuts;
        int64_t last_left = search.place % n_cuts, first_right = last_left + 1;
        score_cut(bins, before, n_channels, last_left, missing_left, node, &split);
        split.missing_left = bins.gaps ? missing_left : is_heavier(split.left_weight, node);
        while (bins.is_empty(last_left)) --last_left;
        while (bins.is_empty(first_right)) ++first_right;
        split.last_left = bins.bin(last_left);
        split.first_right = bins.bin(first_right);
    }
}

// Cut a categorical feature, or a numeric one at random. One thread does it.
KFHE_APART void cut_alone(const Growth &g, const PresentBins &bins, uint64_t key, const NodeTotals &node, Split *split) {
    int64_t *left = &g.left[BLOCK * g.n_classes];
    if (split->categorical)
        cut_categories(bins, node, &g.scratch[BLOCK * g.scratch_size], left, split);
    else if (bins.bins)
        cut_at_random(bins, cut_number(g.rules, key, split->feature), node, left, split);
    else
        cut_at_random<Histogram>(bins, cut_number(g.rules, key, split->feature), node, left, split);
}

// Search one feature of a node for its best split, and keep it if it is better than the best so far. `room` has space
// for a sum per segment and channel.
KFHE_DEVICE inline void search_feature(
    const Growth &g, const PresentBins &bins, int32_t node, int32_t feature, Search &search
) {
    const bool alone = g.categorical[feature] || g.rules.random_cuts;
    ONCE {
        search.split = Split{};
        search.split.feature = feature;
        search.split.categorical = g.categorical[feature];
        if (alone) cut_alone(g, bins, g.nodes[node].key, search.totals, &search.split);
    }
    if (!alone) search_cuts(bins, search, room);
    ONCE if (better(search.split, search.best)) search.best = search.split;
    BARRIER();
}

}  // namespace kfhe
