// What leaves vote for: shares of the classes, shrunken by a filter down the tree as in engine/trees/leaf_votes.pyx.

#pragma once

#include "tree.h"

namespace kfhe {

// As `SHRUNKEN` in tree.py.
struct Shrunken {
    const StoredNode *nodes;
    const int32_t *parents;
    const int32_t *depths;
    const int64_t *totals;
    int64_t n_nodes;
    int64_t n_classes;
    int64_t n_leaves;
    const double *shrinkages;
    int64_t n_shrinkages;
    double *estimates;  // per shrinkage, node and class
    double *votes;  // per shrinkage, leaf and class
    int64_t depth;  // of the nodes whose turn it is
};

KFHE_DEVICE inline double weight_of(const int64_t *totals, int64_t n_classes) {
    int64_t weight = 0;
    for (int64_t k = 0; k < n_classes; ++k) weight += totals[k];
    return double(weight);
}

}  // namespace kfhe

// Estimate the shares of the classes in all nodes of a depth, by those of their parents.
KFHE_KERNEL(filter_down, Shrunken) {
    const int64_t c = given.n_classes;
    EACH(j, (given.n_nodes - BLOCK + N_BLOCKS - 1) / N_BLOCKS) {
        const int64_t i = BLOCK + j * N_BLOCKS;
        if (given.depths[i] != given.depth) continue;
        const int64_t *own = &given.totals[i * c], parent = given.parents[i];
        const int64_t *above = &given.totals[(parent < 0 ? i : parent) * c];
        const double own_weight = weight_of(own, c), weight = weight_of(above, c);
        for (int64_t b = 0; b < given.n_shrinkages; ++b) {
            const double shrinkage = given.shrinkages[b], gain = weight / (weight + shrinkage);
            double *estimate = &given.estimates[(b * given.n_nodes + i) * c];
            const double *before = &given.estimates[(b * given.n_nodes + parent) * c];
            for (int64_t k = 0; k < c; ++k) {
                const double share = double(own[k]) / own_weight;
                estimate[k] = parent < 0 || shrinkage == 0
                    ? share : before[k] + gain * (share - double(above[k]) / weight);
                if (given.nodes[i].kind == 0)
                    given.votes[(b * given.n_leaves + given.nodes[i].left) * c + k] = estimate[k];
            }
        }
    }
}
