// Best-first growth: of all waiting nodes, the one whose split has the highest gain is split next.
//
// Nodes are numbered from 0, the root, and children in the order in which their parents were split. On a tie, the node
// whose parent comes first wins, from the root down and left before right; then the left one of two siblings.

#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace kfhe {

class BestFirst {
    struct Place {
        int32_t parent;
        int32_t depth;
    };
    struct Waiting {
        double gain;
        int32_t node;
    };
    std::vector<Place> places = std::vector<Place>(1);
    std::vector<Waiting> heap;

    bool comes_first(int32_t a, int32_t b) const {
        int32_t p = places[a].parent, q = places[b].parent;
        const bool shallower = places[p].depth < places[q].depth;
        if (p == q) return a < b;
        while (places[p].depth > places[q].depth) p = places[p].parent;
        while (places[q].depth > places[p].depth) q = places[q].parent;
        if (p == q) return shallower;
        while (places[p].parent != places[q].parent) {
            p = places[p].parent;
            q = places[q].parent;
        }
        return p < q;
    }
    auto later() const {
        return [this](const Waiting &a, const Waiting &b) {
            return a.gain != b.gain ? a.gain < b.gain : comes_first(b.node, a.node);
        };
    }

public:
    bool empty() const { return heap.empty(); }

    // Add a node with a split.
    void offer(int32_t node, double gain) {
        heap.push_back({gain, node});
        std::push_heap(heap.begin(), heap.end(), later());
    }

    // Return the next node to split.
    int32_t next() {
        std::pop_heap(heap.begin(), heap.end(), later());
        const int32_t node = heap.back().node;
        heap.pop_back();
        return node;
    }

    // Return the number of the left child of a split node.
    int32_t add_children(int32_t parent) {
        places.insert(places.end(), 2, {parent, places[parent].depth + 1});
        return int32_t(places.size()) - 2;
    }
};

}  // namespace kfhe
