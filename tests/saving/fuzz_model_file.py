"""Mutated model files: python tests/saving/fuzz_model_file.py [COUNT] [SEED].

Each of them must be refused with a ModelFileError or give a model that predicts. It must not take seconds of
work, nor memory out of proportion to its size.
"""

import hashlib
import io
import json
import random
import signal
import sys
import tracemalloc
import warnings
from collections import Counter
from copy import deepcopy
from datetime import datetime, timedelta

import numpy as np
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

import kfhe
from kfhe.saving.model_file import NO_CHECKSUM
from kfhe.tables.dates import PARTS
from kfhe.tables.readings import DATES, READINGS, misfits
from kfhe.tables.schema import ENCODED, LEFT_OUT

START = b'checksum\\":\\"'  # what comes before the checksum
LONGEST_SECONDS = 5
# Memory that any file at all may take, and each byte of it.
MOST_BYTES, MOST_BYTES_PER_BYTE = 100_000, 25

NASTY = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    254,
    255,
    256,
    2**31,
    2**32,
    2**63,
    2**64,
    -(2**63),
    10**400,
    0.0,
    -0.0,
    0.5,
]
NASTY += [
    1e308,
    float("inf"),
    float("nan"),
    "",
    "0",
    "a",
    "\x00",
    "\ud800",
    "é" * 50,
    "gain",
    "str",
    "object",
    "int8",
]
NASTY += [
    [],
    {},
    [[]],
    [{}],
    {"": None},
    {"absent": "f"},
    {"float": "nan"},
    {"array": {}},
    {"pairs": [[0, 1]]},
]
NASTY += ["float32", "<U999999999", ["a", "a"], ["b", "a"], [0, 1, 2], [1, 0], [None, None], [255, 0]]


def tiny_models():
    """Return fitted models that are small, and together have all that a file can hold."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(40, 2)).round(1)
    numbers[rng.uniform(size=numbers.shape) < 0.2] = np.nan
    text = rng.choice(np.array(["red", "green", "blue", None], dtype=object), size=(40, 1))
    mixed = np.hstack([numbers.astype(object), text])
    small = {"n_estimators": 3, "random_state": 0}

    def tree(**settings):
        return kfhe.CARTClassifier(max_depth=3, min_samples_leaf=1, min_samples_split=2, **settings)

    labels = rng.integers(3, size=40)
    stopping = kfhe.EarlyStopping(3, scoring="accuracy")
    words = np.array(["x", "y", "z"])[labels]
    dates = np.array([datetime(2024, 1, 1) + timedelta(hours=h) for h in range(0, 8000, 200)], dtype=object)
    dated = np.column_stack([dates, mixed])
    ids = np.arange(40).astype(str)
    towns = rng.integers(13, size=40)
    coded = np.column_stack([mixed, ids, towns.astype(str)])
    return [
        kfhe.KFHEClassifier(tree(), **small, early_stopping=stopping).fit(
            numbers, labels, X_val=numbers, y_val=labels
        ),
        kfhe.KFHEClassifier(tree(), **small, voting="soft", class_weight={"x": 2.0, "z": 1.0}).fit(
            mixed, words
        ),
        kfhe.KFHEClassifier(tree(max_bins=2, categorical_features=[1, 2]), **small).fit(mixed, labels > 0),
        kfhe.KFHEClassifier(tree(), **small).fit(dated, words),
        kfhe.KFHEClassifier(tree(honest_categories=True), **small).fit(coded, words[towns % 3]),
    ]


def content_of(model):
    """Return the file of a model."""
    file = io.BytesIO()
    model.save(file)
    return file.getvalue()


def loaded(content):
    """Return the model of a file's content."""
    return kfhe.load(io.BytesIO(content))


def sealed(content):
    """Return a file with the checksum that it should have, if there is a place for one."""
    place = content.find(START) + len(START)
    if place < len(START):  # it was changed as well
        return content
    blank = content[:place] + NO_CHECKSUM + content[place + len(NO_CHECKSUM) :]
    return blank.replace(NO_CHECKSUM, hashlib.sha256(blank).hexdigest().encode(), 1)


