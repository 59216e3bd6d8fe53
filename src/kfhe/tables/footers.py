"""Footers of parquet files: what is known of a table without reading its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kfhe.tables.errors import TableFileError
from kfhe.tables.files import READABLE
from kfhe.tables.parquet import columns_of, damaged
from kfhe.tables.types import is_text

if TYPE_CHECKING:
    from polars import DataType

PART_BYTES = 64 << 20  # in memory that a part may have, if row groups are smaller


class Part(NamedTuple):
    """Some neighbouring rows of a file."""

    path: str
    first_row: int  # its number in the file, from 1
    n_rows: int
    n_bytes: int  # in memory


def files_in(folder: Path) -> list[Path]:
    """Return the parquet files of a folder, by name; hidden ones are others' notes."""
    return sorted(path for path in folder.glob("*.parquet") if path.name[0] not in "._")


def parquet_files(paths: Sequence[Path]) -> list[Path]:
    """Return the parquet files that are meant: of a folder, those in it, by name.

    Parameters
    ----------
    paths : sequence of Path
        Files and folders.

    Returns
    -------
    list of Path
        Files that are there, with absolute paths.

    Raises
    ------
    TableFileError
        If one is not there, not of parquet, or named twice.
    """
    found: list[Path] = []
    for path in paths:
        inside = [path]
        if path.is_dir():
            inside = files_in(path)
            if not inside:
                raise TableFileError(f"{path}: there are no .parquet files in this folder")
        elif path.name.endswith(tuple(each for each in READABLE if each != ".parquet")) or str(path) == "-":
            raise TableFileError(
                f"{path}: what is read part by part has to be parquet files, or folders of them: types of "
                "others are found by looking at all rows. Write it as parquet first"
            )
        elif not path.is_file():
            raise TableFileError(f"{path}: there is no such file")
        found += inside
    files = [path.resolve() for path in found]
    twice = [file for file, count in Counter(files).items() if count > 1]
    if twice:
        raise TableFileError(f"{twice[0]}: is named twice; its rows would count twice")
    return files


class RowGroup(NamedTuple):
    """Rows that are stored together."""

    n_rows: int
    stored: dict[str, int]  # bytes of each column


class Footer(NamedTuple):
    """What the end of a parquet file tells."""

    schema: Any
    groups: list[RowGroup]

    def parts(self, path: Path, used: Sequence[str]) -> Iterator[Part]:
        """Yield the parts, of which only the columns `used` are read."""
        first_row, n_rows, n_bytes = 1, 0, 0
        for group in self.groups:
            more = self.bytes_of(group, used)
            if n_rows and n_bytes + more > PART_BYTES:
                yield Part(str(path), first_row, n_rows, n_bytes)
                first_row, n_rows, n_bytes = first_row + n_rows, 0, 0
            n_rows, n_bytes = n_rows + group.n_rows, n_bytes + more
        if n_rows:
            yield Part(str(path), first_row, n_rows, n_bytes)

    def bytes_of(self, group: RowGroup, used: Sequence[str]) -> int:
        """Return about how many bytes columns take in memory: by their types; text as it is stored."""
        total = 0
        for column in used:
            type = self.schema.field(column).type
            total += group.n_rows * width(type) + (group.stored[column] if _is_text(type) else 0)
        return total


def _is_text(type: Any) -> bool:
    from pyarrow import types

    return bool(types.is_dictionary(type) or types.is_string(type) or types.is_large_string(type))


def width(type: Any) -> int:
    """Return how many bytes a value takes in memory; of text, where it begins."""
    from pyarrow import types

    fixed = types.is_primitive(type) or types.is_decimal(type)
    return max(1, type.bit_width // 8) if fixed else 4


def table_bytes(path: Path) -> int:
    """Return about how many bytes a parquet file takes in memory; 0 if it is none that can be read."""
    try:
        footer = footer_of(path)
    except (TableFileError, ImportError):  # pyarrow comes with Dask
        return 0
    return sum(footer.bytes_of(group, footer.schema.names) for group in footer.groups)


def footer_of(path: Path) -> Footer:
    """Read what the end of a file tells."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            metadata, schema = file.metadata, file.schema_arrow
            groups = [_row_group(metadata.row_group(i)) for i in range(metadata.num_row_groups)]
            fields = [pa.field(name, schema.field(name).type) for name in columns_of(schema.names, str(path))]
            for field in fields:
                if _is_text(field.type) and any(field.name not in group.stored for group in groups):
                    raise OSError(f"column {field.name!r} is not stored in it")
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise damaged(str(path), error) from error
    return Footer(pa.schema(fields), groups)


def _row_group(group: Any) -> RowGroup:
    columns = [group.column(j) for j in range(group.num_columns)]
    return RowGroup(group.num_rows, {each.path_in_schema: each.total_uncompressed_size for each in columns})


def common_schema(files: list[Path], schemas: list[Any]) -> dict[str, DataType]:
    """Return the types that columns of all files can have; raise if files don't go together."""
    import polars as pl
    import pyarrow as pa

    first = schemas[0]
    common = {field.name: field.type for field in first}
    for path, schema in zip(files, schemas, strict=True):
        for column in sorted({*common} ^ {*schema.names}):
            without, other = (path, files[0]) if column in common else (files[0], path)
            raise TableFileError(f"{without}: there is no column {column!r}, which is in {other}")
        for column, type in common.items():
            pair = [pa.schema([(column, each)]) for each in (type, schema.field(column).type)]
            try:
                common[column] = pa.unify_schemas(pair, promote_options="permissive").field(0).type
            except (pa.ArrowInvalid, pa.ArrowTypeError):
                raise TableFileError(
                    f"{path}: column {column!r} has type {pair[1].field(0).type}, but {type} in {files[0]}; "
                    "write it alike in all files"
                ) from None
    found = pl.DataFrame(pa.schema([(column, common[column]) for column in first.names]).empty_table())
    return {column: pl.String() if is_text(dtype) else dtype for column, dtype in found.schema.items()}
