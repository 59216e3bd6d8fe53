"""Splitter: the search for the best split, for histograms from elsewhere."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset
from libcpp.vector cimport vector

import numpy as np


def child_key(uint64_t key, int side):
    """Return the name of a node's left (0) or right (1) child. The root's name is 1."""
    return key_of_child(key, side)


def drawn_features(int64_t n_features, uint64_t seed, uint64_t tree, uint64_t key):
    """Return the order (int32) in which a node of a tree searches the features."""
    cdef int32_t[::1] features = np.empty(n_features, dtype=np.int32)
    cdef Rules rules
    rules.seed, rules.tree = seed, tree
    draw_features(0, n_features, n_features, rules, key, &features[0])
    return np.asarray(features)


def cut_numbers(int64_t n_features, uint64_t seed, uint64_t tree, uint64_t key):
    """Return the random number (uint64) for the cut of each feature in a node of a tree."""
    result = np.empty(n_features, dtype=np.uint64)
    cdef uint64_t[::1] numbers = result
    cdef Rules rules
    cdef int64_t f
    rules.seed, rules.tree = seed, tree
    for f in range(n_features):
        numbers[f] = cut_number(rules, key, f)
    return result


def best_split(
    const int32_t[:, ::1] histograms, const int32_t[::1] n_bins, const uint8_t[::1] categorical,
    int64_t min_samples_leaf, const int32_t[::1] counts=None, const uint64_t[::1] cut_numbers=None,
):
    """Choose the best split of a node from the histograms of its features.

    Parameters
    ----------
    histograms : int32 array of shape (n_bins.sum(), n_classes)
        Weight of each class in each bin, one feature after the other. They may be sums over several blocks of
        rows.
    n_bins : int32 array of shape (n_features,)
        Number of bins of each feature, including the one for missing values.
    categorical : uint8 array of shape (n_features,)
        1 for features whose bins have no order.
    min_samples_leaf : int
        Minimum number of rows of a child.
    counts : int32 array of shape (n_bins.sum(),) or None
        Number of rows in each bin; None: weights count rows.
    cut_numbers : uint64 array of shape (n_features,) or None
        Random numbers for the cuts of numeric features; None: the best cuts.

    Returns
    -------
    dict or None
        The split, for `kfhe.engine.trees.partitioner`; None if no feature can be split.
    """
    cdef int64_t f, first = 0, n_classes = histograms.shape[1]
    cdef vector[int64_t] totals = vector[int64_t](n_classes), left = vector[int64_t](n_classes)
    cdef vector[double] scratch = vector[double](scratch_size(n_classes))
    cdef const int32_t *bin_counts = NULL
    if counts is not None:
        bin_counts = &counts[0]
    # Each feature has all rows of the node.
    cdef NodeTotals node = add_up(&histograms[0, 0], bin_counts, n_bins[0], totals)
    cdef Split best, split
    cdef Histogram bins
    node.min_count = min_samples_leaf
    memset(&best, 0, sizeof(Split))
    for f in range(n_bins.shape[0]):
        memset(&split, 0, sizeof(Split))
        split.feature, split.categorical = <int32_t> f, categorical[f]
        bins = bins_of(&histograms[first, 0], bin_counts, n_bins[f], n_classes)
        if cut_numbers is not None and not categorical[f]:
            cut_at_random(bins, cut_numbers[f], node, left.data(), &split)
        elif categorical[f]:
            cut_categories(bins, node, scratch.data(), left.data(), &split)
        else:
            cut_at_best(bins, node, left.data(), &split)
        if better(split, best):
            best = split
        first += n_bins[f]
        if bin_counts != NULL:
            bin_counts += n_bins[f]
    return best if best.score > 0 else None


cdef NodeTotals add_up(
    const int32_t *histogram, const int32_t *counts, int64_t n_bins, vector[int64_t] &classes
) noexcept nogil:
    """Compute the totals of a node from the histogram of one feature; those of classes are in ``classes``."""
    cdef NodeTotals node
    cdef int64_t b, k
    node.n_classes = <int64_t> classes.size()
    node.weighted = counts != NULL
    node.weight = node.count = node.squares = 0
    for b in range(n_bins):
        for k in range(node.n_classes):
            classes[k] += histogram[b * node.n_classes + k]
        node.count += counts[b] if node.weighted else 0
    for k in range(node.n_classes):
        node.weight += classes[k]
        node.squares += classes[k] * classes[k]
    if not node.weighted:
        node.count = node.weight
    node.classes = classes.data()
    return node
