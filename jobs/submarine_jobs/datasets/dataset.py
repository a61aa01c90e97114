"""The descriptor of a dataset: what is stored under a digest, and the name that refers to it.

The descriptor is JSON beside the content. It is read from a directory that others may write, so
every field is checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from submarine_jobs.errors import SubmarineError, UsageError
from submarine_runtime.translation import _

VERSION = 1
#: Limits of the sample and of the schema in a descriptor.
SAMPLE_ROWS, SAMPLE_COLUMNS, CELL_LIMIT, SCHEMA_LIMIT = 10, 20, 80, 2000
#: Maximum size of a descriptor in bytes.
MAX_DESCRIPTOR = 1 << 20

_DATASET_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z")
_DIGEST = re.compile(r"^[0-9a-f]{64}\Z")
_DIRECTORY = re.compile(r"^[A-Za-z0-9][A-Za-z0-9-]{0,79}\Z")


def check_dataset_name(name: str) -> str:
    """Return ``name``; raise UsageError if it cannot name a dataset."""
    if not _DATASET_NAME.match(name):
        raise UsageError(
            _("{name!r} is not the name of a dataset.").format(name=name[:80]),
            _("Use at most 64 letters, digits and _ . -, such as digits-train."),
        )
    return name


@dataclass(frozen=True)
class Sample:
    """The first rows of a dataset as text; limited in rows, columns and characters.

    ``columns_left_out`` is the number of columns that are not in it.
    """

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    columns_left_out: int = 0


@dataclass(frozen=True)
class Dataset:
    """A dataset, as its descriptor describes it.

    Parameters
    ----------
    name
        Name of the dataset; empty: the content has no name.
    digest
        SHA-256 of names, sizes and digests of its files.
    directory
        Name of the directory with its files, below ``content/``.
    file
        Name of its only file, if an input of a job is that file and not the directory.
    source
        ``pandas``, ``arrow``, ``spark``, ``numpy`` or ``files``.
    size, files
        Total bytes and number of files.
    rows
        Number of rows; None if it has none.
    schema
        (column, type) pairs; for arrays (name, dtype and shape).
    created, user
        When the descriptor was written, in epoch seconds, and the user on the cluster.
    uri
        URI of the content for jobs; only ``DatasetStore`` sets it.
    """

    name: str
    digest: str
    directory: str
    source: str
    size: int
    files: int
    created: float
    user: str
    file: str | None = None
    rows: int | None = None
    schema: tuple[tuple[str, str], ...] = ()
    sample: Sample = field(default_factory=Sample)
    uri: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the descriptor as JSON."""
        content = asdict(self)
        content["schema"] = [{"name": name, "type": kind} for name, kind in self.schema]
        del content["uri"]
        return {"version": VERSION, **content}

    def facts(self) -> dict[str, Any]:
        """Return the value of ``--json``: the descriptor with the URI."""
        return {**self.to_json(), "uri": self.uri}

    def named(self, name: str, created: float, user: str) -> Dataset:
        """Return the descriptor of a name for this content."""
        return replace(self, name=name, created=created, user=user)


def parse_descriptor(data: bytes, place: str) -> Dataset:
    """Read a descriptor; ``place`` is its URL, for the message.

    Raises
    ------
    SubmarineError
        If it is malformed or of a later version.
    """
    try:
        content = json.loads(data)
        if content["version"] != VERSION:
            raise ValueError(f"version {content['version']!r:.20}")
        return _checked(content)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SubmarineError(
            _("The descriptor {place} cannot be read: {error}.").format(
                place=place, error=str(error)[:200] or type(error).__name__
            ),
            _("Remove the file, and put the data again."),
        ) from None


def _checked(content: Mapping[str, Any]) -> Dataset:
    name, digest, directory = content["name"], content["digest"], content["directory"]
    if name and not _DATASET_NAME.match(name):
        raise ValueError("an invalid name")
    if not _DIGEST.match(digest) or not _DIRECTORY.match(directory):
        raise ValueError("an invalid digest or directory")
    file = content.get("file")
    if file is not None and (not isinstance(file, str) or "/" in file or file in ("", ".", "..")):
        raise ValueError("an invalid file")
    schema = tuple(
        (_text(item["name"]), _text(item["type"])) for item in content["schema"][:SCHEMA_LIMIT]
    )
    rows = content.get("rows")
    return Dataset(
        name=name,
        digest=digest,
        directory=directory,
        source=_text(content["source"], 20),
        size=_count(content["size"]),
        files=_count(content["files"]),
        created=float(content["created"]),
        user=_text(content["user"]),
        file=file,
        rows=None if rows is None else _count(rows),
        schema=schema,
        sample=_sample(content["sample"]),
    )


def _sample(content: Mapping[str, Any]) -> Sample:
    columns = _texts(content["columns"])
    rows = tuple(_texts(row) for row in content["rows"][:SAMPLE_ROWS])
    if any(len(row) != len(columns) for row in rows):
        raise ValueError("a sample with rows of different lengths")
    return Sample(columns, rows, _count(content["columns_left_out"]))


def _texts(words: Sequence[Any]) -> tuple[str, ...]:
    return tuple(_text(word, 2 * CELL_LIMIT) for word in words[:SAMPLE_COLUMNS])


def _text(value: Any, limit: int = 500) -> str:
    if not isinstance(value, str):
        raise TypeError("a value that is not a text")
    return value[:limit]


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("a value that is not a number")
    return value
