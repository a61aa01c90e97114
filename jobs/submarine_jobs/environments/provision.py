"""Provide the environment of a job on the cluster, packed once per content.

The cache in the job root contains the environments by content digest. An index on this machine maps
an unchanged environment to its digest, so that a later submit only reads directories. A changed one
is packed as a delta of the last whole archive; see ``layers``.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from submarine_jobs import concurrency
from submarine_jobs.config import make_private
from submarine_jobs.environments.archive import (
    PackedArchive,
    content_digest,
    file_digests,
    write_archive,
)
from submarine_jobs.environments.cache import EnvironmentCache, cache_key
from submarine_jobs.environments.conda import (
    conda_fingerprint,
    conda_pack,
    conda_prefix,
    in_conda,
    pack_conda,
)
from submarine_jobs.environments.inventory import (
    EnvironmentFile,
    current_layout,
    environment_items,
    fingerprint,
    kernel_items,
    layout_of,
)
from submarine_jobs.environments.layers import Base, FileRecords, difference, file_states
from submarine_jobs.environments.shared import check_shared
from submarine_jobs.environments.sources import EnvironmentSource, source_of, uv_program
from submarine_jobs.errors import UsageError
from submarine_jobs.model import BUILT_KINDS, PackedEnvironment, PythonEnv
from submarine_jobs.storage import Storage
from submarine_jobs.text import one_line
from submarine_runtime.files import replace_file
from submarine_runtime.protocol import EnvironmentArchive, EnvironmentLayers
from submarine_runtime.translation import _

#: Called with the step (``building``, ``reading``, ``packing``, ``uploading``), the bytes so far
#: and the total; a total of 0 is unknown.
Progress = Callable[[str, int, int], None]
_INDEX = "environments.json"


@dataclass(frozen=True)
class ProvidedEnvironment:
    """An environment on the cluster.

    Parameters
    ----------
    files
        Its files.
    digest
        SHA-256 of its content; empty for an archive of the user on the cluster.
    uploaded
        Bytes that this call has uploaded; 0 if the environment existed.
    """

    files: PackedEnvironment
    digest: str = ""
    uploaded: int = 0


def provide_environment(
    env: PythonEnv,
    storage: Storage,
    cache: str,
    state_dir: Path,
    progress: Progress = lambda what, done, total: None,
    *,
    whole: bool = False,
) -> ProvidedEnvironment | None:
    """Return the packed environment ``env`` on the cluster; None if the containers need none.

    Parameters
    ----------
    storage, cache
        The file system of the job root, and its directory that all jobs share.
    state_dir
        Host-local directory for the index and for temporary archives.
    progress
        Called often, during an upload in another thread; not called if nothing is packed.
    whole
        Whether one archive must have all files, because YARN unpacks it.

    Raises
    ------
    UsageError
        If the archive does not exist, or the environment cannot be packed.
    """
    if not env.packed:
        return None
    if env.kind == "shared":
        check_shared(env.value, storage)
        return ProvidedEnvironment(PackedEnvironment(env.value, shared=True))
    provider = _Provider(env, EnvironmentCache(storage, cache), state_dir, progress, whole)
    if env.kind == "archive":
        source = _local_archive(env.value, storage)
        if source is None:
            return ProvidedEnvironment(PackedEnvironment(env.value))
        return provider.archive(source)
    make_private(state_dir)
    # Of two concurrent submissions, the second uses the archive of the first.
    with concurrency.file_lock(state_dir / f"{_INDEX}.lock"):
        if env.kind in BUILT_KINDS:
            return provider.built(source_of(env))
        if env.kind == "conda" or in_conda():
            return provider.conda(_prefix(env))
        return provider.kernel()


def find_provided(
    env: PythonEnv,
    storage: Storage,
    cache: str,
    state_dir: Path,
    progress: Progress = lambda what, done, total: None,
) -> ProvidedEnvironment | None:
    """Return the environment if the cluster has it; None if it has to be packed.

    Nothing is built, packed or uploaded; see ``provide_environment``.
    """
    provider = _Provider(env, EnvironmentCache(storage, cache), state_dir, progress, whole=False)
    if env.kind == "shared":
        check_shared(env.value, storage)
        return ProvidedEnvironment(PackedEnvironment(env.value, shared=True))
    if env.kind == "archive":
        source = _local_archive(env.value, storage)
        if source is None:
            return ProvidedEnvironment(PackedEnvironment(env.value))
        digest = _packed(source).sha256
    elif env.kind in BUILT_KINDS:
        digest = source_of(env).digest()
    elif env.kind == "conda" or in_conda():
        digest = conda_fingerprint(str(_prefix(env)))
    else:
        make_private(state_dir)
        digest = provider.kernel_digest(kernel_items())[0]
    files = EnvironmentCache(storage, cache).find(cache_key(digest))
    return None if files is None else ProvidedEnvironment(files, digest)


def write_environment(env: PythonEnv, target: Path, state_dir: Path, progress: Progress) -> None:
    """Build or pack an environment as one archive on this machine.

    Raises
    ------
    UsageError
        If it cannot be built or packed.
    """

    def report(done: int, total: int) -> None:
        progress("packing", done, total)

    make_private(state_dir)
    try:
        if env.kind in BUILT_KINDS:
            progress("building", 0, 0)
            with _build_directory(state_dir) as directory:
                source_of(env).build(directory)
                layout = layout_of(directory)
                write_archive(environment_items(layout), layout, target, report)
        elif env.kind == "conda" or in_conda():
            progress("packing", 0, 0)
            pack_conda(target, str(_prefix(env)))
        else:
            write_archive(kernel_items(), current_layout(), target, report)
    except OSError as exc:
        raise _not_packed(exc, state_dir) from exc


@contextmanager
def _build_directory(state_dir: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(
        prefix="environment-build-", dir=state_dir, ignore_cleanup_errors=True
    ) as directory:
        yield Path(directory) / "environment"


def _prefix(env: PythonEnv) -> Path:
    """Return the directory of the conda environment."""
    return conda_prefix(env.value) if env.kind == "conda" else Path(sys.prefix)


class _Provider:
    """The steps for one environment; see ``provide_environment``."""

    def __init__(
        self,
        env: PythonEnv,
        cache: EnvironmentCache,
        state_dir: Path,
        progress: Progress,
        whole: bool,
    ) -> None:
        self._text = one_line(env.text, 200)
        self._cache = cache
        self._state_dir = state_dir
        self._progress = progress
        self._whole = whole
        self._uploaded = 0

    def kernel(self) -> ProvidedEnvironment:
        """Provide the environment of this interpreter, in layers."""
        items = kernel_items()
        digest, digests = self.kernel_digest(items)
        found = self._cache.find(cache_key(digest), whole=self._whole)
        if found is None:
            digests = digests or self._digests(sys.prefix, items)
            found = self._pack(sys.prefix, items, digest, digests)
        return ProvidedEnvironment(found, digest, self._uploaded)

    def kernel_digest(self, items: list[EnvironmentFile]) -> tuple[str, dict[str, str] | None]:
        """Return the digest of this interpreter's environment, and those of its files if read."""
        mark, index = fingerprint(items, changes=True), _read_index(self._state_dir)
        known = index.get(sys.prefix) or {}
        if known.get("fingerprint") == mark and known.get("digest"):
            return str(known["digest"]), None
        digests = self._digests(sys.prefix, items)
        digest = content_digest(items, current_layout(), digests)
        index = {**index, sys.prefix: {"fingerprint": mark, "digest": digest}}
        replace_file(self._state_dir / _INDEX, json.dumps(index).encode())
        return digest, digests

    def built(self, source: EnvironmentSource) -> ProvidedEnvironment:
        """Provide an environment that is built from a file, unless the cluster has it."""
        digest = source.digest()
        found = self._cache.find(cache_key(digest), whole=self._whole)
        if found is None:
            self._progress("building", 0, 0)
            with _build_directory(self._state_dir) as target:
                source.build(target)
                items = environment_items(layout_of(target))
                origin = f"{source.kind}:{source.path}"
                found = self._pack(origin, items, digest, self._digests(origin, items))
        return ProvidedEnvironment(found, digest, self._uploaded)

    def conda(self, prefix: Path) -> ProvidedEnvironment:
        """Provide a conda environment, as one archive."""
        digest = conda_fingerprint(str(prefix))
        found = self._cache.find(cache_key(digest), whole=self._whole)
        if found is None:
            self._progress("packing", 0, 0)

            def write(target: Path) -> PackedArchive:
                pack_conda(target, str(prefix))
                return _packed(target)

            only = self._make(digest, write)
            layers = EnvironmentLayers(only, source=self._text)
            found = self._cache.publish(cache_key(digest), layers)
        return ProvidedEnvironment(found, digest, self._uploaded)

    def archive(self, source: Path) -> ProvidedEnvironment:
        """Provide an archive that is a file of this machine."""
        packed = _packed(source)
        key = cache_key(packed.sha256)
        found = self._cache.find(key, whole=self._whole)
        if found is None:
            suffix = ".tar.gz" if source.name.endswith((".tar.gz", ".tgz")) else source.suffix
            only = self._upload(packed.sha256, source, packed, suffix)
            layers = EnvironmentLayers(only, source=self._text)
            found = self._cache.publish(key, layers)
        return ProvidedEnvironment(found, packed.sha256, self._uploaded)

    def _digests(self, origin: str, items: list[EnvironmentFile]) -> dict[str, str]:
        """Return the digests of the files; only files that have changed are read.

        Parameters
        ----------
        origin
            Identifies the environment on this machine.
        """
        records, key = FileRecords(self._state_dir), _identifier(origin)
        known = records.known_digests(key, items)
        try:
            digests = file_digests(items, known, self._step("reading"))
        except OSError as exc:
            raise _not_packed(exc) from exc
        if len(known) != len(digests):
            records.store_digests(key, items, digests)
        return digests

    def _pack(
        self,
        origin: str,
        items: list[EnvironmentFile],
        digest: str,
        digests: Mapping[str, str],
    ) -> PackedEnvironment:
        """Pack and upload a delta where that is possible, else the whole environment."""
        records, key = FileRecords(self._state_dir), _identifier(origin, self._cache.url)
        layout, states = current_layout(), file_states(items, digests)
        base = None if self._whole else records.base(key)
        if base is not None and base.version == layout.version:
            found = difference(base, items, states)
            archive = self._cache.base_archive(cache_key(base.digest)) if found else None
            if found is not None and archive is not None:
                delta = self._make(
                    digest,
                    lambda target: write_archive(
                        found.items, layout, target, self._step("packing"), links=False
                    ),
                    ".delta.tar.gz",
                )
                layers = EnvironmentLayers(archive, delta, found.omitted, self._text)
                return self._cache.publish(cache_key(digest), layers)
        only = self._make(
            digest, lambda target: write_archive(items, layout, target, self._step("packing"))
        )
        layers = EnvironmentLayers(only, source=self._text)
        published = self._cache.publish(cache_key(digest), layers, whole=self._whole)
        if not self._whole and not published.delta:
            records.store_base(key, Base(digest, layout.version, states))
        return published

    def _make(
        self, digest: str, write: Callable[[Path], PackedArchive], suffix: str = ".tar.gz"
    ) -> EnvironmentArchive:
        """Write an archive on this machine, upload it, and remove it here."""
        archive = self._state_dir
        try:
            descriptor, name = tempfile.mkstemp(".tar.gz", "python-env-", self._state_dir)
            os.close(descriptor)
            archive = Path(name)
            packed = write(archive)
        except OSError as exc:
            _unlink(archive)
            raise _not_packed(exc, self._state_dir) from exc
        except BaseException:
            _unlink(archive)
            raise
        try:
            return self._upload(digest, archive, packed, suffix)
        finally:
            _unlink(archive)

    def _upload(
        self, digest: str, source: Path, packed: PackedArchive, suffix: str
    ) -> EnvironmentArchive:
        size = packed.size
        report = self._step("uploading")
        report(0, size)
        name = self._cache.upload(
            cache_key(digest), source, suffix, lambda done: report(done, size)
        )
        report(size, size)
        self._uploaded += size
        return EnvironmentArchive(name, size, packed.sha256)

    def _step(self, what: str) -> Callable[[int, int], None]:
        return lambda done, total: self._progress(what, done, total)


