"""The layout of a grown tree in memory."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t

cdef enum Kind:
    LEAF = 0
    NUMERIC = 1  # values up to the threshold go left
    CATEGORICAL = 2  # the categories of a set go left
    MISSING_LEFT = 4  # added where missing values go left

# The same layout as in NumPy: NODE_DTYPE in kfhe.forest. Siblings are neighbours: the right child is left + 1.
cdef packed struct Node:
    double threshold  # numeric: the threshold; categorical: the number of the category set
    int32_t left  # left child, counted from the tree's root; leaf: the number of the leaf
    uint16_t feature
    uint8_t kind
    uint8_t cut  # numeric: the last bin that goes left
