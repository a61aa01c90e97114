"""Publish finished files of ``--save-output NAME=URI:stream`` or ``:parts`` while a program runs.

The name of a file is the identity of a part: a part that is published is never published again,
also after a restart of the task on another node. Each part appears by one rename, and then has an
entry in ``_manifest/``. With ``parts`` they appear in the hidden directory, without entries.
"""

from __future__ import annotations

import json
import os
import posixpath
import threading
import time
from typing import Any, Callable, Iterator

from submarine_runtime.agent.outputs.files import OutputFile, find_outputs
from submarine_runtime.files import TEMPORARY_PREFIX, replace_file
from submarine_runtime.protocol import AgentConfig, NamedOutput
from submarine_runtime.publication import (
    MANIFEST,
    MODEL_MANIFEST,
    OWNER,
    SUCCESS,
    Attempt,
    own_path,
    owner_of,
    part_path,
    staging_path,
    walk,
)
from submarine_runtime.snapshots import (
    ChangedError,
    FileReader,
    FileState,
    is_complete,
    scan_directory,
)
from submarine_runtime.storage import Scratch, Store, StoreError
from submarine_runtime.translation import _

#: Seconds between two scans: a finished file is published after two of them.
SCAN_SECONDS = 2.0
#: Longest pause in seconds between two attempts while the file system is not available.
LONGEST_PAUSE = 60.0
#: Seconds that ``stop`` waits for a running upload.
STOP_SECONDS = 30.0


