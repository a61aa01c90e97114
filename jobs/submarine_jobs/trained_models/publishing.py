"""Publish models to HDFS, a local directory or an object store, and read published models.

``directories`` has the layout and the steps on file systems with a rename of
directories, ``object_store`` those on others.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from submarine_jobs.errors import StorageError, UsageError
from submarine_jobs.storage import LocalStorage, Storage, encryption_zone_error
from submarine_jobs.trained_models.directories import (
    ALIASES,
    ModelDraft,
    PublicationError,
    published_manifest,
    switch_alias,
)
from submarine_jobs.trained_models.lineage import read_lineage
from submarine_jobs.trained_models.object_store import ObjectStore
from submarine_jobs.trained_models.source import ModelSource, copy_hashed
from submarine_runtime.snapshots import NAME, digest_of
from submarine_runtime.storage import NotFoundError, Store, StoreError
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.access import JobHandle

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_HADOOP = ("hdfs", "webhdfs", "swebhdfs")
#: Reads of a version that is replaced meanwhile.
_READS = 3


@dataclass(frozen=True)
class Published:
    """Result of a publication.

    Parameters
    ----------
    url
        Where the version is.
    digest
        SHA-256 of the list of files and their digests.
    already
        Whether the same version was there before.
    details
        Further values for ``--json``.
    """

    url: str
    digest: str
    size: int
    count: int
    aliases: tuple[str, ...] = ()
    already: bool = False
    details: Mapping[str, Any] | None = None


def publish_model(
    job: JobHandle,
    source: ModelSource,
    target: str,
    *,
    aliases: Sequence[str] = (),
    overwrite: bool = False,
) -> Published:
    """Publish a model to a directory whose last name is the version, such as ``digits/7``.

    Raises
    ------
    UsageError
        If the target is not possible, or exists and ``overwrite`` is not given.
    StorageError
        If a file system fails; the same call can be repeated.
    """
    try:
        place = _locate(job.directory.storage, target)
        origin = {
            "job": source.job_id,
            "version": source.version,
            "lineage": read_lineage(job, source.version),
        }
        if isinstance(place, ObjectStore):
            manifest, already = place.publish(source, origin, overwrite=overwrite)
            for alias in aliases:
                place.switch_alias(alias, manifest)
            url = target
        else:
            storage, path = place
            if storage.in_encryption_zone(path):
                raise encryption_zone_error(
                    "--to", storage.url(path), _("Name a directory outside of encryption zones.")
                )
            store = storage.open_store(path.rpartition("/")[0] or "/")
            manifest, already = _publish(store, path, source, origin, overwrite)
            for alias in aliases:
                switch_alias(store, path, alias, manifest)
            url = storage.url(path)
    except PublicationError as exc:
        raise UsageError(
            str(exc),
            _("Publish under another name, or replace a published version by --overwrite."),
        ) from exc
    except StoreError as exc:
        raise StorageError(
            _("The model was not published: {error}.").format(error=exc),
            _("Run the command again."),
        ) from exc
    files = manifest["files"]
    size, digest = int(manifest["size"]), str(manifest["digest"])
    return Published(url, digest, size, len(files), tuple(aliases), already)


def _locate(storage: Storage, target: str) -> tuple[Storage, str] | ObjectStore:
    """Return the place of a target; raise UsageError for one that cannot be written."""
    scheme = found[1].lower() if (found := _SCHEME.match(target)) else ""
    for candidate in (storage, *([LocalStorage()] if scheme == "file" else [])):
        path = candidate.path_of(target)
        if path is not None:
            _check_name(target, path)
            return candidate, path
    if not scheme or scheme in _HADOOP:
        raise UsageError(
            _("--to {target} is not in the file system of the job directory, {prefix}.").format(
                target=target[:200], prefix=storage.prefix
            ),
            _("Name a path there, or choose the profile of the other cluster by --profile."),
        )
    _check_name(target, target.partition("://")[2])
    return ObjectStore(target)


def _check_name(target: str, path: str) -> None:
    model, slash, name = path.rstrip("/").rpartition("/")
    if not slash or not model or not NAME.match(name):
        raise UsageError(
            _("--to {target} does not end in a model and a version.").format(target=target[:200]),
            _("Write for example hdfs:///models/digits/7."),
        )


def _publish(
    store: Store, path: str, source: ModelSource, origin: Mapping[str, Any], overwrite: bool
) -> tuple[dict[str, Any], bool]:
    found = published_manifest(store, path)
    draft = ModelDraft(store, path)
    if found is not None and found[0] == path and is_same(found[1], source):
        draft.tidy()
        return found[1], True
    if found is not None and not overwrite:
        raise PublicationError(_("{target} exists already.").format(target=path))
    draft.remove_abandoned()
    try:
        for name, size in source.files.items():
            source.check(name, draft.add(name, size, source.blocks(name)))
        return draft.publish(origin, replace=overwrite), False
    except BaseException:
        draft.delete()
        raise


def is_same(manifest: Mapping[str, Any], source: ModelSource) -> bool:
    """Return whether a manifest describes this model, also without reading its files."""
    if (manifest.get("job"), manifest.get("version")) != (source.job_id, source.version):
        return False
    listed = {str(file["path"]): int(file["size"]) for file in manifest["files"]}
    files = [{"path": path, "sha256": sha256} for path, sha256 in source.digests.items()]
    return listed == dict(source.files) and (
        not files or digest_of(files) == manifest.get("digest")
    )


def download_published(
    storage: Storage, uri: str, target: str | Path, *, alias: str = ""
) -> dict[str, Any]:
    """Copy a published version to this machine, check its digests, and return its manifest.

    A version that is replaced meanwhile is read again: the copy is the old or the new one.

    Parameters
    ----------
    uri
        The version, ``hdfs:///models/digits/7``; with an alias, the model ``hdfs:///models/digits``.
    target
        A new or empty directory.

    Raises
    ------
    UsageError
        If there is no such version or alias, or its files are damaged.
    StorageError
        If the file system fails.
    """
    folder = Path(target)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            _("{folder} exists already.").format(folder=folder), _("Name a new or empty directory.")
        )
    path = storage.path_of(uri)
    if path is None:
        raise UsageError(
            _("{uri} is not in the file system {prefix}.").format(
                uri=uri[:200], prefix=storage.prefix
            )
        )
    store = storage.open_store(path)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        for _number in range(_READS):
            place = _resolve(store, path, alias) if alias else path
            found = published_manifest(store, place)
            if found is None:
                continue
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".submarine-") as scratch:
                if _copy(store, *found, Path(scratch)):
                    folder.mkdir(exist_ok=True)
                    for item in Path(scratch).iterdir():
                        item.rename(folder / item.name)
                    return found[1]
    except StoreError as exc:
        raise StorageError(_("{uri} cannot be read: {error}.").format(uri=uri, error=exc)) from exc
    except PublicationError as exc:
        raise UsageError(str(exc)) from exc
    if found is None:
        raise UsageError(_("There is no published model at {uri}.").format(uri=uri[:200]))
    raise UsageError(
        _("The files of {uri} are not what its manifest lists.").format(uri=uri[:200]),
        _("Publish the model again with --overwrite."),
    )


def published_version(storage: Storage, uri: str, alias: str) -> str:
    """Return the URI of the version that an alias of a model names.

    Raises
    ------
    UsageError
        If there is no such alias, or the model is in another file system.
    StorageError
        If the file system fails.
    """
    path = storage.path_of(uri)
    if path is None:
        raise UsageError(
            _("{uri} is not in the file system {prefix}.").format(
                uri=uri[:200], prefix=storage.prefix
            )
        )
    try:
        return storage.url(_resolve(storage.open_store(path), path, alias))
    except StoreError as exc:
        raise StorageError(_("{uri} cannot be read: {error}.").format(uri=uri, error=exc)) from exc


def _resolve(store: Store, model: str, alias: str) -> str:
    data = store.read(f"{model}/{ALIASES}/{alias}.json") if NAME.match(alias) else None
    if data is None:
        raise UsageError(
            _("{model} has no alias {alias!r}.").format(model=model, alias=alias[:80]),
            _("Publish a version with --alias."),
        )
    try:
        version = str(json.loads(data)["version"])
    except (ValueError, KeyError, TypeError):
        version = ""
    if not NAME.match(version):
        raise UsageError(
            _("The alias {alias!r} of {model} is invalid.").format(model=model, alias=alias[:80]),
            _("Publish a version with --alias."),
        )
    return f"{model}/{version}"


def _copy(store: Store, directory: str, manifest: Mapping[str, Any], folder: Path) -> bool:
    """Copy the files of a manifest; return False if one of them has changed."""
    for file in manifest["files"]:
        place = folder / str(file["path"])
        if not place.resolve().is_relative_to(folder.resolve()):
            raise UsageError(
                _("The manifest names {path!r}, which is outside of the model.").format(
                    path=str(file["path"])[:200]
                )
            )
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            with place.open("wb") as output:
                sha256 = copy_hashed(store.stream(f"{directory}/{file['path']}"), output)
        except NotFoundError:
            return False
        if sha256 != file["sha256"]:
            return False
    return True
