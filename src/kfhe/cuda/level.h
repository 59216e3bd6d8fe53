// Nodes of many rows: a level of them at a time, each by many blocks.
//
// A piece of a node's rows is a block's work. For each level there are five launches: the pieces add their rows to the
// histograms of the features that their nodes try; each histogram is searched; each node takes the best of its splits;
// the pieces are parted; and the children wait for the next level, or are left to subtree.h.

#pragma once

#include "split.h"

namespace kfhe {

// Let a node wait for the next level. One thread does it.
KFHE_DEVICE inline void wait(const Growth &g, int32_t node, int64_t first, int64_t n, int64_t turn) {
    Counters &counters = *g.counters;
    const int32_t place = add_to(&counters.n_waiting[turn], 1);
    const GrownNode &own = g.nodes[node];
    const int64_t n_pieces = (own.end - own.start + g.piece_rows - 1) / g.piece_rows;
    const int64_t first_piece = add_to(&counters.n_pieces[turn], int32_t(n_pieces));
    g.waiting[turn * g.most_waiting + place] = {node, int32_t(first), int32_t(n)};
    for (int64_t i = 0; i < n_pieces; ++i) {
        const int64_t start = own.start + i * g.piece_rows, end = start + g.piece_rows;
        g.pieces[turn * g.most_pieces + first_piece + i] = {place, uint32_t(start), end < own.end ? uint32_t(end) : own.end};
    }
    if (draws(g))
        draw_features(0, first + n, g.n_features, g.rules, own.key, &g.drawn[(turn * g.most_waiting + place) * g.n_features]);
}

// Leave a new node to those who split it, unless it is a leaf.
KFHE_DEVICE inline void hand_on(const Growth &g, int32_t node, int64_t turn) {
    if (stays_leaf(g, node)) return;
    if (g.nodes[node].end - g.nodes[node].start <= g.small_rows)
        g.small[add_to(&g.counters->n_small, 1)] = node;
    else
        wait(g, node, 0, g.rules.max_features, turn);
}

KFHE_DEVICE inline int32_t feature_at(const Growth &g, const Waiting &waiting, int64_t place, int64_t j) {
    const int64_t at = waiting.first + j;
    return draws(g) ? g.drawn[(g.turn * g.most_waiting + place) * g.n_features + at] : int32_t(at);
}

}  // namespace kfhe

using namespace kfhe;

// Take over the rows of positive weight, in any order, and add up their classes.
KFHE_KERNEL(take_members, Growth) {
    SHARED(int32_t, n);
    SHARED(int32_t, first);
    const int64_t start = BLOCK * given.piece_rows;
    const int64_t end = start + given.piece_rows < given.n_rows ? start + given.piece_rows : given.n_rows;
    const bool has_room = given.n_classes <= ROOM / 2;
    int64_t *totals = has_room ? reinterpret_cast<int64_t *>(room) : given.totals;
    ONCE n = 0;
    if (has_room) EACH(k, given.n_classes) totals[k] = 0;
    BARRIER();
    EACH(i, end - start) if (given.weights[start + i] > 0) {
        add_to(&n, 1);
        add_to(&totals[given.labels[start + i]], int64_t(given.weights[start + i]));
    }
    BARRIER();
    ONCE {
        first = add_to(&given.counters->n_members, n);
        n = 0;
    }
    if (has_room) EACH(k, given.n_classes) add_to(&given.totals[k], totals[k]);
    BARRIER();
    EACH(i, end - start) if (given.weights[start + i] > 0)
        given.members[first + add_to(&n, 1)] = {uint32_t(start + i), given.weights[start + i], given.labels[start + i]};
}

// Make the root.
KFHE_KERNEL(plant, Growth) {
    ONCE {
        GrownNode &root = given.nodes[0];
        root = GrownNode{};
        root.key = given.key;
        root.end = uint32_t(given.counters->n_members);
        root.parent = root.left = -1;
        root.count = given.weighted ? root.end : 0;
        for (int64_t k = 0; k < given.n_classes && !given.weighted; ++k) root.count += given.totals[k];
        given.counters->n_nodes = 1;
        hand_on(given, 0, 0);
    }
}

