"""Splitter: the rules of growing a tree, and the search for the best cut of a feature, which `rules.h`, `search.h`,
`categories.h` and `best_first.h` are. They are plain C++, so that they can be shared with other processors.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from "rules.h" namespace "kfhe" nogil:
    struct Rules:
        int64_t max_depth
        int64_t min_samples_split
        int64_t min_samples_leaf
        int64_t max_leaf_nodes
        int64_t max_features
        bint random_cuts
        double cp
        uint64_t seed
        uint64_t tree

    struct Split:
        double score
        int64_t left_weight
        int32_t feature
        bint categorical
        bint missing_left
        int last_left
        int first_right
        uint64_t left_bins[4]

    struct NodeTotals:
        const int64_t *classes
        int64_t n_classes
        int64_t weight
        int64_t count
        int64_t squares
        int64_t min_count
        bint weighted

    bint better(const Split &challenger, const Split &champion) noexcept
    double bar_for(int32_t feature, const Split &champion) noexcept
    uint64_t pair_of(int32_t weight, int32_t label) noexcept
    uint64_t key_of_child(uint64_t key, int side) noexcept
    void draw_features(
        int64_t start, int64_t stop, int64_t n_features, const Rules &rules, uint64_t key, int32_t *features
    ) noexcept
    uint64_t cut_number(const Rules &rules, uint64_t key, int64_t feature) noexcept
    bint is_terminal(
        const Rules &rules, const int64_t *classes, int64_t n_classes, int64_t count, int64_t depth
    ) noexcept
    int cut_of(const Split &split, int n_bins, const double *low, const double *high, double *threshold) noexcept
    void mark_sides(const Split &split, int n_bins, const double *low, const double *high, uint8_t *goes_left) noexcept

cdef extern from "search.h" namespace "kfhe" nogil:
    struct Row:
        uint32_t weight
        uint32_t label

    struct Histogram:
        const int32_t *cells
        const int32_t *counts
        int64_t n_classes
        int64_t last
        bint gaps
        const uint8_t *bins

    cppclass SparseHistogram:
        Histogram build(
            const uint8_t *codes, const uint16_t *members, int64_t n, const uint64_t *pairs, uint8_t missing
        ) noexcept

    struct Order:
        const uint32_t *order
        int64_t n
        const Row *rows
        const uint64_t *pairs
        uint32_t missing_bin

    struct Members:
        const uint8_t *found
        const uint16_t *members
        int64_t n
        const Row *rows
        const uint64_t *pairs
        int64_t n_classes
        bint weighted
        uint8_t missing_bin

    int lowest_bit(uint64_t bits) noexcept
    Histogram bins_of(
        const int32_t *cells, const int32_t *counts, int64_t n_bins, int64_t n_classes
    ) noexcept
    void cut_at_best[Feed](const Feed &feed, const NodeTotals &node, int64_t *left, Split *best) noexcept
    void cut_at_random[Feed](
        const Feed &feed, uint64_t number, const NodeTotals &node, int64_t *left, Split *best
    ) noexcept

cdef extern from "categories.h" namespace "kfhe" nogil:
    int64_t scratch_size(int64_t n_classes) noexcept
    void cut_categories(
        const Histogram &bins, const NodeTotals &node, double *scratch, int64_t *left, Split *best
    ) noexcept

cdef extern from "best_first.h" namespace "kfhe" nogil:
    cppclass BestFirst:
        bint empty() noexcept
        void offer(int32_t node, double gain) noexcept
        int32_t next() noexcept
        int32_t add_children(int32_t parent) noexcept
