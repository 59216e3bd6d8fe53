"""Downloads: datasets of the catalogue from OpenML, checked, into the cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kfhe.files import write_whole
from kfhe.study.datasets import cache_folder, differences
from kfhe.study.errors import StudyError
from kfhe.study.paper.catalogue import catalogue
from kfhe.study.tables import import_pandas, make_dataset


def fetch(name: str) -> Path:
    """Download a dataset into the cache and return its file there.

    scikit-learn compares what it receives with OpenML's checksum; rows, features and classes must be
    those of the catalogue. The file appears in the cache at once and whole, or not at all.

    Parameters
    ----------
    name : str
        A name of the catalogue.

    Returns
    -------
    Path
        The file in the cache; a download that is there already is not repeated.

    Raises
    ------
    StudyError
        If the dataset can't be downloaded, or is not the one that is meant.
    OSError
        If it can't be written.
    """
    facts = catalogue().get(name)
    if facts is None:
        raise StudyError(f"dataset '{name}' is not in the catalogue; 'kfhe data list' shows what there is")
    if facts.openml is None:
        raise StudyError(f"dataset '{name}' can't be downloaded. {facts.note or facts.citation}")
    target = cache_folder() / f"{name}.parquet"
    if target.is_file():
        return target
    import_pandas()  # rather than after the download
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
        # Nothing but the checked file is kept, so scikit-learn's own cache is not used
        bunch = fetch_openml(data_id=number, as_frame=True, parser="auto", cache=False)
    except (OSError, ValueError, ImportError) as error:
        raise StudyError(f"dataset '{name}' could not be downloaded from OpenML: {error}") from error
    frame = bunch.data.copy()
    frame["class"] = bunch.target.to_numpy()
    return frame


def _parquet(frame: Any) -> bytes:
    try:
        content: bytes = frame.to_parquet()
    except ImportError as error:
        raise StudyError('the cache of datasets needs pyarrow: pip install "kfhe[study]"') from error
    return content