def taken_apart(content):
    """Return the description and the arrays of a file."""
    length = int.from_bytes(content[:8], "little")
    description = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["kfhe"])
    return description, {name: array.copy() for name, array in load_arrays(content).items()}


def put_together(description, arrays):
    """Make a file of them, with the right checksum."""
    others = {name: value for name, value in description.items() if name != "checksum"}
    description = {"checksum": NO_CHECKSUM.decode(), **others}
    return sealed(save_arrays(arrays, {"kfhe": json.dumps(description, separators=(",", ":"))}))


def change_bytes(content, rng):
    """Change, remove, add or repeat a few bytes anywhere."""
    content = bytearray(content)
    length = int.from_bytes(content[:8], "little")
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        place = rng.choice([rng.randrange(8), rng.randrange(length), rng.randrange(len(content))])
        place = min(place, len(content) - 1)
        end = place + rng.choice([1, 1, 2, 8, 100])
        match rng.randrange(6):
            case 0 | 1:
                content[place] ^= 1 << rng.randrange(8)
            case 2:
                content[place] = rng.choice([0, 1, 34, 48, 57, 91, 92, 123, 127, 128, 255])
            case 3:
                del content[place:end]
            case 4:
                content[place:place] = content[place:end] * rng.choice([1, 1, 50])
            case 5:
                content[place:end] = rng.randbytes(end - place)
        if not content:
            break
    return bytes(content)


def change_length(content, rng):
    """Cut the file off, append to it, or lie about the length of the header."""
    match rng.randrange(3):
        case 0:
            return content[: rng.randrange(len(content))]
        case 1:
            return content + rng.randbytes(rng.randrange(1, 100))
    length = rng.choice(
        [0, 1, 7, 2**16, 99_999_999, 2**27, 2**31, 2**63, 2**64 - 1, len(content), rng.randrange(2**64)]
    )
    return length.to_bytes(8, "little") + content[8:]


def change_description(content, rng):
    """Change, remove, add or move values in the description of the model."""
    description, arrays = taken_apart(content)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        place = description
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = rng.choice(keys)
            if isinstance(place[key], dict | list) and rng.randrange(4):
                place = place[key]
                continue
            match rng.randrange(8):
                case 0:
                    del place[key]
                case 1 if isinstance(place, list):
                    place.insert(key, deepcopy(place[rng.choice(keys)]))
                case 2:
                    place[key] = deepcopy(place[rng.choice(keys)])
                case 3 if isinstance(place[key], list):
                    rng.shuffle(place[key])
                case 4:
                    for _ in range(rng.choice([1, 2, 10, 100])):
                        place[key] = [place[key]]
                case _:
                    place[key] = deepcopy(rng.choice(NASTY))
            break
    try:
        return put_together(description, arrays)
    except RecursionError:  # too deep for Python to write down
        return content


def change_arrays(content, rng):
    """Change values, lengths, types and shapes of the arrays; take one away."""
    description, arrays = taken_apart(content)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        name = rng.choice(list(arrays))
        array = arrays[name]
        match rng.randrange(9):
            case 0 | 1 | 2 | 3 if array.size:
                if array.dtype == np.float64:
                    values = [np.nan, np.inf, -np.inf, -1.0, 0.0, 1e308, 1.5, -1e-300]
                    array.reshape(-1)[rng.randrange(array.size)] = rng.choice(values)
                else:
                    data = array.reshape(-1).view(np.uint8)
                    data[rng.randrange(len(data))] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
            case 4:
                array = array[: rng.randrange(len(array) + 1)]
            case 5:
                array = np.concatenate([array, array[: rng.randrange(1, 9)]])
            case 6:
                with np.errstate(invalid="ignore"):
                    array = array.astype(rng.choice(["u1", "u2", "u4", "u8", "i4", "f4", "f8", "bool"]))
            case 7:
                shapes = [(-1,), (-1, 1), (1, -1), (1, 1, -1)] + ([(0, 2**20)] if array.size == 0 else [])
                array = array.reshape(rng.choice(shapes))
            case _:
                order = np.random.default_rng(rng.randrange(2**32)).permutation(len(array))
                array = array[order]
        arrays[name] = np.ascontiguousarray(array)
        if rng.randrange(50) == 0:
            del arrays[name]
    return put_together(description, arrays)


