"""Trees for programs that know thresholds only: categories that go together stand next to each other."""

import numpy as np
import pandas as pd

from kfhe import CARTClassifier
from kfhe.export.plain_trees import PlainTrees


def test_categories_that_a_split_sends_to_one_side_become_neighbours():
    letters = np.array(list("abcdefghijkl") * 20)
    chosen = np.isin(letters, list("acegik"))  # every other one
    model = CARTClassifier().fit(pd.DataFrame({"letter": letters}), chosen)
    trees = PlainTrees.of(model, otherwise="")
    bins = trees.forest.schema.categories[0]
    places = sorted(trees.positions[0][bins[letter]] for letter in "acegik")
    assert places in (list(range(6)), list(range(6, 12)))
