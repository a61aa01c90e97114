"""Convert a value of a notebook to files on this machine: Parquet, ``.npy``, ``.npz``, or a copy.

The same value gives the same bytes with the same versions of the libraries, so its digest tells
whether the cluster has it already. pandas and NumPy are never imported here: a value of theirs is
recognized by the modules that the process has loaded.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from submarine_jobs.datasets.dataset import (
    CELL_LIMIT,
    SAMPLE_COLUMNS,
    SAMPLE_ROWS,
    SCHEMA_LIMIT,
    Sample,
)
from submarine_jobs.errors import UsageError
from submarine_jobs.extras import require_extra
from submarine_jobs.text import sibling_hint, size
from submarine_runtime.files import TEMPORARY_PREFIX
from submarine_runtime.translation import _

#: Maximum bytes in memory of the rows in one Parquet file: `:shard` divides a dataset by its files.
PART_BYTES = 128 << 20
#: Maximum number of rows, and of bytes in memory, of a row group.
_GROUP_ROWS, _GROUP_BYTES = 1 << 20, 64 << 20
_MAX_FILES = 200_000
_HASHED_BYTES = 1 << 20


@dataclass(frozen=True)
class StagedFile:
    """A file on this machine: path, size and SHA-256."""

    path: Path
    size: int
    digest: str
    modified: int


@dataclass(frozen=True)
class StagedContent:
    """Content of a dataset on this machine, with its description.

    Parameters
    ----------
    files
        Name below the dataset's directory -> file.
    file
        Name of the only file, if an input is that file and not the directory.
    """

    source: str
    files: Mapping[str, StagedFile]
    file: str | None = None
    rows: int | None = None
    schema: tuple[tuple[str, str], ...] = ()
    sample: Sample = field(default_factory=Sample)

    @property
    def size(self) -> int:
        """Total bytes."""
        return sum(file.size for file in self.files.values())

    @property
    def digest(self) -> str:
        """SHA-256 of names, sizes and digests of the files."""
        return content_digest((name, f.size, f.digest) for name, f in self.files.items())


def content_digest(files: Iterable[tuple[str, int, str]]) -> str:
    """Return the digest of a dataset's files: (name, size, SHA-256)."""
    found = hashlib.sha256()
    for name, count, digest in sorted(files):
        found.update(f"{digest} {count} {name}\n".encode("utf-8", "surrogateescape"))
    return found.hexdigest()


def stage_value(value: object, folder: Path) -> StagedContent:
    """Write a frame, a table or arrays to files in ``folder``, which is empty.

    Raises
    ------
    UsageError
        If the value has another type, or cannot be stored without pickle.
    MissingExtraError
        If pyarrow is not installed.
    """
    arrays = _arrays(value)
    if arrays is not None:
        return _stage_arrays(arrays, folder)
    table, source = arrow_table(value)
    return stage_table(table, source, folder)


def arrow_table(value: object) -> tuple[Any, str]:
    """Return ``value`` as an Arrow table, and the kind of its source.

    Raises
    ------
    UsageError
        If it is neither a frame nor a table, or a column cannot be converted.
    """
    pandas = sys.modules.get("pandas")
    kind = type(value).__name__
    if pandas is not None and isinstance(value, pandas.Series):
        value = value.to_frame(name=value.name if value.name is not None else "value")
    if pandas is not None and isinstance(value, pandas.DataFrame):
        require_extra("data", ("pyarrow",))
        arrow = importlib.import_module("pyarrow")
        try:
            return arrow.Table.from_pandas(value), "pandas"
        except (arrow.ArrowException, ValueError, TypeError) as error:
            raise UsageError(
                _("The {kind} cannot be stored as Parquet: {error}.").format(
                    kind=kind, error=_reason(error)
                ),
                _("Convert the column, for example with .astype('str'), or leave it out."),
            ) from None
    if hasattr(value, "__arrow_c_stream__"):
        require_extra("data", ("pyarrow",))
        arrow = importlib.import_module("pyarrow")
        try:
            return arrow.table(value), "arrow"
        except (arrow.ArrowException, ValueError, TypeError) as error:
            raise UsageError(
                _("The {kind} cannot be read as an Arrow table: {error}.").format(
                    kind=kind, error=_reason(error)
                )
            ) from None
    raise UsageError(
        _("A {kind} cannot be put as a dataset.").format(kind=kind[:60]),
        _(
            "Give a pandas DataFrame, an Arrow table, a Spark DataFrame, a NumPy array, a dict of "
            "arrays, or paths of files."
        ),
    )


