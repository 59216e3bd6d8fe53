// Nodes of few rows: a block each, which grows all that is below, node by node.

#pragma once

#include "level.h"

namespace kfhe {

enum { MOST_OPEN = 64 };  // nodes that wait in a subtree: the smaller child comes first, so they are few

// Which bins some rows are in, as bits, and how many of them are below each word of these.
struct Present {
    uint32_t words[8];
    int32_t below[8];
    uint8_t bins[256];
    int32_t n;
};

KFHE_DEVICE inline int32_t entry_of(const Present &present, int code) {
    const uint32_t lower_bits = (1u << (code % 32)) - 1;
    return present.below[code / 32] + count_bits(present.words[code / 32] & lower_bits);
}

// Make a histogram of the bins that a node's rows are in; of a categorical feature, of all bins.
KFHE_DEVICE inline PresentBins build_few(
    const Growth &g, int32_t index, int32_t feature, Present &present, int32_t *cells
) {
    const GrownNode &node = g.nodes[index];
    const Member *rows = &rows_of(g, node)[node.start];
    const int64_t n = node.end - node.start, n_bins = g.n_bins[feature];
    const bool all = g.categorical[feature];
    int32_t *counts = &cells[256 * g.n_classes];
    EACH(w, 8) present.words[w] = 0;
    BARRIER();
    EACH(i, n) {
        const int code = code_of(g, rows[i], feature);
        set_bits(&present.words[code / 32], 1u << (code % 32));
    }
    BARRIER();
    ONCE {
        present.n = 0;
        for (int w = 0; w < 8; ++w) {
            present.below[w] = present.n;
            present.n += count_bits(present.words[w]);
        }
    }
    BARRIER();
    const int64_t n_entries = all ? n_bins : present.n;
    EACH(c, n_entries * g.n_classes) cells[c] = 0;
    if (g.weighted) EACH(c, n_entries) counts[c] = 0;
    EACH(b, n_bins) if ((present.words[b / 32] >> (b % 32)) & 1) present.bins[entry_of(present, int(b))] = uint8_t(b);
    BARRIER();
    EACH(i, n) {
        const Member member = rows[i];
        const int code = code_of(g, member, feature);
        const int64_t entry = all ? code : entry_of(present, code);
        add_to(&cells[entry * g.n_classes + member.label], member.weight);
        if (g.weighted) add_to(&counts[entry], 1);
    }
    BARRIER();
    const uint32_t top = uint32_t(n_bins - 1);
    const bool gaps = (present.words[top / 32] >> (top % 32)) & 1;
    PresentBins bins;
    static_cast<Histogram &>(bins) = {
        cells, g.weighted ? counts : nullptr, g.n_classes, n_entries - 1, gaps, all ? nullptr : present.bins
    };
    bins.missing_bin = int(top);
    return bins;
}

// Find the best split of a node of few rows: of all features, or of some in the node's order, until one splits it.
KFHE_DEVICE inline void find_split(const Growth &g, int32_t node, Search &search, int32_t *drawn) {
    SHARED(Present, present);
    const bool has_room = (256 + 256 / SEGMENT) * channels(g) <= ROOM;
    int32_t *cells = has_room ? &room[256 / SEGMENT * channels(g)] : &g.cells[BLOCK * histogram_size(g)];
    ONCE {
        search.totals = totals_of(g, node);
        search.best = Split{};
    }
    BARRIER();
    int64_t n = g.rules.max_features;
    for (int64_t i = 0; i < g.n_features && search.best.score <= 0; i += n, n = i ? 1 : n) {
        if (draws(g)) ONCE draw_features(i, i + n, g.n_features, g.rules, g.nodes[node].key, drawn);
        BARRIER();
        for (int64_t j = i; j < i + n && j < g.n_features; ++j) {
            const int32_t feature = draws(g) ? drawn[j] : int32_t(j);
            const PresentBins bins = build_few(g, node, feature, present, cells);
            if (present.n > 1) search_feature(g, bins, node, feature, search);
            BARRIER();
        }
    }
}

}  // namespace kfhe

KFHE_KERNEL(grow_subtrees, Growth) {
    SHARED(Search, search);
    SHARED(int32_t, open[MOST_OPEN]);
    SHARED(int32_t, n_open);
    int32_t *drawn = &given.drawn[(2 * given.most_waiting + BLOCK) * given.n_features];
    for (int64_t work = BLOCK; work < given.counters->n_small; work += N_BLOCKS) {
        ONCE {
            open[0] = given.small[work];
            n_open = 1;
        }
        BARRIER();
        while (n_open > 0) {
            const int32_t index = open[n_open - 1];
            BARRIER();
            find_split(given, index, search, drawn);
            if (search.best.score > 0) {
                ONCE record(given, index, search.best, search.totals);
                BARRIER();
                part(given, index, given.nodes[index].start, given.nodes[index].end);
            }
            ONCE {
                --n_open;
                const int32_t left = given.nodes[index].left;
                if (left >= 0) {
                    complete(given, index);
                    const GrownNode &first = given.nodes[left], &second = given.nodes[left + 1];
                    const int32_t larger = left + (second.end - second.start > first.end - first.start);
                    if (!stays_leaf(given, larger)) open[n_open++] = larger;
                    if (!stays_leaf(given, 2 * left + 1 - larger)) open[n_open++] = 2 * left + 1 - larger;
                }
            }
            BARRIER();
        }
        BARRIER();
    }
}
