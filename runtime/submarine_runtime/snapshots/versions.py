"""Save the model directory as a named version while the program runs.

``models/<name>/model/`` and ``models/<name>/version.json``. All files are uploaded to a temporary
directory and appear with one rename, so a version is complete if it exists.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from typing import Any, Callable, Iterable, Iterator, Mapping

from submarine_runtime.files import temporary_name
from submarine_runtime.protocol import layout
from submarine_runtime.snapshots.scan import FileState, is_coherent, is_complete, scan_directory
from submarine_runtime.snapshots.writer import COPY_BYTES, ChangedError
from submarine_runtime.storage import Scratch, Store, StoreError, retry
from submarine_runtime.translation import _

VERSION_FILE = "version.json"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
#: Seconds to wait until the directory no longer changes, between two scans, and for the store.
STABLE_SECONDS = 20.0
GAP = 0.5
GRACE = 60.0
TRIES = 3
MAX_NAMED = 100


class VersionError(Exception):
    """No version was saved; one sentence."""


def check_name(name: str) -> str:
    """Return the name of a version; raise VersionError if it is not a valid file name."""
    if name and not NAME.match(name):
        raise VersionError(
            _(
                "{name!r} is not a valid name for a version: use letters, digits, '.', '_' and "
                "'-', at most 64, beginning with a letter or digit, such as v1."
            ).format(name=name[:80])
        )
    return name


def save_version(store: Store, scratch: Scratch, name: str = "") -> dict[str, Any]:
    """Upload the model directory to ``models/<version>/``.

    Wait for files that the program is writing; files that still change after some seconds are left
    out and listed in ``left_out``.

    Parameters
    ----------
    name
        Name of the version; empty: the first free one of ``v1``, ``v2`` ...

    Returns
    -------
    dict
        ``name time size digest count left_out`` (the first of them); ``digest`` is the SHA-256 of
        the list of files with their digests, which is in ``version.json``.

    Raises
    ------
    VersionError
        If the name is invalid or taken, or there is no model yet.
    StoreError
        If the store fails for longer than a minute.
    """
    check_name(name)
    if name:
        retry(lambda: _check_free(store, name), time.monotonic() + GRACE)
    root = scratch.outputs[layout.MODEL]
    draft = VersionDraft(store)
    uploaded: dict[tuple[str, FileState], dict[str, Any]] = {}
    try:
        for attempt in range(TRIES):
            files, left_out = _stable_files(root)
            changed = _upload(draft, root, files, uploaded)
            if not changed or attempt == TRIES - 1:
                break
        whole = [uploaded[item] for item in sorted(files.items()) if item not in changed]
        if not whole:
            raise VersionError(
                _(
                    "There is no complete model yet: the program has written no whole file to "
                    "SUBMARINE_MODEL_DIR."
                )
            )
        left_out += [path for path, _ in changed]
        return draft.publish(name, whole, sorted(left_out))
    except BaseException:
        draft.delete()
        raise


def _stable_files(root: str) -> tuple[dict[str, FileState], list[str]]:
    """Return the files once they no longer change, and those that still change."""
    deadline = time.monotonic() + STABLE_SECONDS
    try:
        before = scan_directory(root)
        while True:
            time.sleep(GAP)
            files = scan_directory(root)
            whole = {
                path: state
                for path, state in files.items()
                if before.get(path) == state and is_complete(os.path.join(root, path), state.size)
            }
            if len(whole) == len(files) and is_coherent(root, whole):
                return whole, []
            if time.monotonic() > deadline:
                return whole, [path for path in files if path not in whole]
            before = files
    except OSError as exc:
        raise VersionError(
            _("The model directory cannot be read: {strerror}.").format(strerror=exc.strerror)
        ) from exc


def _upload(
    draft: VersionDraft,
    root: str,
    files: Mapping[str, FileState],
    uploaded: dict[tuple[str, FileState], dict[str, Any]],
) -> list[tuple[str, FileState]]:
    """Upload missing files; return those that changed before the upload was complete."""
    for item in files.items():
        if item not in uploaded:
            path, state = item
            try:
                uploaded[item] = draft.add(path, state.size, lambda: _blocks(root, *item))  # noqa: B023
            except ChangedError:
                break
    now = scan_directory(root)
    return [item for item in files.items() if now.get(item[0]) != item[1] or item not in uploaded]


def _blocks(root: str, path: str, state: FileState) -> Iterator[bytes]:
    left = state.size
    try:
        with open(os.path.join(root, path), "rb") as file:
            while left > 0:
                block = file.read(min(COPY_BYTES, left))
                if not block:
                    raise ChangedError(path)
                left -= len(block)
                yield block
    except OSError as exc:
        raise ChangedError(path) from exc


def put_hashed(store: Store, target: str, size: int, blocks: Callable[[], Iterable[bytes]]) -> str:
    """Write one file, with retries, and return its SHA-256."""
    digest = hashlib.sha256()

    def hashed() -> Iterator[bytes]:
        nonlocal digest
        digest = hashlib.sha256()
        for block in blocks():
            digest.update(block)
            yield block

    retry(lambda: store.put(target, hashed(), size), time.monotonic() + GRACE)
    return digest.hexdigest()


def digest_of(files: Iterable[Mapping[str, Any]]) -> str:
    """Return the SHA-256 of a list of files with their digests; equal models have equal ones."""
    listed = sorted(files, key=lambda file: str(file["path"]))
    lines = "".join(f"{file['sha256']}  {file['path']}\n" for file in listed)
    return hashlib.sha256(lines.encode()).hexdigest()


class VersionDraft:
    """A version that is not published yet."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._place = temporary_name(f"{layout.MODELS}/version")
        self._added: set[str] = set()

    def add(self, path: str, size: int, blocks: Callable[[], Iterable[bytes]]) -> dict[str, Any]:
        """Upload one file; return its entry for ``publish``."""
        self._added.add(path)
        target = f"{self._place}/{layout.MODEL}/{path}"
        return {"path": path, "size": size, "sha256": put_hashed(self._store, target, size, blocks)}

    def publish(
        self, name: str, files: list[dict[str, Any]], left_out: list[str], **more: Any
    ) -> dict[str, Any]:
        """Publish the version under ``name``, or the first free one; return its description."""
        listed = sorted(files, key=lambda file: str(file["path"]))
        version = {
            "name": name,
            "time": time.time(),
            "size": sum(file["size"] for file in listed),
            "count": len(listed),
            "digest": digest_of(listed),
            "files": listed,
            "left_out": left_out,
            **more,
        }

        def appear() -> None:
            target = f"{layout.MODELS}/{version['name']}"
            if version["name"] and self._store.exists(target):
                if self._store.read(f"{target}/{VERSION_FILE}") == json_of(version):
                    return  # The reply to an earlier attempt was lost.
                if name:
                    _check_free(self._store, name)
            version["name"] = name or _free_name(self._store)
            self._store.publish(f"{self._place}/{VERSION_FILE}", json_of(version))
            self._store.move(self._place, f"{layout.MODELS}/{version['name']}")

        for path in self._added.difference(str(file["path"]) for file in listed):
            self._store.delete(f"{self._place}/{layout.MODEL}/{path}")
        retry(appear, time.monotonic() + GRACE)
        # The answer must fit on one line of the link, however many files there are.
        left = left_out[:MAX_NAMED]
        return {**{k: v for k, v in version.items() if k != "files"}, "left_out": left}

    def delete(self) -> None:
        """Delete the draft."""
        try:
            self._store.delete(self._place, recursive=True)
        except StoreError:
            pass  # Readers skip the name.


def json_of(version: Mapping[str, Any]) -> bytes:
    """Return the content of ``version.json``."""
    return json.dumps(version, indent=1).encode()


def _free_name(store: Store) -> str:
    taken = {entry.name for entry in store.entries(layout.MODELS)}
    return next(f"v{n}" for n in range(1, len(taken) + 2) if f"v{n}" not in taken)


def _check_free(store: Store, name: str) -> None:
    if store.exists(f"{layout.MODELS}/{name}"):
        raise VersionError(
            _("Version {name} exists already; choose another name, or none.").format(name=name)
        )
