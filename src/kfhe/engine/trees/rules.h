// The rules of growing a tree: splits, scores, ties, random numbers and thresholds. They are plain functions
// of numbers, and the same wherever trees are grown. KFHE_DEVICE is a prefix that compilers for other
// processors need.

#pragma once

#include <cmath>
#include <cstdint>

#include "philox.h"

#ifndef KFHE_DEVICE
#define KFHE_DEVICE
#endif

namespace kfhe {

// How trees are grown; `TreeSettings` in kfhe/tree_settings.py describes each setting. 0: no limit.
struct Rules {
    int64_t max_depth;
    int64_t min_samples_split;
    int64_t min_samples_leaf;
    int64_t max_leaf_nodes;
    int64_t max_features;
    int random_cuts;
    double cp;
    uint64_t seed;
    uint64_t tree;  // number of the tree
};

struct Split {
    double score;  // sum of squared class weights over the weight, added up over both children; 0: no split
    int64_t left_weight;
    int32_t feature;
    int categorical;
    int missing_left;
    int last_left;  // numeric: the last bin of the left child that has rows in the node
    int first_right;  // and the first bin of the right one
    uint64_t left_bins[4];  // categorical: the bins that go left
};

struct NodeTotals {
    const int64_t *classes;  // weight of each class
    int64_t n_classes;
    int64_t weight;
    int64_t count;  // number of rows for min_samples_leaf
    int64_t squares;  // sum of the squared class weights
    int64_t min_count;  // smallest count that a child may have
    int weighted;  // rows count as 1 each, not by their weight
};

// ---------------------------------------------------------------- scores

// A division is needed only for candidates that may beat the best; the margin covers rounding.
constexpr double MARGIN = 1 - 1e-12;

// Higher score; on a tie the lower feature.
KFHE_DEVICE inline bool better(const Split &challenger, const Split &champion) {
    if (challenger.score != champion.score) return challenger.score > champion.score;
    return challenger.score > 0 && challenger.feature < champion.feature;
}

// Score that a split of a feature has to exceed to beat the champion; on a tie, the lower feature wins.
KFHE_DEVICE inline double bar_for(int32_t feature, const Split &champion) {
    return feature > champion.feature ? champion.score : std::nextafter(champion.score, 0.0);
}

KFHE_DEVICE inline bool leaves_enough(const NodeTotals &node, int64_t left_count) {
    return left_count >= node.min_count && left_count <= node.count - node.min_count;
}

// Compute the score of a candidate; return whether it beats the best so far, and update it. The first of
// equals wins.
KFHE_DEVICE inline bool improves(
    double left_squares, double right_squares, int64_t left_weight, int64_t weight, Split *best
) {
    const double left = double(left_weight), right = double(weight - left_weight);
    const double numerator = left_squares * right + right_squares * left, denominator = left * right;
    if (numerator <= best->score * MARGIN * denominator) return false;
    const double score = numerator / denominator;
    if (score <= best->score) return false;
    best->score = score;
    best->left_weight = left_weight;
    return true;
}

// Side of missing values if the node has none: the heavier child, else left.
KFHE_DEVICE inline bool is_heavier(int64_t left_weight, const NodeTotals &node) {
    return 2 * left_weight >= node.weight;
}

// Whether a node is a leaf, whatever its splits are. `classes` has the weight of each class.
KFHE_DEVICE inline bool is_terminal(
    const Rules &rules, const int64_t *classes, int64_t n_classes, int64_t count, int64_t depth
) {
    if (rules.max_depth && depth >= rules.max_depth) return true;
    if (count < rules.min_samples_split || count < 2 * rules.min_samples_leaf) return true;
    int64_t n_present = 0;
    for (int64_t k = 0; k < n_classes; ++k) n_present += classes[k] > 0;
    return n_present < 2;
}

// ---------------------------------------------------------------- bounds, for two classes

// With l_k of class k on the left and t_k in the node, a cut gains 2 v^2 / (left * right * weight), where
// v = t_0 l_1 - t_1 l_0. Within a stretch of rows or bins, v is highest if all rows of the second class come
// first, and lowest if they come last. So what is left of the two ends says how good a cut in between can be,
// and only few stretches have to be tried cut by cut.
struct Bound {
    double first;  // t_0
    double second;  // t_1
    double weight;  // of the node
    double squares;  // t_0^2 + t_1^2
    double least;  // weight that may be left of a cut
    double most;
    double bar;  // for 2 v^2 / (left * right)
    double slack;  // what rounding may take from 2 v^2
};

// What is left of a place.
struct Place {
    double first;
    double second;
};

// Sums of both classes in one number, so that one addition adds up both.
KFHE_DEVICE inline uint64_t pair_of(int32_t weight, int32_t label) {
    return uint64_t(uint32_t(weight)) << (label ? 32 : 0);
}
KFHE_DEVICE inline int32_t first_of(uint64_t pair) { return int32_t(uint32_t(pair)); }
KFHE_DEVICE inline int32_t second_of(uint64_t pair) { return int32_t(pair >> 32); }
KFHE_DEVICE inline Place place_of(uint64_t pair) { return {double(first_of(pair)), double(second_of(pair))}; }

// What 2 v^2 / (left * right) has to exceed for a cut to be better than a score, if not by rounding alone.
KFHE_DEVICE inline double bar_above(double score, double weight, double squares) {
    return (score * MARGIN * weight - squares) * (1 - 1e-9);
}

KFHE_DEVICE inline void raise_bar(Bound *bound, double score) {
    const double weight = bound->weight;
    bound->bar = bar_above(score, weight, bound->squares);
    bound->slack = 1e-12 * weight * weight * weight * std::sqrt(bound->bar > 0 ? bound->bar : 0.0);
}

KFHE_DEVICE inline Bound bound_of(const NodeTotals &node, double score) {
    Bound bound = {double(node.classes[0]), double(node.classes[1]), double(node.weight), double(node.squares)};
    bound.least = node.weighted ? 1 : double(node.min_count);
    bound.most = node.weighted ? bound.weight - 1 : double(node.count - node.min_count);
    raise_bar(&bound, score);
    return bound;
}

KFHE_DEVICE inline double lower(double a, double b) { return a < b ? a : b; }
KFHE_DEVICE inline double higher(double a, double b) { return a < b ? b : a; }

// Whether a cut between two places may clear the bar: the product of its sides is least at one of the ends.
KFHE_DEVICE inline bool may_win(const Bound &bound, const Place &start, const Place &end) {
    const double v = higher(
        bound.first * end.second - bound.second * start.first, bound.second * end.first - bound.first * start.second
    );
    const double left = higher(start.first + start.second, bound.least);
    const double right = lower(end.first + end.second, bound.most);
    const double product = lower(left * (bound.weight - left), right * (bound.weight - right));
    return (left <= right) & (2 * v * v > bound.bar * product - bound.slack);
}

// Whether the cut at a place may clear the bar.
KFHE_DEVICE inline bool cut_may_win(const Bound &bound, const Place &place) {
    const double v = bound.first * place.second - bound.second * place.first, left = place.first + place.second;
    return 2 * v * v > bound.bar * (left * (bound.weight - left)) - bound.slack;
}

// Score a cut, and say whether it beats the best; `count` rows are left of it, if each counts as one.
KFHE_DEVICE inline bool cut_improves(uint64_t pair, int64_t count, const NodeTotals &node, Split *best) {
    const int64_t first = first_of(pair), second = second_of(pair);
    const int64_t right_first = node.classes[0] - first, right_second = node.classes[1] - second;
    return leaves_enough(node, node.weighted ? count : first + second) && improves(
        double(first * first + second * second), double(right_first * right_first + right_second * right_second),
        first + second, node.weight, best
    );
}

// ---------------------------------------------------------------- keys and random numbers of nodes

// Key of a child; mixed, so that paths of any length stay apart.
KFHE_DEVICE inline uint64_t key_of_child(uint64_t key, int side) {
    uint64_t z = 2 * key + side + 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

// Draw some of a node's features, in a random order that depends only on the node. Those before `start` have
// been drawn; those from `stop` on are not needed yet.
KFHE_DEVICE inline void draw_features(
    int64_t start, int64_t stop, int64_t n_features, const Rules &rules, uint64_t key, int32_t *features
) {
    uint64_t numbers[4];
    if (start == 0)
        for (int64_t i = 0; i < n_features; ++i) features[i] = int32_t(i);
    for (int64_t i = start; i < stop && i < n_features - 1; ++i) {
        if (i == start || i % 4 == 0) kfhe_philox(rules.seed, KFHE_FEATURES_STREAM, i / 4, key, rules.tree, 0, numbers);
        const int64_t j = i + int64_t(kfhe_scaled(numbers[i % 4], n_features - i));
        const int32_t feature = features[i];
        features[i] = features[j];
        features[j] = feature;
    }
}

// Random number for the cut of a feature in a node of a tree.
KFHE_DEVICE inline uint64_t cut_number(const Rules &rules, uint64_t key, int64_t feature) {
    uint64_t numbers[4];
    kfhe_philox(rules.seed, KFHE_CUTS_STREAM, feature / 4, key, rules.tree, 0, numbers);
    return numbers[feature % 4];
}

// ---------------------------------------------------------------- thresholds and sides

// Midpoint of a < b, below b also after rounding.
KFHE_DEVICE inline double midpoint(double a, double b) {
    const double middle = a / 2 + b / 2;
    return a <= middle && middle < b ? middle : a;
}

// Last bin that goes left, and the threshold: midway between the neighbouring values in the node. `low` and
// `high` are the smallest and the largest value in each bin of the feature.
KFHE_DEVICE inline int cut_of(const Split &split, int n_bins, const double *low, const double *high, double *threshold) {
    int cut = split.last_left;
    if (split.first_right == n_bins - 1) {  // values go left, missing ones right
        *threshold = HUGE_VAL;
        return split.first_right - 1;
    }
    const double middle = midpoint(high[cut], low[split.first_right]);
    while (cut + 1 < split.first_right && high[cut + 1] <= middle) ++cut;
    // A bin of several values that spans the middle goes right as a whole.
    *threshold = low[cut + 1] <= middle ? midpoint(high[cut], low[cut + 1]) : middle;
    return cut;
}

// Compute for each bin of the split's feature whether it goes left.
KFHE_DEVICE inline void mark_sides(
    const Split &split, int n_bins, const double *low, const double *high, uint8_t *goes_left
) {
    double threshold;
    if (split.categorical) {
        for (int b = 0; b < n_bins; ++b) goes_left[b] = (split.left_bins[b / 64] >> (b % 64)) & 1;
        return;
    }
    const int cut = cut_of(split, n_bins, low, high, &threshold);
    for (int b = 0; b < n_bins - 1; ++b) goes_left[b] = b <= cut;
    goes_left[n_bins - 1] = uint8_t(split.missing_left);
}

}  // namespace kfhe
