"""Sources of datasets: files, generators, scikit-learn, and downloads from OpenML."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kfhe.display.text import needed
from kfhe.files import write_whole
from kfhe.study.careless import added_columns, split_additions
from kfhe.study.dataset import (
    AS_USUAL,
    Dataset,
    Roles,
    import_pandas,
    is_table,
    make_dataset,
    read_table,
    table_name,
)
from kfhe.study.errors import StudyError
from kfhe.study.paper.catalogue import Facts, catalogue
from kfhe.study.synthetic import GENERATORS
from kfhe.tables.files import READABLE

if TYPE_CHECKING:
    from kfhe.study.plan import Plan


@dataclass(frozen=True)
class Source:
    """The source of a dataset: its kind, and the file or function."""

    kind: str
    path: Path | None = None

    def __str__(self) -> str:
        return f"{self.kind} ({self.path})" if self.path else self.kind


def load(name: str, data_dir: str | Path | None = None, *, roles: Roles = AS_USUAL) -> Dataset:
    """Load a dataset: from the catalogue, the data folder, or any table file.

    Parameters
    ----------
    name : str
        A name or the path of a file, possibly with additions: see `kfhe.study.careless`.
    data_dir : path, optional
        Folder of table files, which is searched first; default: the environment variable ``KFHE_DATA``, if it
        is set.
    roles : Roles
        Roles and types of columns.

    Returns
    -------
    Dataset
        The checked data.

    Raises
    ------
    StudyError
        The dataset is not available, or can't be used.

    Examples
    --------
    >>> from kfhe.study.sources import load
    >>> monks = load("monks2")
    >>> monks.X.shape, monks.classes
    ((432, 6), ['0', '1'])
    """
    base, added = split_additions(name)
    if added:
        dataset = load(base, data_dir, roles=roles)
        X = added_columns(dataset.X, added)
        return replace(dataset, name=table_name(name) if is_table(base) else name, X=X, added=added)
    source = locate(name, data_dir)
    if source is None:
        raise StudyError(_not_here(name))
    facts = catalogue().get(name)
    if source.path is not None:
        return read_table(
            source.path,
            name=None if is_table(name) else name,
            categorical=facts.categorical if facts and source.kind == "folder" else (),
            roles=roles,
            of_catalogue=facts is not None,
        )
    if roles.given is not None:
        raise StudyError(f"dataset '{name}' ({source.kind}) has no column '{roles.given}' of given labels")
    frame = {"generated": GENERATORS, "scikit-learn": _EMBEDDED}[source.kind][name]()
    target = roles.learnt(name, list(frame.columns), of_catalogue=True)
    dropped = tuple(column for column in roles.dropped(frame.columns) if column != target)
    dataset = make_dataset(
        frame.drop(columns=list(dropped)),
        name,
        source=source.kind,
        categorical=catalogue()[name].categorical,
        target=target,
    )
    return replace(dataset, dropped=dropped)


def locate(name: str, data_dir: str | Path | None = None) -> Source | None:
    """Return the first source that has a dataset: file, folder, generator, scikit-learn, cache; or None."""
    name, _ = split_additions(name)
    if is_table(name):
        path = Path(name)
        return Source("file", path) if path.is_file() else None
    path_in_folder = _in_folder(name, data_folder(data_dir))
    if path_in_folder:
        return Source("folder", path_in_folder)
    if name in GENERATORS:
        return Source("generated")
    if name in _EMBEDDED:
        return Source("scikit-learn")
    cached = cache_folder() / f"{name}.parquet"
    return Source("cache", cached) if cached.is_file() else None


def data_folder(data_dir: str | Path | None) -> Path | None:
    """Return the folder of the user's data files, validated; None if there is none."""
    given = data_dir or os.environ.get("KFHE_DATA")
    if not given:
        return None
    folder = Path(given)
    if not folder.is_dir():
        raise StudyError(f"data folder {folder}: there is no such folder")
    if not any(path.name.endswith(READABLE) for path in folder.iterdir()):
        raise StudyError(f"data folder {folder}: it has no files that end in {', '.join(READABLE)}")
    return folder


def tables_of(folder: Path | None) -> list[str]:
    """Return the names of all table files in the data folder."""
    if folder is None:
        raise StudyError(
            "'datasets' asks for all tables of the data folder: name it by --data-dir or KFHE_DATA"
        )
    return sorted({table_name(path) for path in folder.iterdir() if path.name.endswith(READABLE)})


def cache_folder() -> Path:
    """Return the folder for downloads, which ``KFHE_CACHE`` can change."""
    given = os.environ.get("KFHE_CACHE")
    if given:
        return Path(given)
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "kfhe" / "data"


