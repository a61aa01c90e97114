"""List and download the saved versions of a model."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from submarine_jobs.errors import UsageError
from submarine_jobs.outputs.files import download_files
from submarine_runtime.protocol import layout
from submarine_runtime.snapshots import NAME, VERSION_FILE
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.access import JobDirectory

MAX_VERSIONS = 1000


@dataclass(frozen=True)
class ModelVersion:
    """One version of a model.

    Parameters
    ----------
    time
        When it was saved, seconds since the epoch.
    size
        Total bytes of all files.
    digest
        SHA-256 of the list of files and their digests; equal models have equal digests.
    count
        Number of files.
    left_out
        Files that were being written and are not part of the version.
    """

    name: str
    time: float
    size: int
    digest: str
    count: int = 0
    left_out: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ModelVersion:
        """Read a ``version.json`` or an agent's answer.

        Raises
        ------
        ValueError
            If the data is invalid.
        """
        try:
            # Convert each field: data from a container may have any type.
            version = cls(
                str(data["name"]),
                float(data["time"]),
                int(data["size"]),
                str(data["digest"]),
                int(data["count"]),
                [str(path) for path in data["left_out"]],
            )
        except (KeyError, TypeError, ValueError, OverflowError) as exc:
            raise ValueError(f"not the description of a version: {exc!r}") from exc
        if not NAME.match(version.name):
            raise ValueError("not the description of a version: it has no proper name")
        return version


def versions(directory: JobDirectory) -> list[ModelVersion]:
    """Return all versions of the model of a job, oldest first."""
    try:
        entries = directory.storage.list_directory(directory.file(layout.MODELS))
    except FileNotFoundError:
        return []
    found = []
    for entry in entries[:MAX_VERSIONS]:
        raw = directory.read_json(f"{layout.MODELS}/{entry.name}/{VERSION_FILE}")
        try:
            if isinstance(raw, dict) and raw.get("name") == entry.name:
                found.append(ModelVersion.from_json(raw))
        except ValueError:
            continue  # a file of another program
    return sorted(found, key=lambda version: (version.time, version.name))


def find_version(directory: JobDirectory, name: str) -> ModelVersion:
    """Return the version of this name; raise UsageError if there is none."""
    saved = versions(directory)
    for version in saved:
        if version.name == name:
            return version
    names = ", ".join(version.name for version in saved[-10:]) or "none"
    raise UsageError(
        _("There is no version {name!r}; there are: {names}.").format(name=name[:80], names=names)
    )


def download_version(directory: JobDirectory, name: str, target: str | Path) -> Path:
    """Copy a version to a directory of this machine and check the digests.

    Raises
    ------
    UsageError
        If there is no such version, or the copy is damaged.
    """
    find_version(directory, name)
    folder = Path(target)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            _("{folder} exists already.").format(folder=folder), _("Name a new or empty directory.")
        )
    download_files(directory, folder, f"{layout.MODELS}/{name}/{layout.MODEL}")
    raw = directory.read_json(f"{layout.MODELS}/{name}/{VERSION_FILE}") or {}
    listed = {str(file["path"]): str(file["sha256"]) for file in raw.get("files") or ()}
    wrong = [path for path, digest in listed.items() if _digest(folder / path) != digest]
    if wrong:
        raise UsageError(
            _("{count} files of version {name} are not what was saved, such as {wrong!r}.").format(
                count=len(wrong), name=name, wrong=wrong[0]
            ),
            _("Download it again. If the error persists, the job directory is damaged."),
        )
    return folder


def _digest(path: Path) -> str:
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
