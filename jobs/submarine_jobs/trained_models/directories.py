"""Publish a model as a directory that appears with one rename, complete with its manifest.

::

    digits/7/                         the files of the model, as the program wrote them
    digits/7/submarine-model.json     origin of the model, path, size and SHA-256 of each file
    digits/_aliases/prod.json         the version of an alias, replaced by one rename
    digits/.submarine-new-7-HOST-PID-RANDOM/   a version that is not complete yet
    digits/.submarine-old-7/          the previous content, while it is replaced

A version is first written beside its final place, the manifest as the last file. A replacement
needs two renames: the old directory to ``.submarine-old-7``, the new one to ``7``. A reader that
finds no ``7`` in between reads the old directory (``directories_of``); after an interruption the
next publication continues from any of these states.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from submarine_runtime.publication import MODEL_FORMAT, MODEL_MANIFEST, new_manifest
from submarine_runtime.snapshots import GRACE, put_hashed
from submarine_runtime.storage import NotFoundError, Store, StoreError, retry
from submarine_runtime.translation import _

#: Directory of the aliases of a model, beside its versions; TensorFlow Serving ignores the name.
ALIASES = "_aliases"
_NEW, _OLD = ".submarine-new-", ".submarine-old-"
#: Seconds after which a draft of another machine is assumed to be abandoned.
_ABANDONED = 86400.0
#: All users may read what is published.
_MODE = 0o755


class PublicationError(Exception):
    """Nothing was published; one sentence."""


class ModelDraft:
    """A version that is written beside its final place and not published yet.

    Parameters
    ----------
    store
        New files and directories are made readable for all users.
    target
        Final path of the directory.
    """

    def __init__(self, store: Store, target: str) -> None:
        self._store = store
        self._target = target.rstrip("/")
        self._parent, _slash, self._name = self._target.rpartition("/")
        store.modes[self._parent] = _MODE
        unique = f"{_prefix(self._name)}{os.getpid()}-{os.urandom(4).hex()}"
        self._place = f"{self._parent}/{unique}"
        self._files: list[dict[str, Any]] = []

    def add(self, path: str, size: int, blocks: Callable[[], Iterable[bytes]]) -> str:
        """Write one file and return its SHA-256."""
        sha256 = put_hashed(self._store, f"{self._place}/{path}", size, blocks)
        self._files.append({"path": path, "size": size, "sha256": sha256})
        return sha256

    def publish(self, origin: Mapping[str, Any], *, replace: bool = False) -> dict[str, Any]:
        """Write the manifest, move the directory to its final place, and return the manifest.

        Raises
        ------
        PublicationError
            If the version exists and ``replace`` is not given, or what exists is not a version.
        StoreError
            If the file system fails; the previous content is still readable.
        """
        manifest = new_manifest(origin, self._files)
        data = json.dumps(manifest, indent=1).encode()
        self._try(lambda: self._store.publish(f"{self._place}/{MODEL_MANIFEST}", data))
        old = directories_of(self._target)[1]
        self._make_way(old, replace)
        self._appear(data)
        self._try(lambda: self._store.delete(old, recursive=True))
        return manifest

    def _make_way(self, old: str, replace: bool) -> None:
        """Move an existing version aside, unless an interrupted publication has done that."""
        store, target = self._store, self._target
        if self._try(lambda: store.exists(target)):
            is_version = self._try(lambda: store.read(f"{target}/{MODEL_MANIFEST}")) is not None
            if not is_version and self._try(lambda: store.entries(target)):
                raise PublicationError(
                    _("{target} exists and is not a published model: it has no {manifest}.").format(
                        target=target, manifest=MODEL_MANIFEST
                    )
                )
            if not replace:
                raise PublicationError(_("{target} exists already.").format(target=target))
            self._try(lambda: store.delete(old, recursive=True))
            self._try(lambda: _move(store, target, old))
        elif not replace and self._try(lambda: store.exists(old)):
            raise PublicationError(_("{target} exists already.").format(target=target))

    def _appear(self, data: bytes) -> None:
        store, target = self._store, self._target
        self._try(lambda: _move(store, self._place, target))
        # A file system that moves a directory into an existing one (a gateway) is noticed here.
        if self._try(lambda: store.read(f"{target}/{MODEL_MANIFEST}")) != data:
            raise PublicationError(
                _("Another publication has created {target} at the same time.").format(
                    target=target
                )
            )

    def delete(self) -> None:
        """Delete the draft."""
        try:
            self._store.delete(self._place, recursive=True)
        except StoreError:
            pass  # Readers skip the name, and a later publication removes it.

    def tidy(self) -> None:
        """Delete what interrupted publications of this version left, if it is complete itself."""
        self.remove_abandoned()
        if self._store.exists(f"{self._target}/{MODEL_MANIFEST}"):
            self._store.delete(directories_of(self._target)[1], recursive=True)

    def remove_abandoned(self) -> None:
        """Delete drafts of ended processes of this machine, and those older than a day."""
        here = _prefix(self._name)
        for entry in self._store.entries(self._parent):
            if not entry.name.startswith(f"{_NEW}{self._name}-"):
                continue
            process = entry.name[len(here) :].partition("-")[0]
            ended = entry.name.startswith(here) and process.isdigit() and not _runs(int(process))
            if ended or time.time() - entry.modified > _ABANDONED:
                self._store.delete(f"{self._parent}/{entry.name}", recursive=True)

    @staticmethod
    def _try(action: Callable[[], Any]) -> Any:
        return retry(action, time.monotonic() + GRACE)


def directories_of(target: str) -> tuple[str, str]:
    """Return the directories with the content of a version, in the order in which to read them."""
    parent, _slash, name = target.rstrip("/").rpartition("/")
    return f"{parent}/{name}", f"{parent}/{_OLD}{name}"


def published_manifest(store: Store, target: str) -> tuple[str, dict[str, Any]] | None:
    """Return directory and manifest of a published version; None if there is none.

    Raises
    ------
    PublicationError
        If the manifest is invalid.
    """
    for directory in directories_of(target) * 2:  # It may be replaced between two reads.
        data = store.read(f"{directory}/{MODEL_MANIFEST}")
        if data is None:
            continue
        try:
            manifest = json.loads(data)
            if manifest["format"] != MODEL_FORMAT:
                raise ValueError(f"format {manifest['format']!r}")
            for file in manifest["files"]:
                file["path"], file["size"], file["sha256"]
        except (ValueError, KeyError, TypeError, RecursionError) as exc:
            raise PublicationError(
                _("{directory}/{manifest} is not a manifest of a model: {error!r}.").format(
                    directory=directory, manifest=MODEL_MANIFEST, error=exc
                )
            ) from exc
        return directory, manifest
    return None


def alias_content(alias: str, version: str, manifest: Mapping[str, Any]) -> bytes:
    """Return the file of an alias that names a version."""
    value = {"alias": alias, "version": version, "digest": manifest["digest"], "time": time.time()}
    return json.dumps(value, indent=1).encode()


def switch_alias(store: Store, target: str, alias: str, manifest: Mapping[str, Any]) -> None:
    """Let an alias of a model name this version, by one rename."""
    parent, _slash, name = target.rstrip("/").rpartition("/")
    store.modes[parent] = _MODE
    data = alias_content(alias, name, manifest)
    path = f"{parent}/{ALIASES}/{alias}.json"
    retry(lambda: store.publish(path, data), time.monotonic() + GRACE)


def _prefix(name: str) -> str:
    return f"{_NEW}{name}-{socket.gethostname()}-"


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def _move(store: Store, path: str, to: str) -> None:
    try:
        store.move(path, to)
    except NotFoundError:
        if not store.exists(to):  # Else the reply to an earlier attempt was lost.
            raise
