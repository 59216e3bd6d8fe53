"""Votes: what a leaf has to say, made of the weights of the classes in it.

A hard vote is the class of the largest weight, a soft one the share of each class.
"""

from libc.stdint cimport int32_t, int64_t

import numpy as np


def leaf_classes(const int32_t[:, ::1] leaf_weights):
    """Return the class that each leaf votes for (int32): the heaviest, and the first one of equals."""
    cdef int64_t leaf, n_leaves = leaf_weights.shape[0]
    result = np.empty(n_leaves, dtype=np.int32)
    cdef int32_t[::1] classes = result
    for leaf in range(n_leaves):
        classes[leaf] = heaviest(&leaf_weights[leaf, 0], leaf_weights.shape[1])
    return result


def leaf_shares(const int32_t[:, ::1] leaf_weights):
    """Return the share of each class in each leaf's weight."""
    cdef int64_t leaf, n_leaves = leaf_weights.shape[0]
    result = np.empty((n_leaves, leaf_weights.shape[1]))
    cdef double[:, ::1] shares = result
    for leaf in range(n_leaves):
        write_shares(&leaf_weights[leaf, 0], leaf_weights.shape[1], &shares[leaf, 0])
    return result