class StreamUploader:
    """The parts of one output of one attempt.

    Parameters
    ----------
    several
        Whether several tasks publish parts.
    on_event
        Receives kind and detail of an event; called in the thread.
    """

    def __init__(
        self,
        config: AgentConfig,
        store: Store,
        output: NamedOutput,
        scratch: Scratch,
        task: str,
        several: bool,
        on_event: Callable[[str, str], None],
    ) -> None:
        self._config, self._store, self._output, self._scratch = config, store, output, scratch
        self._task, self._several, self._on_event = task, several, on_event
        self._root = scratch.saved_output(output.name)
        self._target = output.uri
        if output.parts:
            self._target = staging_path(output.uri, config.record.job_id)
        self._published: dict[str, int] = {}
        self._unlisted: dict[str, dict[str, object]] = {}
        self._before: dict[str, FileState] = {}
        self._warned: set[str] = set()
        self._failing = False
        self._is_running: Callable[[], bool] = lambda: True
        self._stopped = threading.Event()
        self._reader = FileReader(lambda path: os.path.join(self._root, path), self._check)
        self._thread = threading.Thread(target=self._run, name="streaming", daemon=True)

    def prepare(self) -> None:
        """Reserve the target for this job, and write the list of published parts.

        Raises
        ------
        StoreError
            If the file system does not answer, or the target belongs to another job.
        """
        store, target = self._store, self._target
        job = self._config.record.job_id
        if self._output.parts:
            store.make_directory(target)
        elif owner_of(store, target) != job:
            # Another task may reserve it at the same time.
            if any(entry.name != MANIFEST for entry in store.entries(target)):
                raise StoreError(_("{target} is not empty any more").format(target=target))
            store.make_directory(f"{target}/{MANIFEST}")
            content = json.dumps({"job": job}).encode()
            done = store.publish_exclusive(f"{target}/{MANIFEST}/{OWNER}", content)
            owner = job if done else owner_of(store, target)
            if owner != job:
                error = _("another job writes to {target}").format(target=target)
                raise StoreError(error, transient=not owner)
        listed = {path[: -len(".json")] for path in walk(store, f"{target}/{MANIFEST}")}
        for path, size in walk(store, target, MANIFEST).items():
            name = own_path(path, self._task, self._several)
            hidden = posixpath.basename(path).startswith(TEMPORARY_PREFIX)
            if name is not None and path != SUCCESS and not hidden:
                self._published[name] = size
                if path not in listed:  # The task was lost between the two writes.
                    self._unlisted[name] = {"bytes": size}
        lines = "".join(f"{name}\n" for name in sorted(self._published))
        replace_file(self._scratch.published_list(self._output.name), lines.encode())

    def start(self, is_running: Callable[[], bool]) -> None:
        """Start the thread."""
        self._is_running = is_running
        self._thread.start()

    def stop(self) -> None:
        """End the thread; an upload that has not ended is abandoned."""
        self._stopped.set()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join(STOP_SECONDS)

    def files(self) -> dict[str, int]:
        """Return path in the target -> bytes of this task's parts."""
        return {
            part_path(name, self._task, self._several): size
            for name, size in self._published.items()
        }

    def finish(self, attempt: Attempt, missing: Callable[[str], None]) -> str | None:
        """Publish the other parts after the program has succeeded; return an error's sentence."""
        self.stop()
        self._reader = FileReader(lambda path: os.path.join(self._root, path), lambda: None)
        try:
            files = scan_directory(self._root)
            for path, state in files.items():
                if path.split("/")[0] != MANIFEST:
                    attempt(lambda: self._upload(path, state))  # noqa: B023
            attempt(self._list_parts)
            for path, _item in own_files(self._scratch, self._output, missing):
                if path not in self._published:
                    missing(
                        _("--save-output {name}: {path!r} has a name of unfinished files.").format(
                            name=self._output.name, path=path[:300]
                        )
                    )
        except ChangedError as exc:
            error = _("{path!r} was changed while it was saved").format(path=str(exc)[:300])
            return unsaved(self._output, error)
        except (StoreError, OSError, ValueError) as exc:
            return unsaved(self._output, exc)
        return None

    def _check(self) -> None:
        if self._stopped.is_set():
            raise ChangedError(self._root)

    def _run(self) -> None:
        usual = pause = min(SCAN_SECONDS, self._config.sync_interval)
        while not self._stopped.wait(pause):
            failed = self._try_round()
            pause = min(LONGEST_PAUSE, 2 * pause) if failed else usual
            if failed and not self._failing:
                self._on_event("warning", failed)
            elif self._failing and not failed:
                self._on_event("synced", _("Parts are published again."))
            self._failing = bool(failed)

    def _try_round(self) -> str:
        """Return why the round failed; empty if it did not."""
        try:
            self._round()
        except (StoreError, OSError) as exc:
            return unsaved(self._output, exc)
        return ""

    def _round(self) -> None:
        """Publish the files that are complete; see ``snapshots.scan``."""
        before, self._before = self._before, scan_directory(self._root)
        for path, state in sorted(self._before.items()):
            if path in self._published:
                self._check_unchanged(path, state)
            elif before.get(path) == state and path.split("/")[0] != MANIFEST:
                whole = is_complete(os.path.join(self._root, path), state.size)
                # A program that was killed leaves files that no process has open.
                if whole and self._is_running():
                    try:
                        self._upload(path, state)
                    except ChangedError:
                        continue
        self._list_parts()

    def _upload(self, path: str, state: FileState) -> None:
        """Publish one file under its final name."""
        if path in self._published or path == SUCCESS:
            return
        target = part_path(path, self._task, self._several)
        read: list[Any] = []
        blocks = self._reader.blocks([(path, state)], read)
        place = f"{self._target}/{target}"
        if self._output.parts and (there := self._store.stat(place)) and there.size != state.size:
            raise StoreError(_("several tasks have written {path}").format(path=path))
        self._store.put(place, blocks, state.size)
        self._published[path] = state.size
        self._unlisted[path] = {"bytes": state.size, "crc32": read[0].crc}

    def _list_parts(self) -> None:
        """Write the missing entries of the manifest."""
        config = self._config
        if self._output.parts:
            return
        for path, entry in list(self._unlisted.items()):
            target = part_path(path, self._task, self._several)
            run = {"task": self._task, "epoch": config.epoch, "attempt": config.attempt}
            content = {"path": target, **entry, **run, "time": time.time()}
            place = f"{self._output.uri}/{MANIFEST}/{target}.json"
            self._store.publish(place, json.dumps(content).encode())
            del self._unlisted[path]

    def _check_unchanged(self, path: str, state: FileState) -> None:
        if state.size != self._published[path] and path not in self._warned:
            self._warned.add(path)
            self._on_event(
                "warning",
                _(
                    "--save-output {name}: {path!r} was changed after it was published; the "
                    "published part stays as it was."
                ).format(name=self._output.name, path=path[:300]),
            )


def unsaved(output: NamedOutput, error: Any) -> str:
    """Return the sentence on an output that could not be saved."""
    return _("{option} was not saved: {error}.").format(
        option=output.option, error=str(error).rstrip(".")
    )[:1000]


def own_files(
    scratch: Scratch, output: NamedOutput, missing: Callable[[str], None]
) -> Iterator[tuple[str, OutputFile]]:
    """Yield path and source of the program's files of an output; links are left out.

    Parameters
    ----------
    missing
        Called with one sentence for each link and special file.

    Raises
    ------
    ValueError
        If a file cannot be published because of its name; one sentence.
    """
    for item in find_outputs({output.name: scratch.saved_output(output.name)}):
        path = item.path[len(output.name) + 1 :]
        if not item.refusal:
            if path != (MODEL_MANIFEST if output.is_model else SUCCESS):
                yield path, item
        elif item.special:
            missing(item.refusal)
        else:
            raise ValueError(item.refusal)
