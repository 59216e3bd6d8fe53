// The best split of a categorical feature of one node.
//
// There are too many sets of categories to try them all. So the categories are sorted in a few promising ways, and each
// order is cut like numbers.

#pragma once

#include <algorithm>

#include "search.h"

namespace kfhe {

// The weight of a class in a bin: with many classes, most bins have few of them.
struct Cell {
    int32_t label;
    int32_t weight;
};

// Categories in some order.
struct Categories {
    const int *order;
    int64_t n;
    const Cell *cells;
    const int *first_cell;
    const int32_t *counts;

    void add(int64_t i, const int64_t *totals, int64_t *left, Sums *sums) const {
        for (int c = first_cell[order[i]]; c < first_cell[order[i] + 1]; ++c)
            add_class(cells[c].label, cells[c].weight, totals, left, sums);
        sums->count += counts ? counts[order[i]] : 0;
    }
    bool may_cut(int64_t) const { return true; }
    int64_t first_missing() const { return n; }
    int64_t end() const { return n; }
    int64_t n_cuts(bool) const { return n - 1; }
};

// Size of the workspace for `cut_categories`, for any number of bins.
inline int64_t scratch_size(int64_t n_classes) { return 256 * (2 * n_classes + 2) + n_classes * (n_classes + 4); }

inline double dot(const double *a, const double *b, int64_t n) {
    double total = 0;
    for (int64_t i = 0; i < n; ++i) total += a[i] * b[i];
    return total;
}

inline void multiply_vector(const double *matrix, const double *vector, double *result, int64_t n) {
    for (int64_t i = 0; i < n; ++i) result[i] = dot(&matrix[i * n], vector, n);
}

// Find the direction in which the bins' class shares vary most, by power iteration. `room` is a workspace for n_classes
// numbers, as many again, and a matrix.
inline void principal_component(
    const double *shares, const double *bin_weights, const int *present, int n_present, const int64_t *classes,
    int64_t n_classes, double *direction, double *room
) {
    double *mean = room, *next_direction = &room[n_classes], *covariance = &room[2 * n_classes], total = 0;
    for (int64_t i = 0; i < n_classes; ++i) mean[i] = 0;
    for (int p = 0; p < n_present; ++p) {
        total += bin_weights[present[p]];
        for (int64_t i = 0; i < n_classes; ++i)
            mean[i] += bin_weights[present[p]] * shares[present[p] * n_classes + i];
    }
    for (int64_t i = 0; i < n_classes; ++i) {
        mean[i] /= total;
        for (int64_t j = 0; j <= i; ++j) covariance[i * n_classes + j] = 0;
    }
    for (int p = 0; p < n_present; ++p) {
        const double *of_bin = &shares[present[p] * n_classes];
        for (int64_t i = 0; i < n_classes; ++i) {
            const double difference = bin_weights[present[p]] * (of_bin[i] - mean[i]);
            for (int64_t j = 0; j <= i; ++j) covariance[i * n_classes + j] += difference * (of_bin[j] - mean[j]);
        }
    }
    for (int64_t i = 0; i < n_classes; ++i) {
        direction[i] = 1.0 + double(classes[i]);  // any start that differs between the classes
        for (int64_t j = 0; j <= i; ++j) {
            covariance[i * n_classes + j] /= total;
            covariance[j * n_classes + i] = covariance[i * n_classes + j];
        }
    }
    for (int round = 0; round < 3; ++round) {
        // Several steps between two normalisations, which take longer than a step.
        for (int step = 0; step < 4; ++step) {
            multiply_vector(covariance, direction, next_direction, n_classes);
            multiply_vector(covariance, next_direction, direction, n_classes);
        }
        double length = dot(direction, direction, n_classes);
        if (!(1e-200 < length && length < 1e200)) return;
        length = std::sqrt(length);
        for (int64_t i = 0; i < n_classes; ++i) direction[i] /= length;
    }
}

// Set which categories go left. Those without rows in the node go to the side of missing values, or else to the heavier
// child; missing is a category like any other.
inline void complete(
    Split *best, const int *left, int64_t n_left, const int *present, int n_present, int missing, int64_t weight
) {
    uint64_t present_bins[4] = {0, 0, 0, 0};
    for (int q = 0; q < 4; ++q) best->left_bins[q] = 0;
    for (int64_t p = 0; p < n_left; ++p) best->left_bins[left[p] / 64] |= uint64_t(1) << (left[p] % 64);
    for (int p = 0; p < n_present; ++p) present_bins[present[p] / 64] |= uint64_t(1) << (present[p] % 64);
    best->missing_left = (present_bins[missing / 64] >> (missing % 64)) & 1
        ? (best->left_bins[missing / 64] >> (missing % 64)) & 1
        : 2 * best->left_weight >= weight;
    if (best->missing_left)
        for (int q = 0; q < 4; ++q) best->left_bins[q] |= ~present_bins[q];
}

// Cut a categorical feature along orders of its categories. With two classes in the node, sorting by the share of the
// first one finds the best split. With more, they are sorted by the share of each class, and along the first principal
// component.
inline void cut_categories(const Histogram &bins, const NodeTotals &node, double *scratch, int64_t *left, Split *best) {
    const int64_t n_bins = bins.last + 1, n = node.n_classes;
    int64_t n_classes = 0;  // in the node: the others have a share of 0 everywhere
    int present[256], order[256], best_order[256], first_cell[257], n_present = 0, n_cells = 0;
    int64_t *classes = reinterpret_cast<int64_t *>(scratch), n_left = 0;
    double *bin_weights = &scratch[n], *keys = &bin_weights[n_bins];
    Cell *cells = reinterpret_cast<Cell *>(&keys[n_bins]);
    double *shares = &keys[n_bins + n_bins * n], *direction = &shares[n_bins * n], *room = &direction[n];
    for (int64_t k = 0; k < n; ++k)
        if (node.classes[k] > 0) classes[n_classes++] = k;
    for (int64_t b = 0; b < n_bins; ++b) {
        first_cell[b] = n_cells;
        bin_weights[b] = 0;
        for (int64_t k = 0; k < n_classes; ++k) {
            cells[n_cells] = {int32_t(classes[k]), bins.cells[b * n + classes[k]]};
            bin_weights[b] += cells[n_cells].weight;
            n_cells += cells[n_cells].weight != 0;
        }
        if (bin_weights[b] == 0) continue;
        for (int64_t k = 0; k < n_classes; ++k)
            shares[b * n_classes + k] = bins.cells[b * n + classes[k]] / bin_weights[b];
        present[n_present++] = int(b);
    }
    first_cell[n_bins] = n_cells;
    if (n_present < 2) return;
    const int64_t n_orders = n_present == 2 || n_classes == 2 ? 1 : n_classes + 1;  // one is enough, or finds the best
    for (int64_t k = 0; k < n_orders; ++k) {
        if (k == n_classes)
            principal_component(shares, bin_weights, present, n_present, classes, n_classes, direction, room);
        for (int p = 0; p < n_present; ++p) {
            const double *of_bin = &shares[present[p] * n_classes];
            keys[present[p]] = k < n_classes ? of_bin[k] : dot(of_bin, direction, n_classes);
            order[p] = present[p];
        }
        std::sort(order, order + n_present, [keys](int a, int b) {
            return keys[a] < keys[b] || (keys[a] == keys[b] && a < b);
        });
        const Categories feed = {order, n_present, cells, first_cell, bins.counts};
        const int64_t found = search_all(feed, false, node, left, best);
        if (found >= 0) {
            n_left = found + 1;
            std::copy(order, order + n_left, best_order);
        }
    }
    if (n_left) complete(best, best_order, n_left, present, n_present, int(n_bins - 1), node.weight);
}

}  // namespace kfhe
