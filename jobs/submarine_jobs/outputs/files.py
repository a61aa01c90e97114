"""List and download the output files of a job."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from submarine_jobs.errors import UsageError
from submarine_runtime.protocol import layout
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.access import JobDirectory

#: Directories of the job directory with files that the program wrote.
_PARTS = (
    *(layout.OUTPUTS, layout.MODEL, layout.CHECKPOINTS, layout.TENSORBOARD),
    *(layout.FILES, layout.TASKS),
)


def list_outputs(directory: JobDirectory) -> list[tuple[str, int]]:
    """Return the output files and those of ``--keep``: (path in the job directory, bytes)."""
    found: list[tuple[str, int]] = []
    for part in _PARTS:
        with contextlib.suppress(FileNotFoundError):
            files = directory.storage.walk(directory.file(part))
            found += [(f"{part}/{path}", size) for path, size in files]
    return found


def place_below(folder: Path, path: str) -> Path:
    """Return the path of a job's file in a local directory, whose parents exist then.

    Raises
    ------
    UsageError
        If the name leaves the directory.
    """
    place = folder / path
    if not place.resolve().is_relative_to(folder.resolve()):
        raise UsageError(
            _("The job has a file named {path!r}, which is outside {folder}.").format(
                path=path, folder=folder
            )
        )
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def download_files(directory: JobDirectory, folder: Path, part: str) -> Path:
    """Copy the files below ``part`` to ``folder``; refuse names that leave it."""
    for path, _size in directory.storage.walk(directory.file(part)):
        place = place_below(folder, path)
        directory.storage.download(directory.file(f"{part}/{path}"), place)
    return folder
