// A grown tree is written as the engine does, and rows find their leaves. A node's place follows from what is left of the
// way to it: a split has its children next to each other, then all that is below the left one, then the right one's.

#pragma once

#include "subtree.h"

namespace kfhe {

struct StoredNode {  // `Node` in engine/trees/layout.pxd
    double threshold;
    int32_t left;
    uint16_t feature;
    uint8_t kind;
    uint8_t cut;
};

// As `TREE_ARGUMENTS` in grower.py.
struct Written {
    Growth growth;
    StoredNode *nodes;
    double *gains;
    int32_t *leaf_weights;
    uint64_t *sets;
    int32_t *leaves;  // of each training row
    int32_t *parents;  // of each node; the root's is -1
    int32_t *depths;
    int64_t *totals;  // per node, the weight of each class
    int64_t pruned;  // whether nodes may have been cut off
};

KFHE_DEVICE inline bool is_categorical(const GrownNode &node) { return node.left >= 0 && (node.kind & CATEGORICAL); }

// Whether a node is still in the tree: none above it became a leaf.
KFHE_DEVICE inline bool is_there(const Written &w, int32_t node) {
    if (!w.pruned) return true;
    for (int32_t i = w.growth.nodes[node].parent; i >= 0; i = w.growth.nodes[i].parent)
        if (w.growth.nodes[i].left < 0) return false;
    return true;
}

}  // namespace kfhe

// Count leaves and sets below each node: a leaf climbs up, and of two children the one that comes last goes on.
KFHE_KERNEL(count_leaves, Written) {
    GrownNode *nodes = given.growth.nodes;
    EACH(i, (given.growth.counters->n_nodes - BLOCK + N_BLOCKS - 1) / N_BLOCKS) {
        int32_t node = int32_t(BLOCK + i * N_BLOCKS);
        if (nodes[node].left >= 0 || !is_there(given, node)) continue;
        nodes[node].n_leaves = 1;
        int32_t n_leaves = 1, n_sets = 0;
        for (int32_t parent = nodes[node].parent; parent >= 0; node = parent, parent = nodes[node].parent) {
            const bool counts_set = node == nodes[parent].left && is_categorical(nodes[parent]);
            add_to(&nodes[parent].n_leaves, n_leaves);
            add_to(&nodes[parent].n_sets, n_sets + counts_set);
            publish();
            if (add_to(&nodes[parent].n_counted, 1) == 0) break;
            publish();
            n_leaves = add_to(&nodes[parent].n_leaves, 0);  // what another block has added, too
            n_sets = add_to(&nodes[parent].n_sets, 0);
        }
    }
}

// Write nodes, gains, leaf weights and sets.
KFHE_KERNEL(write_tree, Written) {
    const Growth &g = given.growth;
    const GrownNode *nodes = g.nodes;
    EACH(i, (g.counters->n_nodes - BLOCK + N_BLOCKS - 1) / N_BLOCKS) {
        const int32_t index = int32_t(BLOCK + i * N_BLOCKS);
        if (!is_there(given, index)) continue;
        const GrownNode &node = nodes[index];
        // What is written before all that is below the node, of nodes, leaves and sets; and where the node itself is.
        int64_t n_before = 1, n_leaves = 0, n_sets = 0, place = 0, of_parent = 0, n_beside = 0;
        for (int32_t below = index, at = node.parent; at >= 0; below = at, at = nodes[at].parent) {
            const bool is_right = below != nodes[at].left;
            const GrownNode &left = nodes[nodes[at].left];
            int64_t own = 2;
            if (is_right) {
                own += 2 * int64_t(left.n_leaves) - 2;
                n_leaves += left.n_leaves;
                n_sets += left.n_sets;
            }
            n_sets += is_categorical(nodes[at]);
            n_before += own;
            if (below == index) {
                place = is_right - own;
                n_beside = own;
            } else if (below == node.parent) {
                of_parent = is_right - own - n_beside;
            }
        }
        place = node.parent < 0 ? 0 : n_before + place;
        given.parents[place] = node.depth < 2 ? node.depth - 1 : int32_t(n_before + of_parent);
        given.depths[place] = node.depth;
        for (int64_t k = 0; k < g.n_classes; ++k)
            given.totals[place * g.n_classes + k] = g.totals[index * g.n_classes + k];
        StoredNode &stored = given.nodes[place];
        stored = StoredNode{};
        given.gains[place] = 0;
        if (node.left < 0) {
            stored.left = int32_t(n_leaves);
            for (int64_t k = 0; k < g.n_classes; ++k)
                given.leaf_weights[n_leaves * g.n_classes + k] = int32_t(g.totals[index * g.n_classes + k]);
            continue;
        }
        stored = {node.threshold, int32_t(n_before), node.feature, node.kind, node.cut};
        given.gains[place] = node.gain;
        if (!(node.kind & CATEGORICAL)) continue;
        stored.threshold = double(n_sets);
        for (int q = 0; q < 4; ++q) given.sets[4 * n_sets + q] = g.sets[4 * int64_t(index) + q];
    }
}

// Let each row walk down the tree to its leaf.
KFHE_KERNEL(find_leaves, Written) {
    const Growth &g = given.growth;
    const int64_t start = BLOCK * g.piece_rows;
    const int64_t end = start + g.piece_rows < g.n_rows ? start + g.piece_rows : g.n_rows;
    EACH(i, end - start) {
        const uint8_t *line = &g.lines[(start + i) * g.stride];
        StoredNode node = given.nodes[0];
        while (node.kind) {
            const int code = line[node.feature];
            bool left;
            if (node.kind & CATEGORICAL)
                left = (given.sets[4 * int64_t(node.threshold) + code / 64] >> (code % 64)) & 1;
            else
                left = code == g.n_bins[node.feature] - 1 ? (node.kind & MISSING_LEFT) != 0 : code <= node.cut;
            node = given.nodes[node.left + !left];
        }
        given.leaves[start + i] = node.left;
    }
}
