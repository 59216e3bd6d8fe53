"""Plans: what they say is what is run, and mistakes are named by their key."""

from dataclasses import replace

import pytest

from kfhe.study.algorithms import SHORT_NAMES
from kfhe.study.dataset import Roles
from kfhe.study.errors import StudyError
from kfhe.study.paper import published
from kfhe.study.paper.catalogue import paper_names
from kfhe.study.plan import Plan, preset_text
from kfhe.study.sources import locate

GOOD = """
datasets = ["iris", "data/mine.csv"]
noise_levels = [0.2, 0, 0.1]
repeats = 3
[algorithms]
KFHE-e = {}
"forest of 10" = { algorithm = "random forest", n_estimators = 10 }
"""


def test_a_plan_is_read_from_toml(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(GOOD)
    plan = Plan.from_file(path)
    # A file is looked for beside the plan that names it
    assert plan.dataset_names == {"iris": "iris", "mine": str(tmp_path / "data" / "mine.csv")}
    assert plan.noise_levels == (0.0, 0.1, 0.2)
    assert (plan.repeats, plan.folds, plan.metric) == (3, 4, "f1_macro")
    forest = plan.algorithms[1]
    assert (forest.name, forest.algorithm) == ("forest of 10", "random forest")
    assert forest.parameters == {"n_estimators": 10}


def test_a_plan_has_a_cell_for_every_combination():
    plan = Plan.from_toml(GOOD)
    cells = plan.cells()
    assert len(cells) == len(set(cells)) == 2 * 3 * 3 * 4 * 2
    assert {cell.repeat for cell in cells[: len(cells) // 3]} == {0}, "each repeat is a study of its own"


def test_the_paper_preset_is_the_papers_experiment():
    plan = Plan.preset("paper")
    assert list(plan.datasets) == paper_names()
    assert (len(plan.datasets), len(plan.algorithms), plan.repeats, plan.folds) == (30, 7, 20, 4)
    assert plan.noise_levels == (0.0, 0.05, 0.1, 0.15, 0.2)
    tree_like = {a.name: a.parameters.get("cp") for a in plan.algorithms}
    assert tree_like["AdaBoost"] == tree_like["Bagging"] == tree_like["CART"] == 0.01


def test_the_noise_preset_has_the_peers_on_the_papers_datasets_at_seven_levels():
    plan = Plan.preset("noise")
    assert list(plan.datasets) == paper_names()
    assert plan.noise_levels == (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4)
    assert (plan.repeats, plan.folds) == (10, 4)
    assert {"Robust KFHE", "random forest, leaves of 5", "CatBoost", "CleanLearning"} <= _names(plan)
    assert set(published.ALGORITHMS) < _names(plan)
    for algorithm in plan.algorithms:
        components = SHORT_NAMES[algorithm.algorithm].components
        assert components is None or algorithm.parameters[components] == 100, algorithm.name


def test_the_real_preset_has_the_same_peers_on_labels_that_are_given_and_true():
    plan = Plan.preset("real")
    assert plan.algorithms == Plan.preset("noise").algorithms
    assert (plan.datasets, plan.noise_levels) == (("*",), (0.0,))
    assert plan.roles == Roles("given", "true", ("given_*", "true_*"))


def _names(plan):
    return {algorithm.name for algorithm in plan.algorithms}


def test_a_plan_survives_json_and_its_digest_tells_plans_apart(tmp_path):
    plan = Plan.from_toml(GOOD)
    again = Plan.from_json(plan.to_json())
    assert again == plan
    reviewed = replace(plan, given="given", true="true", drop=("id",))
    assert Plan.from_json(reviewed.to_json()) == reviewed
    assert plan.differences(reviewed) == ["given", "true", "drop"]
    elsewhere = Plan.from_toml(GOOD.replace("data/mine.csv", "other/mine.csv"))
    assert elsewhere.digest() == plan.digest(), "a moved file is the same study"
    other = Plan.from_toml(GOOD.replace("n_estimators = 10", "n_estimators = 11"))
    assert other.digest() != plan.digest()
    assert plan.differences(other) == ["algorithms"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[0.2, 0, 0.1]", "[0.2, 1.5]", r"'noise_levels' must be a list of shares from 0 to 1, got 1\.5"),
        ("[0.2, 0, 0.1]", "0.2", r"'noise_levels' must be a list .* got 0\.2"),
        ("[0.2, 0, 0.1]", "[]", r"'noise_levels' .* got none"),
        ("repeats = 3", "repeats = 0", "'repeats' must be a whole number of at least 1, got 0"),
        ("repeats = 3", "repeats = true", "'repeats' must be a whole number"),
        ("repeats = 3", "folds = 1", "'folds' must be a whole number of at least 2, got 1"),
        (
            "repeats = 3",
            "metric = 'auc'",
            "'metric' must be one of f1_macro, accuracy, balanced_accuracy, .* got 'auc'",
        ),
        (
            "repeats = 3",
            "noise_model = 'pair'",
            "'noise_model' must be one of uniform, pairwise, .* got 'pair'",
        ),
        (
            "[0.2, 0, 0.1]",
            "[0.6]\nnoise_model = 'pairwise'",
            r"from 0 to 0\.5 for the noise model 'pairwise', got 0\.6",
        ),
        ("repeats = 3", "repeat = 3", "'repeat' is not a key of a plan; there are datasets, algorithms"),
        ('["iris", "data/mine.csv"]', "[]", "'datasets' is empty"),
        ('["iris", "data/mine.csv"]', "'iris'", "'datasets' must be a list"),
        ('"iris", ', '"mine", ', "'datasets' names one twice"),
        ("KFHE-e = {}", "KFHE-e = 3", r"'algorithms\.KFHE-e' must be a table of parameters, got 3"),
        ('"random forest"', "7", r"'algorithms\.forest of 10\.algorithm' must be a text, got 7"),
        ("repeats = 3", "repeats =", "this is not TOML"),
        ("repeats = 3", "given = 'a'", "'given' and 'true' must be two columns of labels, got 'a' and None"),
        ("repeats = 3", "given = 'a'\ntrue = 'a'", "must be two columns of labels, got 'a' and 'a'"),
        ("repeats = 3", "drop = 'id'", "'drop' must be a list of names, got 'id'"),
        (
            '"data/mine.csv"',
            '"*"',
            r"'datasets' is '\*' for all tables of the data folder, or a list of some",
        ),
    ],
)
def test_a_mistake_is_named_by_file_and_key(old, new, message, tmp_path):
    path = tmp_path / "plan.toml"
    assert old in GOOD
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(StudyError, match=message) as error:
        Plan.from_file(path)
    assert str(error.value).startswith(str(path))


def test_datasets_and_algorithms_must_be_there():
    with pytest.raises(StudyError, match="'algorithms' is missing"):
        Plan.from_toml("datasets = ['iris']")


def test_a_plan_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(StudyError, match=r"absent\.toml: the plan can't be read"):
        Plan.from_file(tmp_path / "absent.toml")
    (tmp_path / "latin.toml").write_bytes(b"datasets = ['\xe9']")
    with pytest.raises(StudyError, match=r"latin\.toml: the plan can't be read"):
        Plan.from_file(tmp_path / "latin.toml")


def test_the_preset_others_needs_no_files_and_none_of_the_papers_datasets():
    plan, noise = Plan.preset("others"), Plan.preset("noise")
    assert not set(plan.datasets) & set(paper_names())
    assert len(plan.datasets) >= 12
    assert all(locate(name).kind in ("generated", "scikit-learn") for name in plan.datasets)
    assert replace(plan, datasets=noise.datasets) == noise


@pytest.mark.parametrize("of", [Plan.preset, preset_text])
def test_unknown_presets_are_named(of):
    with pytest.raises(
        StudyError,
        match="there is no plan 'slow'; give a TOML file or one of quick, paper, noise",
    ):
        of("slow")
