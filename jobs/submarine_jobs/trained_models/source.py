"""The files of a model in a job directory: of a saved version, or of the final model."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from submarine_jobs.errors import UsageError
from submarine_jobs.outputs import find_version, place_below
from submarine_runtime.protocol import layout
from submarine_runtime.publication import MODEL_MANIFEST
from submarine_runtime.snapshots import VERSION_FILE
from submarine_runtime.storage import Store
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.access import JobHandle


@dataclass(frozen=True)
class ModelSource:
    """The files of one model.

    Parameters
    ----------
    job_id
        The job of the model.
    version
        Name of the saved version; empty: the final model of an ended job.
    store
        The job directory.
    folder
        Directory of the files, relative to the job directory.
    files
        Path below ``folder`` -> bytes.
    digests
        Path -> SHA-256, from the time of the save; empty for a final model.
    """

    job_id: str
    version: str
    store: Store
    folder: str
    files: Mapping[str, int]
    digests: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """``JOB`` or ``JOB@VERSION``."""
        return f"{self.job_id}@{self.version}" if self.version else self.job_id

    def blocks(self, path: str) -> Callable[[], Iterable[bytes]]:
        """Return a function that reads one file from its beginning."""
        return lambda: self.store.stream(f"{self.folder}/{path}", 0, self.files[path])

    def check(self, path: str, sha256: str) -> None:
        """Raise UsageError if a file that was read is not the saved one."""
        if self.digests and self.digests.get(path) != sha256:
            raise UsageError(
                _("{path!r} of {name} is not what was saved.").format(path=path, name=self.name),
                _("The job directory is damaged. Publish another version."),
            )

    def hashes(self) -> Iterator[tuple[str, str]]:
        """Yield path and SHA-256 of each file; read the files whose digests are unknown."""
        for path in self.files:
            known = self.digests.get(path)
            if known is None:
                digest = hashlib.sha256()
                for block in self.blocks(path)():
                    digest.update(block)
                known = digest.hexdigest()
            yield path, known


def model_source(job: JobHandle, version: str = "") -> ModelSource:
    """Return the files of a saved version, or of the final model.

    Raises
    ------
    UsageError
        If there is no such version, the job runs and no version is named, or it left no model.
    """
    directory, folder, digests = job.directory, layout.MODEL, {}
    if version:
        find_version(directory, version)
        place = f"{layout.MODELS}/{version}"
        folder = f"{place}/{layout.MODEL}"
        raw = directory.read_json(f"{place}/{VERSION_FILE}") or {}
        digests = {str(file["path"]): str(file["sha256"]) for file in raw.get("files") or ()}
    elif not job.record().state.ended:
        raise UsageError(
            _("{job} has not ended, so its model may change.").format(job=job.id),
            _("Save a version with `submarine save {job}` and name it: {job}@VERSION.").format(
                job=job.id
            ),
        )
    try:
        files = dict(directory.storage.walk(directory.file(folder)))
    except FileNotFoundError:
        files = {}
    if not files:
        raise UsageError(
            _("{job} left no model.").format(job=job.id),
            _("The program writes it to the directory SUBMARINE_MODEL_DIR."),
        )
    if version and set(files) != set(digests):
        raise UsageError(
            _("Version {version} of {job} does not have the files that were saved.").format(
                version=version, job=job.id
            ),
            _("The job directory is damaged. Use another version."),
        )
    if MODEL_MANIFEST in files:
        raise UsageError(
            _("The model of {job} has a file {manifest}, the name of a manifest.").format(
                job=job.id, manifest=MODEL_MANIFEST
            ),
            _("Let the program write it under another name."),
        )
    store = directory.storage.open_store(directory.path)
    return ModelSource(job.id, version, store, folder, files, digests)


def copy_hashed(blocks: Iterable[bytes], file: BinaryIO) -> str:
    """Write blocks to a file and return their SHA-256."""
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(block)
        file.write(block)
    return digest.hexdigest()


def fetch(source: ModelSource, folder: Path) -> Path:
    """Copy the files to a directory of this machine, and check their digests."""
    for path in source.files:
        place = place_below(folder, path)
        with place.open("wb") as file:
            sha256 = copy_hashed(source.blocks(path)(), file)
        source.check(path, sha256)
    return folder
