"""Copy the chief's snapshots into the checkpoint directory of an evaluator while it runs.

An evaluator reads the chief's checkpoints from its own ``SUBMARINE_CHECKPOINT_DIR``, like from a
shared directory. Files of the evaluator are neither overwritten nor deleted, and copied files are
not part of its own snapshots and outputs.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from contextlib import suppress
from typing import Callable, Iterable, Mapping

from submarine_runtime.files import replace_file
from submarine_runtime.protocol import layout
from submarine_runtime.snapshots import (
    STATE_FILE,
    FileState,
    StoredFiles,
    is_below,
    replace_directory,
    snapshots_of,
    state_of,
)
from submarine_runtime.storage import (
    DamagedError,
    Fetcher,
    NotFoundError,
    Store,
    StoreError,
    make_directories,
)
from submarine_runtime.translation import _

#: Maximum number of seconds between two checks for a new snapshot.
LONGEST_PAUSE = 5.0
#: Number of copies, including deleted ones, that are recognised.
MAX_REMEMBERED = 50_000
#: Files that name the newest checkpoint: they are linked after the files that they name.
STATE_FILES = frozenset(
    {STATE_FILE, "latest", "latest_checkpointed_iteration.txt", "training_metadata.json"}
)


class ChiefCheckpoints:
    """The copies for one attempt of an evaluator; ``start`` starts a thread.

    Parameters
    ----------
    root
        Checkpoint directory of the evaluator.
    chief
        Name of the chief's task.
    interval
        Seconds between two snapshots of the chief; copies of deleted files are kept for this time.
    on_event
        Receives ``(kind, detail)``; called in the thread.
    """

    def __init__(
        self,
        store: Store,
        root: str,
        chief: str,
        interval: float,
        grace: float,
        on_event: Callable[[str, str], None],
    ) -> None:
        self._store = store
        self._root = root
        self._chief = chief
        self._interval = interval
        self._fetching = Fetcher(store, min(grace, 4 * LONGEST_PAUSE), quiet=True)
        self._on_event = on_event
        #: Directory with the link targets, and the list of copies for later attempts.
        self._source, self._list = f"{root}.chief", f"{root}.chief.json"
        self._lock = threading.Lock()
        self._copies: dict[str, FileState] = {}
        self._all_copies: set[FileState] = set()
        self._absent: dict[str, float] = {}
        self._shown: tuple[str, str] | None = None
        self._failing = False
        self._warned: set[str] = set()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="chief-checkpoints", daemon=True)
        self._load()

    def start(self) -> None:
        """Start to copy; call it after the evaluator's own files have been restored."""
        self._thread.start()

    def stop(self) -> None:
        """Stop to copy; a running transfer is abandoned with the process."""
        self._stopped.set()

    def own(self, files: Mapping[str, FileState]) -> dict[str, FileState]:
        """Return ``files`` of the checkpoint directory without the copies."""
        with self._lock:
            return {path: state for path, state in files.items() if state not in self._all_copies}

    def holds(self, path: str) -> bool:
        """Return whether an absolute path is a copy that the evaluator has not changed."""
        with self._lock:
            return state_of(path) in self._all_copies

    def _run(self) -> None:
        pause = min(LONGEST_PAUSE, self._interval / 2)
        while not self._stopped.is_set():
            try:
                self.update(time.monotonic())
                self._failing = False
            except (StoreError, OSError) as exc:
                if not self._failing and not self._stopped.is_set():
                    self._on_event(
                        "warning",
                        _("The chief's checkpoints are not copied: {error}.").format(error=exc),
                    )
                self._failing = True
            self._stopped.wait(pause)

    def update(self, now: float) -> None:
        """Copy the chief's newest snapshot if it is new; remove what the chief has deleted.

        Raises
        ------
        StoreError, OSError
            If the store or the local disk failed; a further call continues.
        """
        newest = self._newest()
        if newest is not None and newest != self._shown:
            for found in snapshots_of(self._store, "", self._chief, layout.CHECKPOINTS):
                with suppress(DamagedError, NotFoundError):  # Try the next one, or again later.
                    replace_directory(self._fetching, self._source, found.files)
                    if not self._stopped.is_set():
                        self._show(found, now)
                        self._shown = newest
                    break
        self._remove(now)

    def _newest(self) -> tuple[str, str] | None:
        """Return attempt and manifest of the newest snapshot, from names alone."""
        role, index = layout.split_task(self._chief)
        directory = f"{layout.SNAPSHOTS}/{role}-{index}"
        attempts = {}
        for entry in self._store.entries(directory):
            number = layout.parse_attempt(entry.name)
            if number is not None:
                attempts[number] = entry.name
        for number in sorted(attempts, reverse=True):
            entries = self._store.entries(f"{directory}/{attempts[number]}")
            names = [entry.name for entry in entries if entry.name.endswith(".json")]
            mine = [name for name in names if name.startswith(f"{layout.CHECKPOINTS}-")]
            if mine:
                return attempts[number], max(mine)
        return None

    def _show(self, found: StoredFiles, now: float) -> None:
        """Link the files of a snapshot into the directory, the state files last."""
        paths = {piece.path for piece in found.files}
        for path in self._copies:
            if path in paths:
                self._absent.pop(path, None)
            else:
                self._absent.setdefault(path, now)
        for top, below in _new_directories(self._root, paths).items():
            self._show_directory(top, below)
        for path in sorted(paths, key=lambda path: (_is_state(path), path)):
            self._show_file(path)
        if len(self._all_copies) > MAX_REMEMBERED:
            with self._lock:
                self._all_copies = set(self._copies.values())
        self._save()

    def _show_directory(self, top: str, paths: Iterable[str]) -> None:
        """Create a new directory in one step: some libraries only list directories."""
        temporary = f"{self._root}.new"
        shutil.rmtree(temporary, ignore_errors=True)
        for path in paths:
            target = os.path.join(temporary, os.path.relpath(path, top))
            make_directories(os.path.dirname(target))
            os.link(self._linked(path), target)
        make_directories(os.path.dirname(os.path.join(self._root, top)))
        with self._lock, suppress(OSError):  # The program has created it: link file by file.
            self._all_copies.update(filter(None, (state_of(self._linked(path)) for path in paths)))
            os.rename(temporary, os.path.join(self._root, top))
        shutil.rmtree(temporary, ignore_errors=True)

    def _show_file(self, path: str) -> None:
        source, target = self._linked(path), os.path.join(self._root, path)
        new, current = state_of(source), state_of(target)
        if new is None or current == new:
            self._note(path, new)
            return
        if current is not None and current != self._copies.get(path):
            self._keep_own(path)
            return
        # Programs and snapshots ignore hidden names.
        directory, name = os.path.split(target)
        temporary = os.path.join(directory, f".{name}.new")
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        try:
            make_directories(directory)
            os.link(source, temporary)
        except (FileExistsError, NotADirectoryError):
            self._keep_own(path)
            return
        with self._lock:
            if state_of(target) == current:
                self._all_copies.add(new)
                os.replace(temporary, target)
                self._copies[path] = new
                return
        os.unlink(temporary)  # The program has written the file in the meantime.

    def _note(self, path: str, copy: FileState | None) -> None:
        if copy is not None:
            with self._lock:
                self._copies[path] = copy
                self._all_copies.add(copy)

    def _linked(self, path: str) -> str:
        return os.path.join(self._source, path)

    def _keep_own(self, path: str) -> None:
        self._copies.pop(path, None)
        if path not in self._warned:
            self._warned.add(path)
            sentence = _(
                "The chief's checkpoint file {path!r} is not copied: the evaluator"
            ).format(path=path[:300])
            self._on_event(
                "warning", _("{sentence} has a file of this name.").format(sentence=sentence)
            )

    def _remove(self, now: float) -> None:
        """Remove copies one interval after the chief deleted the files, unless they are open."""
        due = [path for path, since in self._absent.items() if now - since >= self._interval]
        if not due:
            return
        used = open_files(os.path.realpath(self._root))
        for path in due:
            target = os.path.join(self._root, path)
            if os.path.realpath(target) in used:
                continue
            del self._absent[path]
            copy = self._copies.pop(path, None)
            if copy is None or state_of(target) != copy:
                continue  # The evaluator has replaced it.
            os.unlink(target)
            directory = os.path.dirname(path)
            while directory:
                try:
                    os.rmdir(os.path.join(self._root, directory))
                except OSError:
                    break
                directory = os.path.dirname(directory)
        self._save()

    def _load(self) -> None:
        """Read which files an earlier attempt in this container has copied."""
        try:
            with open(self._list, encoding="utf-8") as file:
                listed = json.load(file)
            copies = {
                str(path): FileState(*state) for path, state in listed.items() if is_below(path)
            }
        except (OSError, ValueError, TypeError, AttributeError):
            return
        self._copies, self._all_copies = copies, set(copies.values())

    def _save(self) -> None:
        replace_file(self._list, json.dumps(self._copies).encode())


def _is_state(path: str) -> bool:
    return path.rpartition("/")[2] in STATE_FILES


def _new_directories(root: str, paths: Iterable[str]) -> dict[str, list[str]]:
    """Return the highest missing directory -> the paths below it."""
    groups: dict[str, list[str]] = {}
    for path in sorted(paths):
        parts = path.split("/")[:-1]
        for depth in range(1, len(parts) + 1):
            directory = "/".join(parts[:depth])
            if not os.path.lexists(os.path.join(root, directory)):
                groups.setdefault(directory, []).append(path)
                break
    return groups


def open_files(root: str) -> set[str]:
    """Return the files below ``root`` that a process of this user has open or mapped."""
    found: set[str] = set()
    below = root.rstrip("/") + "/"
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    path = os.readlink(f"/proc/{pid}/fd/{name}")
                    if path.startswith(below):
                        found.add(path)
        with suppress(OSError), open(f"/proc/{pid}/maps", errors="surrogateescape") as maps:
            for line in maps:
                path = line.rstrip("\n").partition(below)[2]
                if path:
                    found.add(below + path)
    return found