def stage_table(table: Any, source: str, folder: Path) -> StagedContent:
    """Write an Arrow table as Parquet files ``part-00000.parquet`` ... in ``folder``.

    Raises
    ------
    UsageError
        If Parquet has no type for a column.
    """
    arrow = importlib.import_module("pyarrow")
    parquet = importlib.import_module("pyarrow.parquet")
    # Dictionaries make floating-point columns larger, and four times slower to write.
    repeated = [field.name for field in table.schema if _repeats(arrow.types, field.type)]
    row_bytes = max(1, table.nbytes // max(1, table.num_rows))
    part = max(1, PART_BYTES // row_bytes)
    group = max(1, min(_GROUP_ROWS, _GROUP_BYTES // row_bytes))
    files = {}
    for number, start in enumerate(range(0, max(1, table.num_rows), part)):
        name = f"part-{number:05d}.parquet"
        try:
            parquet.write_table(
                table.slice(start, part),
                folder / name,
                compression="snappy",
                use_dictionary=repeated or False,
                row_group_size=group,
            )
        except arrow.ArrowException as error:
            raise UsageError(
                _("The {source} table cannot be stored as Parquet: {error}.").format(
                    source=source, error=_reason(error)
                ),
                _("Convert the column, or leave it out."),
            ) from None
        files[name] = _staged(folder / name)
    return StagedContent(
        source,
        files,
        rows=table.num_rows,
        schema=tuple((field.name, str(field.type)) for field in table.schema)[:SCHEMA_LIMIT],
        sample=_table_sample(table),
    )


def stage_files(names: Sequence[str | os.PathLike[str]]) -> StagedContent:
    """Describe files and directories of this machine, which are uploaded as they are.

    One file is the dataset itself. The content of one directory is that of the dataset. Several
    lie in the dataset by their base names.

    Raises
    ------
    UsageError
        If one does not exist, two have the same name, or a name cannot be stored.
    """
    found: dict[str, Path] = {}
    for name in names:
        path = Path(name).expanduser()
        if not path.exists():
            raise UsageError(
                _("There is no file {name}.").format(name=str(name)[:200]),
                sibling_hint(path) or _("Check the path."),
            )
        _check_file_name(path)
        below = _tree(path) if path.is_dir() else {path.name: path}
        if len(names) > 1 and path.is_dir():
            below = {f"{path.resolve().name}/{inner}": file for inner, file in below.items()}
        for inner, file in below.items():
            if inner in found:
                raise UsageError(
                    _("Two of the files would be {name} in the dataset.").format(name=inner[:200]),
                    _("Rename one of them, or put a directory that contains both."),
                )
            found[inner] = file
    if not found:
        raise UsageError(_("There are no files to put."), _("Name a file or a directory."))
    single = len(names) == 1 and Path(names[0]).expanduser().is_file()
    try:
        files = {name: _staged(path) for name, path in sorted(found.items())}
    except OSError as error:
        raise UsageError(
            _("{path} cannot be read: {error}.").format(path=error.filename, error=error.strerror)
        ) from None
    return StagedContent(
        "files",
        files,
        file=next(iter(files)) if single else None,
        sample=files_sample((name, file.size) for name, file in files.items()),
    )


def files_sample(files: Iterable[tuple[str, int]]) -> Sample:
    """Return the first files of a dataset as its sample."""
    rows = [(name[:CELL_LIMIT], size(count)) for name, count in sorted(files)[:SAMPLE_ROWS]]
    return Sample(("file", "size"), tuple(rows))


def _tree(root: Path) -> dict[str, Path]:
    """Return all files below a directory by their relative names."""
    found: dict[str, Path] = {}
    for folder, directories, names in os.walk(root):
        for name in [*directories, *names]:
            path = Path(folder, name)
            _check_file_name(path)
            if path.is_symlink() and path.is_dir():
                raise UsageError(
                    _("{path} is a link to a directory.").format(path=path),
                    _("Put the directory itself."),
                )
        found.update(
            {Path(folder, name).relative_to(root).as_posix(): Path(folder, name) for name in names}
        )
        if len(found) > _MAX_FILES:
            raise UsageError(
                _("{root} contains more than {limit:,} files.").format(root=root, limit=_MAX_FILES),
                _("Pack them into fewer files."),
            )
    return found


def _check_file_name(path: Path) -> None:
    name = path.name
    if name.startswith(TEMPORARY_PREFIX) or ":" in name or not name.isprintable():
        raise UsageError(
            _("{path} has a name that HDFS or Submarine does not store.").format(
                path=repr(str(path))[1:-1][:300]
            ),
            _("Rename it, or leave it out."),
        )


def _staged(path: Path) -> StagedFile:
    if not path.is_file():
        raise UsageError(_("{path} is not a file.").format(path=path), _("Leave it out."))
    with path.open("rb") as file:
        info = os.fstat(file.fileno())
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return StagedFile(path, info.st_size, digest, info.st_mtime_ns)


def check_unchanged(name: str, file: StagedFile) -> None:
    """Raise UsageError if a file has changed since its digest was computed."""
    info = file.path.stat()
    if (info.st_size, info.st_mtime_ns) != (file.size, file.modified):
        raise UsageError(
            _("{name} has changed while it was read.").format(name=name[:200]),
            _("Wait until the file is complete, and put it again."),
        )


def _arrays(value: object) -> dict[str, Any] | None:
    """Return NumPy arrays by name, a single array by the empty name; None for another value."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    if isinstance(value, numpy.ndarray):
        return {"": value}
    if (
        isinstance(value, dict)
        and value
        and all(isinstance(item, numpy.ndarray) for item in value.values())
    ):
        return value
    return None


def _stage_arrays(arrays: Mapping[str, Any], folder: Path) -> StagedContent:
    numpy = sys.modules["numpy"]
    for name, array in arrays.items():
        if not isinstance(name, str) or "/" in name or name.startswith("."):
            raise UsageError(
                _("{name!r:.60} is not a name for an array.").format(name=name),
                _("Use texts such as x_train as the keys."),
            )
        if array.dtype.hasobject or isinstance(array, numpy.ma.MaskedArray):
            raise UsageError(
                _("The array {name} contains Python objects or a mask.")
                .format(name=name)
                .replace("  ", " "),
                _("Convert it, for example with .astype(float) or .filled()."),
            )
    single = "" in arrays
    file = "data.npy" if single else "data.npz"
    path = folder / file
    if single:
        numpy.save(path, numpy.asarray(arrays[""]), allow_pickle=False)
    else:
        with path.open("wb") as target:
            numpy.savez(target, **{name: numpy.asarray(array) for name, array in arrays.items()})
    schema = tuple((name, f"{a.dtype} {a.shape}") for name, a in arrays.items())
    first = next(iter(arrays.values()))
    return StagedContent(
        "numpy",
        {file: _staged(path)},
        file=file,
        rows=len(first) if single and first.ndim else None,
        schema=schema[:SCHEMA_LIMIT],
        sample=_array_sample(first) if single else Sample(),
    )


def _array_sample(array: Any) -> Sample:
    if array.ndim not in (1, 2) or array.dtype.names:
        return Sample()
    table = array[:SAMPLE_ROWS].reshape(min(len(array), SAMPLE_ROWS), -1)
    shown = table[:, :SAMPLE_COLUMNS]
    return Sample(
        tuple(str(number) for number in range(shown.shape[1])),
        tuple(tuple(sample_cell(value) for value in row) for row in shown.tolist()),
        table.shape[1] - shown.shape[1],
    )


def _table_sample(table: Any) -> Sample:
    head = table.slice(0, SAMPLE_ROWS)
    shown = head.select(list(range(min(table.num_columns, SAMPLE_COLUMNS))))
    columns = [[sample_cell(value) for value in column.to_pylist()] for column in shown.columns]
    return Sample(
        tuple(name[:CELL_LIMIT] for name in shown.column_names),
        tuple(zip(*columns, strict=True)) if columns else (),
        table.num_columns - shown.num_columns,
    )


def sample_cell(value: Any) -> str:
    """Return one value of a sample as a short text."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        return f"{value[:16].hex()}{'…' if len(value) > 16 else ''}"
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= CELL_LIMIT else text[: CELL_LIMIT - 1] + "…"


def _repeats(types: Any, kind: Any) -> bool:
    """Return whether a column of this type is worth a dictionary: text and categories."""
    tests = (types.is_string, types.is_large_string, types.is_binary, types.is_dictionary)
    return any(test(kind) for test in tests)


def _reason(error: BaseException) -> str:
    words = "; ".join(str(part) for part in error.args) or type(error).__name__
    return " ".join(words.split())[:300].rstrip(".")
