"""Saves the model directory as it stands, while the program goes on, as a named version.

``models/<name>/model/`` and ``models/<name>/version.json``. All of it is uploaded aside and appears
with one rename, so a version is whole or not there. Does not load a model.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from typing import Any, Callable, Iterable, Iterator, Mapping

from submarine_runtime.protocol import layout
from submarine_runtime.snapshots.scan import Seen, is_coherent, is_whole, look
from submarine_runtime.snapshots.writer import COPY_BYTES, ChangedError
from submarine_runtime.storage import Scratch, Store, StoreError, patiently, temporary_name

VERSION_FILE = "version.json"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
#: Seconds to wait for the directory to come to rest, between two looks, and for the store.
REST_SECONDS = 20.0
GAP = 0.5
GRACE = 60.0
TRIES = 3
MOST_NAMED = 100


class VersionError(Exception):
    """No version was saved; one sentence."""


def check_name(name: str) -> str:
    """The name of a version, as given; raises VersionError for one that is no file's name."""
    if name and not NAME.match(name):
        raise VersionError(
            f"{name[:80]!r} is no name for a version: use letters, digits, '.', '_' and '-', at "
            "most 64, beginning with a letter or digit, such as v1."
        )
    return name


def save_version(store: Store, scratch: Scratch, name: str = "") -> dict[str, Any]:
    """Upload the model directory to ``models/<version>/``.

    Files that the program is just writing are waited for; what still changes after some seconds is
    left out, and ``left_out`` names it.

    Parameters
    ----------
    name
        Name of the version; empty: ``v1``, ``v2`` ... whichever is free.

    Returns
    -------
    dict
        ``name time size digest count left_out`` (the first of them); ``digest`` is the SHA-256
        over the list of files with theirs, which ``version.json`` holds.

    Raises
    ------
    VersionError
        If the name is bad or taken, or there is no model yet.
    StoreError
        If the store fails for longer than a minute.
    """
    check_name(name)
    if name:
        patiently(lambda: _check_free(store, name), time.monotonic() + GRACE)
    root = scratch.outputs[layout.MODEL]
    draft = Draft(store)
    uploaded: dict[tuple[str, Seen], dict[str, Any]] = {}
    try:
        for attempt in range(TRIES):
            files, left_out = _at_rest(root)
            changed = _upload(draft, root, files, uploaded)
            if not changed or attempt == TRIES - 1:
                break
        whole = [uploaded[item] for item in sorted(files.items()) if item not in changed]
        if not whole:
            raise VersionError(
                "There is no complete model yet: the program has written no whole file to "
                "SUBMARINE_MODEL_DIR."
            )
        left_out += [path for path, _ in changed]
        return draft.publish(name, whole, sorted(left_out))
    except BaseException:
        draft.drop()
        raise


def _at_rest(root: str) -> tuple[dict[str, Seen], list[str]]:
    """The files once nothing changes any more, and those that do not come to rest."""
    deadline = time.monotonic() + REST_SECONDS
    try:
        before = look(root)
        while True:
            time.sleep(GAP)
            files = look(root)
            whole = {
                path: seen
                for path, seen in files.items()
                if before.get(path) == seen and is_whole(os.path.join(root, path), seen.size)
            }
            if len(whole) == len(files) and is_coherent(root, whole):
                return whole, []
            if time.monotonic() > deadline:
                return whole, [path for path in files if path not in whole]
            before = files
    except OSError as exc:
        raise VersionError(f"The model directory cannot be read: {exc.strerror}.") from exc


def _upload(
    draft: Draft,
    root: str,
    files: Mapping[str, Seen],
    uploaded: dict[tuple[str, Seen], dict[str, Any]],
) -> list[tuple[str, Seen]]:
    """Upload what is not up yet; the files that were changed before all of it was."""
    for item in files.items():
        if item not in uploaded:
            path, seen = item
            try:
                uploaded[item] = draft.add(path, seen.size, lambda: _blocks(root, *item))  # noqa: B023
            except ChangedError:
                break
    now = look(root)
    return [item for item in files.items() if now.get(item[0]) != item[1] or item not in uploaded]


def _blocks(root: str, path: str, seen: Seen) -> Iterator[bytes]:
    left = seen.size
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


class Draft:
    """A version that nobody sees yet."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._place = temporary_name(f"{layout.MODELS}/version")
        self._added: set[str] = set()

    def add(self, path: str, size: int, blocks: Callable[[], Iterable[bytes]]) -> dict[str, Any]:
        """Upload one file; its entry for ``publish``."""
        digest = hashlib.sha256()

        def hashed() -> Iterator[bytes]:
            nonlocal digest
            digest = hashlib.sha256()
            for block in blocks():
                digest.update(block)
                yield block

        self._added.add(path)
        target = f"{self._place}/{layout.MODEL}/{path}"
        patiently(lambda: self._store.put(target, hashed(), size), time.monotonic() + GRACE)
        return {"path": path, "size": size, "sha256": digest.hexdigest()}

    def publish(
        self, name: str, files: list[dict[str, Any]], left_out: list[str], **more: Any
    ) -> dict[str, Any]:
        """Let the version appear under ``name``, or the first free one, and describe it."""
        listed = sorted(files, key=lambda file: str(file["path"]))
        lines = "".join(f"{file['sha256']}  {file['path']}\n" for file in listed)
        version = {
            "name": name,
            "time": time.time(),
            "size": sum(file["size"] for file in listed),
            "count": len(listed),
            "digest": hashlib.sha256(lines.encode()).hexdigest(),
            "files": listed,
            "left_out": left_out,
            **more,
        }

        def appear() -> None:
            target = f"{layout.MODELS}/{version['name']}"
            if version["name"] and self._store.exists(target):
                if self._store.read(f"{target}/{VERSION_FILE}") == json_of(version):
                    return  # the reply to an earlier try was lost
                if name:
                    _check_free(self._store, name)
            version["name"] = name or _free_name(self._store)
            self._store.publish(f"{self._place}/{VERSION_FILE}", json_of(version))
            self._store.move(self._place, f"{layout.MODELS}/{version['name']}")

        for path in self._added.difference(str(file["path"]) for file in listed):
            self._store.delete(f"{self._place}/{layout.MODEL}/{path}")
        patiently(appear, time.monotonic() + GRACE)
        # The answer travels in one line of the link, however many files there are.
        left = left_out[:MOST_NAMED]
        return {**{k: v for k, v in version.items() if k != "files"}, "left_out": left}

    def drop(self) -> None:
        """Forget it."""
        try:
            self._store.delete(self._place, recursive=True)
        except StoreError:
            pass  # a name that readers skip


def json_of(version: Mapping[str, Any]) -> bytes:
    """What ``version.json`` holds."""
    return json.dumps(version, indent=1).encode()


def _free_name(store: Store) -> str:
    taken = {entry.name for entry in store.entries(layout.MODELS)}
    return next(f"v{n}" for n in range(1, len(taken) + 2) if f"v{n}" not in taken)


def _check_free(store: Store, name: str) -> None:
    if store.exists(f"{layout.MODELS}/{name}"):
        raise VersionError(f"There is a version {name} already; give another name, or none.")
