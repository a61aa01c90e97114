"""Upload the environment of a job to the cluster, once per content.

The cache in the job root contains one archive per content digest. An index on this machine maps an
unchanged environment to its digest, so that a later submit only reads directories.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from submarine_jobs import concurrency
from submarine_jobs.config import make_private
from submarine_jobs.environments.archive import content_digest, write_archive
from submarine_jobs.environments.conda import (
    conda_fingerprint,
    conda_pack,
    in_conda,
    pack_conda,
)
from submarine_jobs.environments.inventory import (
    EnvironmentFile,
    current_layout,
    fingerprint,
    kernel_items,
)
from submarine_jobs.errors import UsageError
from submarine_jobs.model import PythonEnv
from submarine_jobs.storage import Storage
from submarine_runtime.files import replace_file
from submarine_runtime.translation import _

#: Called with the step (``reading``, ``packing``, ``uploading``), the bytes so far and the total;
#: a total of 0 is unknown.
Progress = Callable[[str, int, int], None]
_INDEX = "environments.json"
#: Prefix of archives in the cache, and suffix of the file with the time of the last use.
PREFIX, USED = "python-env-", ".used"
#: Seconds without a use after which an archive is removed, and between two checks for that.
UNUSED_AFTER, CHECK_EVERY = 30 * 86400.0, 86400.0
#: Maximum number of archives to remove at once.
MAX_REMOVED = 20
_CHECKED = "environments.looked"


@dataclass(frozen=True)
class ProvidedArchive:
    """An archive on the cluster.

    Parameters
    ----------
    url
        Its URL.
    digest
        SHA-256 of its content; empty for an archive of the user.
    uploaded
        Bytes that this call has uploaded; 0 if the archive existed.
    """

    url: str
    digest: str = ""
    uploaded: int = 0


def provide_archive(
    env: PythonEnv,
    storage: Storage,
    cache: str,
    state_dir: Path,
    progress: Progress = lambda what, done, total: None,
) -> ProvidedArchive | None:
    """Return the archive of ``env`` on the cluster; None if the containers need none.

    Parameters
    ----------
    storage, cache
        The file system of the job root, and its directory that all jobs share.
    state_dir
        Host-local directory for the index and for temporary archives.
    progress
        Called often, during an upload in another thread; not called if nothing is packed.

    Raises
    ------
    UsageError
        If the archive does not exist, or the environment cannot be packed.
    """
    if env.kind == "archive":
        return _own_archive(env.value, storage, cache, progress)
    if env.kind != "auto":
        return None
    make_private(state_dir)
    # Of two concurrent submissions, the second uses the archive of the first.
    with concurrency.file_lock(state_dir / f"{_INDEX}.lock"):
        return _own(storage, cache, state_dir, progress)


def _own(storage: Storage, cache: str, state_dir: Path, progress: Progress) -> ProvidedArchive:
    conda = in_conda()
    items = [] if conda else kernel_items()
    mark = conda_fingerprint() if conda else fingerprint(items)
    index = _read_index(state_dir)
    known = index.get(sys.prefix) or {}
    digest = str(known.get("digest") or "") if known.get("fingerprint") == mark else ""
    if not digest:
        digest = (
            mark
            if conda
            else content_digest(items, current_layout(), _bytes_progress(progress, "reading"))
        )
    path = f"{cache}/{PREFIX}{digest[:32]}.tar.gz"
    record_use(storage, path)
    uploaded = 0
    if storage.stat(path) is None:
        uploaded = _pack_and_upload(storage, path, items, state_dir, progress)
    _write_index(state_dir, {**index, sys.prefix: {"fingerprint": mark, "digest": digest}})
    return ProvidedArchive(storage.url(path), digest, uploaded)


def record_use(storage: Storage, path: str) -> None:
    """Record the use of an archive in a file beside it, before the archive is accessed.

    The archive keeps its modification time: YARN rejects one that changed after the submit.
    """
    storage.publish(path + USED, b"{}")


def remove_unused(
    storage: Storage, cache: str, state_dir: Path, in_use: Callable[[], Collection[str] | None]
) -> list[str]:
    """Remove archives that no job has used for 30 days; return their names.

    Runs at most once a day on this machine. An archive without a record of its use gets one and is
    checked again after 30 days.

    Parameters
    ----------
    in_use
        Returns the names of the archives of unfinished jobs; None if unknown. Called only before an
        archive is removed.
    """
    checked = (
        state_dir / f"{_CHECKED}-{hashlib.sha256(storage.url(cache).encode()).hexdigest()[:16]}"
    )
    with suppress(OSError):
        if 0 <= time.time() - checked.stat().st_mtime < CHECK_EVERY:
            return []
    make_private(state_dir)
    checked.touch()
    storage.publish(f"{cache}/{_CHECKED}", b"{}")
    entries = {entry.name: entry for entry in storage.list_directory(cache)}
    now = entries[_CHECKED].modified  # by the clock of the file system
    archives = [name for name in entries if name.startswith(PREFIX) and not name.endswith(USED)]
    unused = []
    for name in archives:
        if (used := entries.get(name + USED)) is None:
            record_use(storage, f"{cache}/{name}")
        elif now - used.modified > UNUSED_AFTER:
            unused.append(name)
    kept = in_use() if unused else None
    removed = [] if kept is None else [name for name in unused if name not in kept][:MAX_REMOVED]
    for name in list(removed):
        used = storage.stat(f"{cache}/{name}{USED}")
        if used is not None and used.modified != entries[name + USED].modified:
            removed.remove(name)  # a job that is being submitted uses it
            continue
        storage.delete(f"{cache}/{name}")
        storage.delete(f"{cache}/{name}{USED}")
    return removed


def _pack_and_upload(
    storage: Storage, path: str, items: list[EnvironmentFile], state_dir: Path, progress: Progress
) -> int:
    descriptor, name = tempfile.mkstemp(".tar.gz", "python-env-", state_dir)
    os.close(descriptor)
    archive = Path(name)
    try:
        if items:
            write_archive(items, current_layout(), archive, _bytes_progress(progress, "packing"))
        else:
            progress("packing", 0, 0)
            pack_conda(archive)
        return _upload(storage, archive, path, progress)
    except OSError as exc:
        raise UsageError(
            _("This kernel's environment could not be packed: {error}: {filename}.").format(
                error=exc.strerror, filename=exc.filename
            )
        ) from exc
    finally:
        archive.unlink(missing_ok=True)


def _upload(storage: Storage, archive: Path, path: str, progress: Progress) -> int:
    size = archive.stat().st_size
    progress("uploading", 0, size)
    storage.make_directory(posixpath.dirname(path))
    storage.upload(archive, path, lambda done: progress("uploading", done, size))
    progress("uploading", size, size)
    return size


def _bytes_progress(progress: Progress, what: str) -> Callable[[int, int], None]:
    return lambda done, total: progress(what, done, total)


def check_env(env: PythonEnv, storage: Storage) -> None:
    """Reject an environment that ``provide_archive`` could not provide, without packing it.

    Raises
    ------
    UsageError
        If the archive is not there, or conda-pack is missing.
    """
    if env.kind == "archive":
        _source_of(env.value, storage)
    elif env.kind == "auto" and in_conda():
        conda_pack()


def _source_of(uri: str, storage: Storage) -> Path | None:
    """Return the archive's file on this machine; None for a file on the cluster."""
    parts = urlsplit(uri)
    if parts.scheme not in ("", "file"):
        path = storage.path_of(uri)
        if path is not None and storage.stat(path) is None:
            raise UsageError(
                _("--python-env archive:{uri}: there is no such file.").format(uri=uri),
                _("Check the address."),
            )
        return None
    source = Path(parts.path).expanduser()
    if not source.is_file():
        raise UsageError(
            _("--python-env archive:{uri}: there is no such file on this machine.").format(uri=uri),
            _("Check the path, or write hdfs:// for a file on the cluster."),
        )
    return source


def _own_archive(uri: str, storage: Storage, cache: str, progress: Progress) -> ProvidedArchive:
    """Return the archive of the user, which is on the cluster or a file of this machine."""
    source = _source_of(uri, storage)
    if source is None:
        return ProvidedArchive(uri)
    with source.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    suffix = ".tar.gz" if source.name.endswith((".tar.gz", ".tgz")) else source.suffix
    path = f"{cache}/{PREFIX}{digest[:32]}{suffix}"
    record_use(storage, path)
    if storage.stat(path) is not None:
        return ProvidedArchive(storage.url(path), digest)
    return ProvidedArchive(storage.url(path), digest, _upload(storage, source, path, progress))


def _read_index(state_dir: Path) -> Mapping[str, Any]:
    with suppress(OSError, ValueError):
        index = json.loads((state_dir / _INDEX).read_text())
        if isinstance(index, dict):
            return index
    return {}


def _write_index(state_dir: Path, index: Mapping[str, Any]) -> None:
    replace_file(state_dir / _INDEX, json.dumps(index).encode())