def _in_folder(name: str, folder: Path | None) -> Path | None:
    if folder is None:
        return None
    facts = catalogue().get(name)
    names = [name + suffix for suffix in READABLE] + ([facts.file] if facts and facts.file else [])
    return next((folder / file for file in names if (folder / file).is_file()), None)


def _not_here(name: str) -> str:
    if is_table(name):
        return f"{name}: there is no such file"
    facts = catalogue().get(name)
    if facts is None:
        from difflib import get_close_matches

        near = get_close_matches(name, catalogue(), n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "'kfhe data list' shows all names"
        return f"dataset '{name}' is unknown; {hint} (a file needs its ending, such as {name}.csv)"
    if facts.rows is None:
        return f"dataset '{name}' is unavailable. {facts.note}"
    ways = f"put {facts.file} into a folder and name it by --data-dir or KFHE_DATA"
    if facts.openml is not None:
        ways += f", or try 'kfhe data fetch {name}'"
    return f"dataset '{name}' is not on this machine; {ways}"


def _embedded(loader: str) -> Any:
    """Return one of scikit-learn's datasets as a frame with class names in the last column."""
    from sklearn import datasets

    import_pandas()
    bunch = getattr(datasets, loader)(as_frame=True)
    frame = bunch.data.copy()
    frame["class"] = [str(bunch.target_names[code]) for code in bunch.target]
    return frame


_EMBEDDED: dict[str, Callable[[], Any]] = {
    name: partial(_embedded, f"load_{name}") for name in ("iris", "wine", "breast_cancer", "digits")
}


def loaded(plan: Plan, data_dir: str | None, name: str) -> Dataset:
    """Load a dataset of a plan once per process, and again if its file has changed."""
    entry = plan.dataset_names[name]
    source = locate(entry, data_dir)
    path = source.path.resolve() if source and source.path else None
    return _loaded(entry, data_dir, plan.roles, path, path.stat().st_mtime_ns if path else 0)


@cache
def _loaded(name: str, data_dir: str | None, roles: Roles, path: Path | None, changed: int) -> Dataset:
    return load(name, data_dir, roles=roles)


def differences(dataset: Dataset, facts: Facts) -> list[str]:
    """Return how a dataset differs from the catalogue."""
    found = sorted((dataset.y == code).sum() for code in range(len(dataset.classes)))
    said = [
        ("rows", len(dataset.y), facts.rows),
        ("features", dataset.X.shape[1], facts.features),
        ("rows per class", [int(count) for count in found], sorted(facts.classes.values())),
    ]
    return [f"{what}: {here}, the catalogue says {there}" for what, here, there in said if here != there]


def fetch(name: str) -> Path:
    """Download a dataset into the cache and return the path of its file.

    scikit-learn verifies OpenML's checksum. Rows, features and classes must be those of the catalogue. The
    file appears in the cache completely or not at all.

    Parameters
    ----------
    name : str
        A name in the catalogue.

    Returns
    -------
    Path
        The file in the cache. A dataset that is there already is not downloaded again.

    Raises
    ------
    StudyError
        The dataset can't be downloaded, or differs from the catalogue.
    OSError
        The file can't be written.
    """
    facts = catalogue().get(name)
    if facts is None:
        raise StudyError(f"dataset '{name}' is not in the catalogue; 'kfhe data list' shows all names")
    if facts.openml is None:
        raise StudyError(f"dataset '{name}' can't be downloaded. {facts.note or facts.citation}")
    target = cache_folder() / f"{name}.parquet"
    if target.is_file():
        return target
    import_pandas()  # so that a missing package is found before the download
    frame = _download(name, facts.openml)
    dataset = make_dataset(frame, name, source=f"OpenML {facts.openml}")
    wrong = differences(dataset, facts)
    if wrong:
        raise StudyError(
            f"dataset '{name}': OpenML {facts.openml} is another one ({'; '.join(wrong)}); nothing was stored"
        )
    write_whole(target, _parquet(frame))
    return target


def _download(name: str, number: int) -> Any:
    from sklearn.datasets import fetch_openml

    try:
        # Only the verified file is kept, so scikit-learn's own cache is not used
        bunch = fetch_openml(data_id=number, as_frame=True, parser="auto", cache=False)
    except (OSError, ValueError, ImportError) as error:
        raise StudyError(f"dataset '{name}' could not be downloaded from OpenML: {error}") from error
    frame = bunch.data.copy()
    frame["class"] = bunch.target.to_numpy()
    return frame


def _parquet(frame: Any) -> bytes:
    with needed("the cache of datasets needs pyarrow", "study"):
        content: bytes = frame.to_parquet()
    return content
