"""Category cuts: splits by a set of categories as splits by number, of which a few do the same.

In the order of their codes, the categories that go left and those that go right take turns. A search over the
places where they do ends at one where the categories before it go left and those behind it right. A missing value
is in front of all categories, or behind them, as it goes left or right.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libcpp.vector cimport vector

from kfhe.engine.trees.layout cimport CATEGORICAL, NUMERIC, Node


cdef void add_cut_tree(
    const Node[::1] tree, const uint64_t *sets, vector[Node] &nodes
) except *:
    """Add a tree to others, without splits by category; its nodes keep their places, and more come behind."""
    cdef int64_t i, root = nodes.size()
    cdef double cuts[257]
    cdef int64_t n_cuts
    for i in range(tree.shape[0]):
        nodes.push_back(tree[i])
    for i in range(tree.shape[0]):
        if tree[i].kind & CATEGORICAL:
            n_cuts = find_cuts(&sets[4 * <int64_t> tree[i].threshold], cuts)
            cut(nodes, root, root + i, cuts, n_cuts, tree[i].left)


cdef int64_t find_cuts(const uint64_t *bits, double *cuts) noexcept nogil:
    """Find the last codes before the side changes, from the left side to the right one in the end."""
    cdef int64_t code, n = 0
    cdef bint left = True, is_left
    for code in range(256):
        is_left = (bits[code // 64] >> (code % 64)) & 1
        if is_left != left:
            cuts[n] = code - 1
            n += 1
        left = is_left
    if left:
        cuts[n] = 255
        n += 1
    return n


cdef void cut(
    vector[Node] &nodes, int64_t root, int64_t place, const double *cuts, int64_t n_cuts, int32_t left
) except *:
    """Make a node search through an odd number of cuts; at the last, the way parts to left and left + 1."""
    cdef int64_t middle = n_cuts // 4 * 2 + 1 if n_cuts > 1 else 0  # the side changes to the left there
    cdef int64_t children = nodes.size()
    nodes[place].kind = nodes[place].kind & ~CATEGORICAL | NUMERIC
    nodes[place].threshold = cuts[middle]
    nodes[place].left = left
    if n_cuts == 1:
        return
    nodes[place].left = <int32_t> (children - root)
    nodes.push_back(nodes[place])
    nodes.push_back(nodes[place])
    cut(nodes, root, children, cuts, middle, left)
    cut(nodes, root, children + 1, cuts + middle + 1, n_cuts - middle - 1, left)
