"""The page's own sums: those of kfhe.audit.chances, by another engine."""

import json
import shutil
import subprocess
from importlib.resources import files

import numpy as np
import pytest

from kfhe.audit.chances import BY_PATTERN, RANGE, VotedOdds, by_chance, chances

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node to run scripts")

SUMS = """
const { explanations, nClasses, cases, groups, size, range } = JSON.parse(require("fs").readFileSync(0));
const found = new Chances(explanations, nClasses, cases);
const nWrong = cases.filter((each) => each.wrong).length;
const wrong = groups.map((each) => found.of(each));
console.log(JSON.stringify({ ...found.range(size, nWrong, groups, range), wrong }));
"""


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("n_judged", [1, 10, 60])
@pytest.mark.parametrize("verdict", [0.0, 0.7, 1.0])
def test_they_are_those_of_python(n_classes, n_judged, verdict):
    rng = np.random.default_rng(0)
    votes = rng.dirichlet(np.full(n_classes, 0.4), size=200)
    labels = rng.integers(n_classes, size=200).astype(np.int32)
    judged = np.arange(200) < n_judged
    wrong = rng.uniform(size=200) < verdict
    odds, level = VotedOdds.of(votes, labels)
    rows = [
        {"odds": each, "given": label, "wrong": int(is_wrong), "count": 1}
        for each, label, is_wrong in zip(odds.tolist(), labels.tolist(), wrong.tolist(), strict=True)
    ]
    explanations = [
        {"level": each.level, "slope": each.slope, "ofClass": each.of_class}
        for each in (by_chance(level), BY_PATTERN)
    ]
    asked = {"explanations": explanations, "nClasses": n_classes, "size": 200, "range": RANGE}
    asked |= {"cases": rows[:n_judged], "groups": rows[n_judged:]}
    script = files("kfhe.review").joinpath("chances.js").read_text() + SUMS
    done = subprocess.run(
        ["node", "-e", script], input=json.dumps(asked), capture_output=True, text=True, check=True
    )
    theirs, ours = json.loads(done.stdout), chances(votes, labels, judged, wrong)
    np.testing.assert_allclose(theirs["wrong"], ours.wrong[n_judged:], atol=1e-4)
    assert theirs["low"] == pytest.approx(ours.low, abs=1e-4)
    assert theirs["high"] == pytest.approx(ours.high, abs=1e-4)
