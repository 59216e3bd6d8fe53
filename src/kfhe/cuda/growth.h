// What the kernels of growing share: the table, the nodes so far, and those that are waited for.
//
// A tree is grown in two ways. Nodes of many rows are split level by level, each by many blocks (level.h). Those of few
// are handed to a block each, which grows all that is below (subtree.h). Rows are parted between two buffers, in no
// order: all that is decided is decided by sums of whole numbers.

#pragma once

#include "block.h"

#include "categories.h"

namespace kfhe {

// A training row that is in the tree.
struct Member {
    uint32_t row;
    int32_t weight;
    int32_t label;
};

// A node; its class weights are in `Growth::totals`.
struct GrownNode {
    uint64_t key;  // names it by its path from the root
    int64_t count;  // of its rows, as min_samples_leaf counts them
    double gain;
    double threshold;
    uint32_t start;  // its rows in a buffer
    uint32_t end;
    int32_t buffer;
    int32_t parent;
    int32_t depth;
    int32_t left;  // child; -1: a leaf
    int32_t n_leaves;  // below it, or itself,
    int32_t n_sets;  // and splits of categories
    int32_t n_counted;  // children that have told so
    uint16_t feature;
    uint8_t kind;
    uint8_t cut;
};

enum { NUMERIC = 1, CATEGORICAL = 2, MISSING_LEFT = 4 };  // `Kind` in engine/trees/layout.pxd

// A node that is to be split by many blocks.
struct Waiting {
    int32_t node;
    int32_t first;  // of the features that it tries, in its order,
    int32_t n;  // and how many
};

// Rows of a waiting node: a piece of work for a block.
struct Piece {
    int32_t waiting;
    uint32_t start;
    uint32_t end;
};

struct Counters {
    int32_t n_members;
    int32_t n_nodes;
    int32_t n_small;
    int32_t n_waiting[2];  // of this level and the next, in turn
    int32_t n_pieces[2];
    int32_t deepest;  // depth of any node
};

// As `ARGUMENTS` in grower.py: all fields have eight bytes.
struct Growth {
    Rules rules;
    const uint8_t *lines;  // bins, row by row
    int64_t stride;
    int64_t n_rows;
    int64_t n_features;
    int64_t n_classes;
    const int32_t *n_bins;
    const uint8_t *categorical;
    const double *low;
    const double *high;
    const int32_t *labels;
    const int32_t *weights;
    int64_t weighted;  // weights and counts differ
    uint64_t key;  // of the root
    Member *members;  // two buffers
    GrownNode *nodes;
    int64_t *totals;
    uint64_t *sets;  // of categories, four words per node
    Counters *counters;
    Waiting *waiting;  // two buffers
    int64_t most_waiting;
    Piece *pieces;  // two buffers
    int64_t most_pieces;
    int32_t *small;  // nodes that a block each grows on
    int64_t small_rows;  // up to which they are small
    int64_t piece_rows;
    int32_t *histograms;  // of the waiting nodes, one for each feature that they try
    Split *splits;  // likewise
    int32_t *drawn;  // the features that a waiting node tries; and, behind them, a block's
    double *scratch;  // of a block, for categories
    int64_t scratch_size;
    int64_t *left;  // of a block: a number per class
    int32_t *cells;  // of a block: a histogram, if there is no room for one
    int64_t turn;  // which of two buffers is this level's
};

// Numbers for a histogram: a row of classes for each bin, and the counts of rows behind them.
KFHE_DEVICE inline int64_t channels(const Growth &g) { return g.n_classes + g.weighted; }
KFHE_DEVICE inline int64_t histogram_size(const Growth &g) { return 256 * channels(g); }
KFHE_DEVICE inline bool draws(const Growth &g) { return g.rules.max_features < g.n_features; }

KFHE_DEVICE inline int code_of(const Growth &g, const Member &member, int64_t feature) {
    return g.lines[int64_t(member.row) * g.stride + feature];
}

KFHE_DEVICE inline Member *rows_of(const Growth &g, const GrownNode &node) {
    return &g.members[node.buffer * g.n_rows];
}

KFHE_DEVICE inline bool goes_left(const Growth &g, int32_t node, int code) {
    const GrownNode &split = g.nodes[node];
    if (split.kind & CATEGORICAL) return (g.sets[4 * int64_t(node) + code / 64] >> (code % 64)) & 1;
    return code == g.n_bins[split.feature] - 1 ? (split.kind & MISSING_LEFT) != 0 : code <= split.cut;
}

KFHE_DEVICE inline NodeTotals totals_of(const Growth &g, int32_t node) {
    NodeTotals totals = {&g.totals[node * g.n_classes], g.n_classes, 0, g.nodes[node].count, 0};
    for (int64_t k = 0; k < g.n_classes; ++k) {
        totals.weight += totals.classes[k];
        totals.squares += totals.classes[k] * totals.classes[k];
    }
    totals.min_count = g.rules.min_samples_leaf;
    totals.weighted = int(g.weighted);
    return totals;
}

// Write a split into its node, and make its children, which have no rows yet. One thread does it.
KFHE_DEVICE inline void record(const Growth &g, int32_t index, const Split &split, const NodeTotals &totals) {
    GrownNode &node = g.nodes[index];
    node.gain = split.score - double(totals.squares) / double(totals.weight);
    node.feature = uint16_t(split.feature);
    node.kind = uint8_t((split.categorical ? CATEGORICAL : NUMERIC) | (split.missing_left ? MISSING_LEFT : 0));
    if (split.categorical) {
        for (int q = 0; q < 4; ++q) g.sets[4 * int64_t(index) + q] = split.left_bins[q];
    } else {
        const int64_t of_feature = 256 * int64_t(split.feature);
        node.cut = uint8_t(
            cut_of(split, g.n_bins[split.feature], &g.low[of_feature], &g.high[of_feature], &node.threshold)
        );
    }
    node.left = add_to(&g.counters->n_nodes, 2);
    raise_to(&g.counters->deepest, node.depth + 1);
    for (int side = 0; side < 2; ++side) {
        GrownNode &child = g.nodes[node.left + side];
        child = GrownNode{};
        child.key = key_of_child(node.key, side);
        child.start = child.end = side ? node.end : node.start;
        child.buffer = 1 - node.buffer;
        child.parent = index;
        child.depth = node.depth + 1;
        child.left = -1;
        for (int64_t k = 0; k < g.n_classes; ++k) g.totals[(node.left + side) * g.n_classes + k] = 0;
    }
}

// Tell the children what they have, once the left one knows its rows and class weights.
KFHE_DEVICE inline void complete(const Growth &g, int32_t index) {
    const GrownNode &node = g.nodes[index];
    GrownNode &left = g.nodes[node.left], &right = g.nodes[node.left + 1];
    int64_t *of_left = &g.totals[node.left * g.n_classes];
    left.count = g.weighted ? left.end - left.start : 0;
    for (int64_t k = 0; k < g.n_classes; ++k) {
        of_left[g.n_classes + k] = g.totals[index * g.n_classes + k] - of_left[k];
        if (!g.weighted) left.count += of_left[k];
    }
    right.count = node.count - left.count;
}

KFHE_DEVICE inline bool stays_leaf(const Growth &g, int32_t node) {
    return is_terminal(g.rules, &g.totals[node * g.n_classes], g.n_classes, g.nodes[node].count, g.nodes[node].depth);
}

// Part some rows of a node that is split between its children: the left one's from the start of its place on, the right
// one's from its end on backwards. All threads of a block do it; of several blocks each has other rows.
KFHE_DEVICE inline void part(const Growth &g, int32_t index, uint32_t start, uint32_t end) {
    SHARED(uint32_t, n_left);
    SHARED(uint32_t, n_right);
    SHARED(uint32_t, first_left);
    SHARED(uint32_t, first_right);
    const GrownNode &node = g.nodes[index];
    const Member *rows = rows_of(g, node);
    Member *targets = &g.members[(1 - node.buffer) * g.n_rows];
    const bool has_room = g.n_classes <= ROOM / 2;
    int64_t *totals = has_room ? reinterpret_cast<int64_t *>(room) : &g.totals[node.left * g.n_classes];
    ONCE n_left = n_right = 0;
    if (has_room) EACH(k, g.n_classes) totals[k] = 0;
    BARRIER();
    EACH(i, end - start) {
        const Member &member = rows[start + i];
        if (goes_left(g, index, code_of(g, member, node.feature))) {
            add_to(&n_left, 1u);
            add_to(&totals[member.label], int64_t(member.weight));
        }
    }
    BARRIER();
    ONCE {
        first_left = add_to(&g.nodes[node.left].end, n_left);
        first_right = add_to(&g.nodes[node.left + 1].start, 0u - (end - start - n_left)) - 1;
        n_left = n_right = 0;
    }
    if (has_room) EACH(k, g.n_classes) add_to(&g.totals[node.left * g.n_classes + k], totals[k]);
    BARRIER();
    EACH(i, end - start) {
        const Member &member = rows[start + i];
        if (goes_left(g, index, code_of(g, member, node.feature)))
            targets[first_left + add_to(&n_left, 1u)] = member;
        else
            targets[first_right - add_to(&n_right, 1u)] = member;
    }
    BARRIER();
}

}  // namespace kfhe