// Add a piece's rows to histograms; several features at a time, as many as there is room for.
KFHE_KERNEL(build, Growth) {
    const int64_t size = histogram_size(given), at_once = size <= ROOM ? ROOM / size : given.rules.max_features;
    const int64_t n_groups = (given.rules.max_features + at_once - 1) / at_once;
    const int64_t n_pieces = given.counters->n_pieces[given.turn];
    for (int64_t work = BLOCK; work < n_pieces * n_groups; work += N_BLOCKS) {
        const Piece piece = given.pieces[given.turn * given.most_pieces + work / n_groups];
        const Waiting waiting = given.waiting[given.turn * given.most_waiting + piece.waiting];
        const Member *rows = rows_of(given, given.nodes[waiting.node]);
        const int64_t first = work % n_groups * at_once;
        const int64_t n = waiting.n - first < at_once ? waiting.n - first : at_once;
        if (n <= 0) continue;
        int32_t *target = &given.histograms[(piece.waiting * given.rules.max_features + first) * size];
        int32_t *cells = size <= ROOM ? room : target;
        if (cells != target) EACH(c, n * size) cells[c] = 0;
        BARRIER();
        EACH(i, piece.end - piece.start) {
            const Member member = rows[piece.start + i];
            for (int64_t j = 0; j < n; ++j) {
                const int code = code_of(given, member, feature_at(given, waiting, piece.waiting, first + j));
                add_to(&cells[j * size + code * given.n_classes + member.label], member.weight);
                if (given.weighted) add_to(&cells[j * size + 256 * given.n_classes + code], 1);
            }
        }
        BARRIER();
        if (cells != target) EACH(c, n * size) if (cells[c]) add_to(&target[c], cells[c]);
        BARRIER();
    }
}

// Search a histogram of a waiting node, and leave it empty for the next level, for which nothing waits yet.
KFHE_KERNEL(search, Growth) {
    SHARED(Search, search);
    const int64_t n_features = given.rules.max_features, size = histogram_size(given);
    const int64_t n_waiting = given.counters->n_waiting[given.turn];
    if (BLOCK == 0) ONCE given.counters->n_waiting[1 - given.turn] = given.counters->n_pieces[1 - given.turn] = 0;
    for (int64_t work = BLOCK; work < n_waiting * n_features; work += N_BLOCKS) {
        const int64_t place = work / n_features, j = work % n_features;
        const Waiting waiting = given.waiting[given.turn * given.most_waiting + place];
        if (j >= waiting.n) continue;
        const int32_t feature = feature_at(given, waiting, place, j);
        int32_t *cells = &given.histograms[work * size];
        PresentBins bins;
        static_cast<Histogram &>(bins) = bins_of(
            cells, given.weighted ? &cells[256 * given.n_classes] : nullptr, given.n_bins[feature], given.n_classes
        );
        bins.missing_bin = given.n_bins[feature] - 1;
        ONCE {
            search.totals = totals_of(given, waiting.node);
            search.best = Split{};
        }
        BARRIER();
        search_feature(given, bins, waiting.node, feature, search);
        ONCE given.splits[work] = search.best;
        EACH(c, size) cells[c] = 0;
        BARRIER();
    }
}

// Split each waiting node by the best of its splits; if there is none, it waits again, to try one more feature.
KFHE_KERNEL(settle, Growth) {
    EACH(i, (given.counters->n_waiting[given.turn] - BLOCK + N_BLOCKS - 1) / N_BLOCKS) {
        const int64_t place = BLOCK + i * N_BLOCKS;
        const Waiting waiting = given.waiting[given.turn * given.most_waiting + place];
        Split best = {};
        for (int64_t j = 0; j < waiting.n; ++j) {
            const Split &split = given.splits[place * given.rules.max_features + j];
            if (better(split, best)) best = split;
        }
        if (best.score > 0)
            record(given, waiting.node, best, totals_of(given, waiting.node));
        else if (waiting.first + waiting.n < given.n_features)
            wait(given, waiting.node, waiting.first + waiting.n, 1, 1 - given.turn);
    }
}

// Part the rows of a piece whose node is split.
KFHE_KERNEL(part_pieces, Growth) {
    for (int64_t work = BLOCK; work < given.counters->n_pieces[given.turn]; work += N_BLOCKS) {
        const Piece piece = given.pieces[given.turn * given.most_pieces + work];
        const int32_t node = given.waiting[given.turn * given.most_waiting + piece.waiting].node;
        if (given.nodes[node].left >= 0) part(given, node, piece.start, piece.end);
    }
}

// Hand the children on.
KFHE_KERNEL(open_children, Growth) {
    EACH(i, (given.counters->n_waiting[given.turn] - BLOCK + N_BLOCKS - 1) / N_BLOCKS) {
        const int32_t node = given.waiting[given.turn * given.most_waiting + BLOCK + i * N_BLOCKS].node;
        const int32_t left = given.nodes[node].left;
        if (left < 0) continue;
        complete(given, node);
        hand_on(given, left, 1 - given.turn);
        hand_on(given, left + 1, 1 - given.turn);
    }
}

