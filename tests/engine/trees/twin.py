"""A plain-Python twin of the tree engine: one function per decision, no care for speed.

It grows a tree on binned codes and writes it down as the engine does, so that the arrays can be compared.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from kfhe.engine.draws import Stream, random_numbers
from kfhe.forest import CATEGORICAL, LEAF, MISSING_LEFT, NODE_DTYPE, NUMERIC

WORD = 2**64 - 1


@dataclass
class Settings:
    max_depth: int = 0  # 0: no limit
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    max_features: int = 0  # 0: all
    random_cuts: bool = False
    seed: int = 0
    tree: int = 0


@dataclass
class Split:
    score: float = 0.0
    feature: int = -1
    left_bins: frozenset = frozenset()  # bins of all values that go left, the missing bin too if it does
    missing_left: bool = False
    cut: int = 0
    threshold: float = 0.0


@dataclass
class Node:
    totals: list
    split: Split | None = None
    gain: float = 0.0
    children: list = field(default_factory=list)


class Twin:
    """Grows a tree on the rows of positive weight; each of its decisions can be asked for alone."""

    def __init__(self, table, labels, n_classes, weights, counts, settings):
        self.table, self.labels, self.n_classes = table, labels.tolist(), n_classes
        self.weights, self.counts, self.settings = weights.tolist(), counts, settings
        self.rows = [i for i, weight in enumerate(self.weights) if weight > 0]

    # ------------------------------------------------------------ nodes

    def grow(self, rows, depth, key):
        node = Node(self.totals(rows))
        if self.is_terminal(rows, node.totals, depth):
            return node
        best = self.best_split(rows, key)
        if best.score == 0:
            return node
        node.split = best
        node.gain = best.score - float(squares(node.totals)) / float(sum(node.totals))
        codes = self.table.codes[best.feature]
        left = [i for i in rows if int(codes[i]) in best.left_bins]
        right = [i for i in rows if int(codes[i]) not in best.left_bins]
        node.children = [
            self.grow(part, depth + 1, child_key(key, side)) for side, part in enumerate((left, right))
        ]
        return node

    def totals(self, rows):
        totals = [0] * self.n_classes
        for i in rows:
            totals[self.labels[i]] += self.weights[i]
        return totals

    def count(self, rows):
        """Rows as min_samples counts them."""
        return sum(self.weights[i] for i in rows) if self.counts else len(rows)

    def is_terminal(self, rows, totals, depth):
        settings = self.settings
        count = self.count(rows)
        return (
            (settings.max_depth and depth >= settings.max_depth)
            or count < settings.min_samples_split
            or count < 2 * settings.min_samples_leaf
            or sum(total > 0 for total in totals) < 2
        )

    # ------------------------------------------------------------ splits

    def best_split(self, rows, key):
        """The best split of the features tried; the first feature of equals."""
        n_features = len(self.table.n_bins)
        n_tried = self.settings.max_features or n_features
        features = list(range(n_features))
        if n_tried < n_features:
            features = shuffled(n_features, self.settings.seed, self.settings.tree, key)
        best = Split()
        for position, feature in enumerate(features):
            if position >= n_tried and best.score > 0:
                break
            if self.table.categorical[feature]:
                split = self.split_categories(rows, feature)
            elif self.settings.random_cuts:
                split = self.split_by_chance(rows, feature, key)
            else:
                split = self.split_numbers(rows, feature)
            if split.score > best.score or (split.score == best.score > 0 and split.feature < best.feature):
                best = split
        return best

    def by_bin(self, rows, feature):
        bins = {}
        for i in rows:
            bins.setdefault(int(self.table.codes[feature, i]), []).append(i)
        return dict(sorted(bins.items()))

    def score(self, left, right):
        """The score of a split of rows in two; 0 if it is not allowed."""
        if min(self.count(left), self.count(right)) < self.settings.min_samples_leaf:
            return 0.0
        left_totals, right_totals = self.totals(left), self.totals(right)
        n_left, n_right = float(sum(left_totals)), float(sum(right_totals))
        numerator = float(squares(left_totals)) * n_right + float(squares(right_totals)) * n_left
        return numerator / (n_left * n_right)

    def heavier_is_left(self, left, rows):
        return 2 * sum(self.totals(left)) >= sum(self.totals(rows))

    def split_numbers(self, rows, feature):
        bins = self.by_bin(rows, feature)
        missing = int(self.table.n_bins[feature]) - 1
        gaps = bins.pop(missing, [])
        present = list(bins)
        best = Split(feature=feature)
        for missing_left in (False, True) if gaps else (False,):
            left = list(gaps) if missing_left else []
            n_cuts = len(present) - (missing_left or not gaps)  # values left, gaps right is a split too
            for position, bin in enumerate(present[:n_cuts]):
                left = left + bins[bin]
                score = self.score(left, [i for i in rows if i not in set(left)])
                if score > best.score:
                    following = present[position + 1] if position + 1 < len(present) else missing
                    best.score = score
                    best.missing_left = missing_left if gaps else self.heavier_is_left(left, rows)
                    best.cut, best.threshold = self.cut(feature, bin, following)
        if best.score:
            best.left_bins = frozenset(range(best.cut + 1)) | ({missing} if best.missing_left else set())
        return best

    def split_by_chance(self, rows, feature, key):
        """The cut that is drawn, with gaps on the side that is better."""
        bins = self.by_bin(rows, feature)
        missing = int(self.table.n_bins[feature]) - 1
        gaps = bins.pop(missing, [])
        best = Split(feature=feature)
        if not bins or (len(bins) == 1 and not gaps):
            return best
        numbers = random_numbers(self.settings.seed, Stream.CUTS, feature // 4, key, self.settings.tree, 0)
        drawn = min(bins) + (numbers[feature % 4] * (max(bins) - min(bins)) >> 64)
        left = [i for bin in bins if bin <= drawn for i in bins[bin]]
        last = max(bin for bin in bins if bin <= drawn)
        following = min((bin for bin in bins if bin > drawn), default=missing)
        for missing_left in (False, True) if gaps and following < missing else (False,):
            left = left + gaps if missing_left else left
            score = self.score(left, [i for i in rows if i not in set(left)])
            if score > best.score:
                best.score = score
                best.missing_left = missing_left if gaps else self.heavier_is_left(left, rows)
                best.cut, best.threshold = self.cut(feature, last, following)
        if best.score:
            best.left_bins = frozenset(range(best.cut + 1)) | ({missing} if best.missing_left else set())
        return best

    def cut(self, feature, last_left, first_right):
        """The last bin that goes left, and the threshold: midway between the neighbours in the node."""
        low, high = self.table.low[feature].tolist(), self.table.high[feature].tolist()
        if first_right == self.table.n_bins[feature] - 1:
            return first_right - 1, math.inf
        middle = midpoint(high[last_left], low[first_right])
        cut = max(bin for bin in range(last_left, first_right) if bin == last_left or high[bin] <= middle)
        if low[cut + 1] <= middle:  # a bin of several values is never cut in two
            middle = midpoint(high[cut], low[cut + 1])
        return cut, middle

    def split_categories(self, rows, feature):
        bins = self.by_bin(rows, feature)
        best = Split(feature=feature)
        for order in self.category_orders(bins):
            for n_left in range(1, len(order)):
                left = [i for bin in order[:n_left] for i in bins[bin]]
                score = self.score(left, [i for bin in order[n_left:] for i in bins[bin]])
                if score > best.score:
                    best.score, best.left_bins = score, frozenset(order[:n_left])
                    best.missing_left = self.heavier_is_left(left, rows)
        if best.score:
            missing = int(self.table.n_bins[feature]) - 1
            if missing in bins:
                best.missing_left = missing in best.left_bins
            if best.missing_left:
                best.left_bins |= set(range(256)) - set(bins)
        return best

    def category_orders(self, bins):
        """Two classes: by the share of the first; more: by each class's share, then by the component."""
        totals = {bin: self.totals(rows) for bin, rows in bins.items()}
        shares = {bin: [total / float(sum(t)) for total in t] for bin, t in totals.items()}
        classes = [k for k in range(self.n_classes) if any(t[k] for t in totals.values())]
        for k in classes[:1] if len(classes) == 2 else classes:
            yield sorted(bins, key=lambda bin, k=k: (shares[bin][k], bin))
        if len(classes) > 2:
            direction = principal_component(shares, {bin: float(sum(t)) for bin, t in totals.items()})
            keys = {bin: dot(share, direction) for bin, share in shares.items()}
            yield sorted(bins, key=lambda bin: (keys[bin], bin))

    # ------------------------------------------------------------ what the engine writes

    def arrays(self):
        """The tree as the engine's arrays: siblings are neighbours, left subtrees come first."""
        nodes, gains, leaf_weights, category_sets = [None], [0.0], [], []
        stack = [(self.grow(self.rows, depth=0, key=1), 0)]
        while stack:
            node, place = stack.pop()
            gains[place] = node.gain
            if node.split is None:
                nodes[place] = (0.0, len(leaf_weights), 0, LEAF, 0)
                leaf_weights.append(node.totals)
                continue
            split, left = node.split, len(nodes)
            kind = MISSING_LEFT * split.missing_left
            if self.table.categorical[split.feature]:
                nodes[place] = (len(category_sets), left, split.feature, kind | CATEGORICAL, 0)
                category_sets.append(
                    [sum(1 << bin % 64 for bin in split.left_bins if bin // 64 == word) for word in range(4)]
                )
            else:
                nodes[place] = (split.threshold, left, split.feature, kind | NUMERIC, split.cut)
            nodes += [None, None]
            gains += [0.0, 0.0]
            stack += [(node.children[1], left + 1), (node.children[0], left)]
        return {
            "nodes": np.array(nodes, dtype=NODE_DTYPE),
            "gains": np.array(gains),
            "leaf_weights": np.array(leaf_weights, dtype=np.int32),
            "category_sets": np.array(category_sets, dtype=np.uint64).reshape(-1, 4),
        }


def squares(totals):
    return sum(total * total for total in totals)


def midpoint(a, b):
    middle = a / 2 + b / 2
    return middle if a <= middle < b else a


def dot(a, b):
    total = 0.0
    for x, y in zip(a, b, strict=True):
        total += x * y
    return total


def child_key(key, side):
    """The name of a child: its path, mixed."""
    z = (2 * key + side + 0x9E3779B97F4A7C15) & WORD
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & WORD
    z = (z ^ z >> 27) * 0x94D049BB133111EB & WORD
    return z ^ z >> 31


def shuffled(n_features, seed, tree, key):
    """All features in a node's own random order."""
    features = list(range(n_features))
    for i in range(n_features - 1):
        number = random_numbers(seed, Stream.FEATURES, i // 4, key, tree, 0)[i % 4]
        j = i + (number * (n_features - i) >> 64)
        features[i], features[j] = features[j], features[i]
    return features


def principal_component(shares, weights):
    """The direction in which the shares vary most: 24 steps of power iteration, added up in a fixed order."""
    n_classes = len(next(iter(shares.values())))
    classes = range(n_classes)
    total = 0.0
    mean = [0.0] * n_classes
    for bin, share in shares.items():
        total += weights[bin]
        mean = [mean[i] + weights[bin] * share[i] for i in classes]
    mean = [m / total for m in mean]
    covariance = [[0.0] * n_classes for _ in classes]
    for bin, share in shares.items():
        for i in classes:
            for j in range(i + 1):
                covariance[i][j] += weights[bin] * (share[i] - mean[i]) * (share[j] - mean[j])
    covariance = [[covariance[max(i, j)][min(i, j)] / total for j in classes] for i in classes]
    direction = [1.0 + i for i in classes]
    for _ in range(3):
        for _ in range(8):
            direction = [dot(covariance[i], direction) for i in classes]
        length = dot(direction, direction)
        if not 1e-200 < length < 1e200:
            break
        direction = [x / math.sqrt(length) for x in direction]
    return direction