def change_rules(content, rng):
    """Let columns be read by other rules: of any column, of any kind, with any parts, in any order."""
    description, arrays = taken_apart(content)
    columns = description["columns"]
    numbers = [0, 1, 2, 3, len(columns["names"]), -1, 10**400, True, 0.0, "0"]
    parts = [*PARTS, *PARTS, "minute", "", None, 0]
    rules = [
        [
            rng.choice(numbers[: rng.choice([4, 99])]),
            rng.choice([*READINGS, *DATES, ENCODED, LEFT_OUT, "Date", "", None]),
        ]
        + [rng.choice(parts) for _ in range(rng.choice([0, 0, 1, 3, 1000]))]
        for _ in range(rng.choice([0, 1, 1, 2, 4]))
    ]
    ordered = sorted(rules, key=str)
    columns["rules"] = rng.choice([rules, ordered, ordered, ordered * 2, rules[:1], *rng.sample(NASTY, 2)])
    return put_together(description, arrays)


def mutated(content, rng):
    """Return a changed file and how it was changed; all but some of them have the right checksum."""
    change = rng.choice(
        [change_bytes, change_bytes, change_length, change_description, change_arrays, change_rules]
    )
    changed = change(content, rng)
    if change is change_bytes and rng.randrange(4):
        return "change_bytes, sealed", sealed(changed)
    return change.__name__, changed


def table_for(model, rng):
    """Return a few rows that the model can be asked about."""
    schema, columns = model.estimators_.schema, []
    rules = dict(schema.rules)
    for j, categories in enumerate(schema.column_categories):
        values = [0.0, -1e300, 1e300, np.nan, 0.3]
        if categories is not None:
            values = [*categories, "unheard of", None]
        elif j in rules and rules[j].of_dates:
            values = [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59), None]
        elif j in rules:
            values = [READINGS[rules[j].reading].split(",")[0], None]
        columns.append(rng.choices(values, k=9))
    return np.array(columns, dtype=object).T


def outcome(content, rng):
    """Load a file and use the model: "refused", or "loaded" if all was well; else an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # of numpy, about numbers that are none
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        try:
            model = kfhe.load(io.BytesIO(content))
        except kfhe.ModelFileError:
            return "refused"
        scores = model.predict_proba(table_for(model, rng))
        assert scores.shape == (9, len(model.classes_))
        assert scores.min() >= 0
        np.testing.assert_allclose(scores.sum(axis=1), 1, rtol=0, atol=1e-9)
        assert len(model.feature_importances_) == model.n_features_in_
        assert all(tree.export_text() for tree in model.estimators_)
    return "loaded"


def too_slow(*_):
    raise TimeoutError(f"more than {LONGEST_SECONDS} seconds of work")


def main(count=100_000, seed=0):
    """Try many files and print what became of them; an error names the file's number and is raised."""
    import resource  # not on Windows

    contents = [content_of(model) for model in tiny_models()]
    signal.signal(signal.SIGVTALRM, too_slow)
    for reading in READINGS:  # its pattern is compiled once, which is not the file's memory
        misfits([""], reading)
    assert all(outcome(content, random.Random(0)) == "loaded" for content in contents)
    outcomes, most, before = Counter(), 0.0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tracemalloc.start()
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        change, content = mutated(rng.choice(contents), rng)
        tracemalloc.reset_peak()
        used, _ = tracemalloc.get_traced_memory()
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST_SECONDS)
            result = outcome(content, rng)
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            peak = tracemalloc.get_traced_memory()[1] - used
            most = max(most, peak / (MOST_BYTES + MOST_BYTES_PER_BYTE * len(content)))
            assert most <= 1, f"{peak} bytes of memory for a file of {len(content)}"
        except BaseException as error:
            error.add_note(f"file {number} of seed {seed}, by {change}")
            raise
        outcomes[change, result] += 1
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    for (change, result), times in sorted(outcomes.items()):
        print(f"{times:8} {change}: {result}")
    print(f"{count:8} files: no crash, no hang; at most {most:.0%} of the memory that a file may take,")
    print(f"         and the process grew by {grown} KiB")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