def _identifier(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def _packed(archive: Path) -> PackedArchive:
    with archive.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return PackedArchive(archive.stat().st_size, digest)


def _unlink(archive: Path) -> None:
    if not archive.is_dir():
        archive.unlink(missing_ok=True)


def _not_packed(exc: OSError, directory: Path | None = None) -> UsageError:
    """Return the error for a file that cannot be read, or an archive that cannot be written."""
    if exc.errno == errno.ENOSPC and directory is not None:
        return UsageError(
            _("The disk of {directory} is full: the environment is packed there.").format(
                directory=directory
            ),
            _("Free about half the size of the environment there, and submit again."),
        )
    return UsageError(
        _("The environment could not be packed: {error}: {filename}.").format(
            error=exc.strerror, filename=exc.filename or directory
        )
    )


def check_env(env: PythonEnv, storage: Storage) -> None:
    """Reject an environment that ``provide_environment`` could not provide, without packing it.

    Raises
    ------
    UsageError
        If a file is not there, or conda-pack or uv is missing.
    """
    if env.kind == "archive":
        _local_archive(env.value, storage)
    elif env.kind == "shared":
        check_shared(env.value, storage)
    elif env.kind == "conda" or (env.kind == "auto" and in_conda()):
        if env.kind == "conda":
            conda_prefix(env.value)
        conda_pack()
    elif env.kind in BUILT_KINDS:
        source_of(env).digest()
        uv_program()


def _local_archive(uri: str, storage: Storage) -> Path | None:
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


def _read_index(state_dir: Path) -> Mapping[str, Any]:
    with suppress(OSError, ValueError):
        index = json.loads((state_dir / _INDEX).read_text())
        if isinstance(index, dict):
            return index
    return {}
