"""Synchronize checkpoints, model and TensorBoard files while the program runs.

One thread scans the directories; unchanged directories cause no other operation. The program never
waits for it: while the job directory is not available, files stay on the local disk and are
uploaded later.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Callable, Mapping

from submarine_runtime.agent.sync.directory_sync import DirectorySync, HardLinks
from submarine_runtime.agent.sync.other_tasks import OtherTasksFiles
from submarine_runtime.protocol import AgentConfig, layout
from submarine_runtime.record import TensorBoardClients
from submarine_runtime.snapshots import (
    ChangedError,
    CheckpointPathWriter,
    FileReader,
    FileState,
    PieceWriter,
    SnapshotWriter,
    base_of,
    scan_directory,
    shipped_lengths,
    task_directory,
)
from submarine_runtime.storage import Scratch, Store, StoreError, UnconfirmedError, wait_sentence
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_runtime.agent.sync.chief_checkpoints import ChiefCheckpoints

#: Seconds between two scans after a change.
SCAN_SECONDS = 1.0
FIRST_SCAN = 2.0
#: Seconds between two pieces of TensorBoard files while a client displays them. A file that has not
#: grown costs nothing, any other five operations of the NameNode.
DISPLAY_SECONDS = 2.0
LONGEST_BACKOFF = 15.0
#: Share of the interval that a scan may take, so that the cost of the thread is negligible.
SHARE = 1 / 400
MAX_PAUSE = 120.0
#: Maximum number of the coordinator's orders that wait during an upload.
MAX_ORDERS = 64
OnEvent = Callable[[str, str, "dict[str, object]"], None]
#: A snapshot of more files is reported without names; the coordinator reads its manifest.
MAX_NAMES = 4000


class _StopRequest(Exception):  # noqa: N818 - not an error: the deadline of the last sync
    pass


class SyncThread:
    """The thread of one attempt of one task.

    Parameters
    ----------
    on_event
        Called with ``(kind, detail, data)``: ``snapshot`` for the first complete one (data: part,
        number, files, bytes), ``warning`` once for each outage and ``synced`` at its end. Called in
        the thread.
    chief
        Whether this task's checkpoints are the job's: they go to ``config.checkpoint_path``
        itself, those of other tasks below it.
    tensorboard_clients
        While there are any, TensorBoard files are uploaded every ``DISPLAY_SECONDS`` seconds.
    copies
        Files in the checkpoint directory that are not the task's own: of the chief, in that of an
        evaluator, or of other tasks.
    world
        Number of processes that write checkpoints together; 0: not known.
    report
        Sends a ``snapshot`` line to the coordinator, which then also decides which snapshots are
        deleted (``order``). None: there is no coordinator.
    is_running
        Returns whether the program runs and its end was not requested. Otherwise a file may be
        incomplete although no process has it open.
    streams
        ``agent.program.InputStreams``, whose positions are saved; None: the task has no streams.
    """

    def __init__(
        self,
        store: Store,
        scratch: Scratch,
        config: AgentConfig,
        task: str,
        epoch: int,
        attempt: int,
        on_event: OnEvent,
        *,
        chief: bool = True,
        tensorboard_clients: TensorBoardClients | None = None,
        copies: ChiefCheckpoints | OtherTasksFiles | None = None,
        world: int = 0,
        report: Callable[[dict[str, Any]], None] | None = None,
        is_running: Callable[[], bool] = lambda: True,
        streams: Any = None,
    ) -> None:
        self._report, self._streams = report, streams
        self._orders: deque[Mapping[str, Any]] = deque(maxlen=MAX_ORDERS)
        self._round_wanted = 0
        self._store = store
        self._task = task
        self._wake = threading.Event()
        self._now = (epoch, attempt)
        self._on_event = on_event
        self._interval = max(0.1, config.sync_interval)
        self._roots = scratch.outputs
        directory = layout.attempt_directory(layout.SNAPSHOTS, task, epoch, attempt)
        self._parts = {}
        for part in (layout.CHECKPOINTS, layout.MODEL):
            links = HardLinks(self._roots[part])
            reader = FileReader(links.path_of, self._check)
            writer = SnapshotWriter(store, directory, part, reader)
            writer.world = world
            own = copies.own if copies is not None and part == layout.CHECKPOINTS else dict
            patience = 3 * self._interval
            self._parts[part] = DirectorySync(links, part, writer, patience, own, is_running)
            self._parts[part].time_of = None if streams is None else streams.checkpoint_began
            if part == layout.CHECKPOINTS and config.checkpoint_path:
                base = base_of(config.checkpoint_path, task, chief)
                name = f"{config.record.job_id}-{layout.attempt_name(epoch, attempt)}"
                self._parts[part].mirror = CheckpointPathWriter(store, base, name, reader)
        event_directory = self._roots[layout.TENSORBOARD]
        self._event_files = EventFileSync(store, event_directory, task, self._now, self._check)
        self._tensorboard_clients = tensorboard_clients or TensorBoardClients()
        self._tensorboard_clients.wake = self._wake.set
        self._pruned = epoch == attempt == 1
        self._failing = False
        self._short_pauses = 0
        self._reported = False
        self._deadline: float | None = None
        self._whole = self._outputs_follow = False
        self._done = False
        self._thread = threading.Thread(target=self._run, name="syncing", daemon=True)

    def start(self) -> None:
        """Start the thread; call it after ``restore`` and before the program starts."""
        for part in self._parts.values():
            part.begin()
        self._thread.start()

    def stop(
        self, timeout: float = 30.0, *, whole: bool = True, outputs_follow: bool = False
    ) -> bool:
        """End the thread after a last sync; return False if it was not complete in time.

        Parameters
        ----------
        timeout
            Seconds for the last sync.
        whole
            The program has ended by itself, so its files are complete. False if a signal ended it:
            then only files that were complete before are uploaded.
        outputs_follow
            All outputs are saved right after this: only ``checkpoint_path`` is updated.
        """
        self._whole, self._outputs_follow = whole, outputs_follow
        self._deadline = time.monotonic() + timeout
        self._wake.set()
        if self._thread.ident is not None:
            # A hanging call to the store ends by its own timeout.
            self._thread.join(timeout + SCAN_SECONDS)
        return self._done or self._thread.ident is None

    def order(self, order: Mapping[str, Any]) -> None:
        """Execute a ``snapshot`` or ``keep`` line of the coordinator; from any thread."""
        self._orders.append(order)
        self._wake.set()

    def discard(self) -> None:
        """Delete the pieces of TensorBoard files: ``tensorboard/`` has the whole files now."""
        self._store.delete(task_directory(self._task), recursive=True)

    def _check(self) -> None:
        """End a long upload after the deadline."""
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise _StopRequest

    def _run(self) -> None:
        pause = min(FIRST_SCAN, self._interval)
        due = time.monotonic() + pause
        try:
            while not self._done:
                self._wait_until(due)
                began = time.monotonic()
                if self._execute_orders():
                    due = began
                try:
                    if self._deadline is not None:
                        self._last_round()
                        self._done = True
                    elif began < due:
                        self._ship_growing()
                    else:
                        self._round()
                        # After an upload the program gets at least its duration without one.
                        pause = max(self._pause(), time.monotonic() - began)
                        due = time.monotonic() + pause
                except StoreError as exc:
                    pause = self._handle_failure(str(exc), pause, exc.transient)
                    due = time.monotonic() + pause
                    self._wait_at_end(pause, exc)
                self._check()
        except _StopRequest:
            pass
        except Exception as exc:  # The program continues without snapshots; the job has a warning.
            self._handle_failure(repr(exc), pause, False)
        finally:
            self._store.on_wait("")

    def _wait_at_end(self, pause: float, error: StoreError) -> None:
        """Wait before the last sync is retried, and report the wait."""
        if self._deadline is None:
            return
        left = self._deadline - time.monotonic()
        if error.transient and not isinstance(error, UnconfirmedError):
            self._store.on_wait(wait_sentence(self._store.label, left, error))
        time.sleep(max(0.0, min(pause, left)))

    def _wait_until(self, due: float) -> None:
        """Wait for the next round, or less if a client displays the files and the store works."""
        while self._deadline is None and (left := due - time.monotonic()) > 0:
            urgent = self._tensorboard_clients.present and not self._failing
            self._wake.wait(min(left, DISPLAY_SECONDS) if urgent else left)
            self._wake.clear()
            if urgent or self._orders:
                return

    def _execute_orders(self) -> bool:
        """Execute the coordinator's orders; return whether a round of snapshots is requested."""
        writer = self._parts[layout.CHECKPOINTS].writer
        while self._orders:
            order = self._orders.popleft()
            if order.get("type") == "snapshot":
                self._round_wanted = writer.round = max(writer.round, int(order.get("round") or 0))
                continue
            points = {tuple(point) for point in order.get("points") or ()}
            own = [number for epoch, attempt, number in points if (epoch, attempt) == self._now]
            if writer.hold(own) and order.get("older"):
                self._delete_older({(epoch, attempt) for epoch, attempt, _ in points})
            self._report_kept()
        return bool(self._round_wanted)

    def _report_kept(self, **more: Any) -> None:
        if self._report is not None:
            epoch, attempt = self._now
            line = {"type": "snapshot", "epoch": epoch, "attempt": attempt, **more}
            self._report({**line, "kept": self._parts[layout.CHECKPOINTS].writer.kept})

    def _report_snapshot(self) -> None:
        manifest = self._parts[layout.CHECKPOINTS].writer.newest
        if manifest is None or self._report is None:
            return
        listed = manifest.files if len(manifest.files) <= MAX_NAMES else ()
        self._report_kept(
            number=manifest.number,
            round=manifest.round,
            digests={file.path: file.crc for file in listed},
            steps=manifest.steps if listed else {},
            needs=manifest.needs if listed else {},
            world=manifest.world,
        )

    def _pause(self) -> float:
        """Return the seconds until the next scan: short, but increasing, after changes."""
        parts = self._parts.values()
        self._short_pauses = self._short_pauses + 1 if any(part.busy for part in parts) else 0
        pause = self._interval
        if self._short_pauses:
            pause = min(pause, SCAN_SECONDS * 1.3 ** (self._short_pauses - 1))
        cost = sum(part.scan_seconds for part in parts)
        return max(pause, min(MAX_PAUSE, cost / SHARE))

    def _handle_failure(self, sentence: str, pause: float, transient: bool) -> float:
        if not self._failing:
            self._on_event(
                "warning",
                _("Checkpoints are not synced for now: {sentence}.").format(sentence=sentence),
                {},
            )
        self._failing = True
        longest = LONGEST_BACKOFF if transient else 4 * LONGEST_BACKOFF
        if self._deadline is not None:
            longest = SCAN_SECONDS
        return min(longest, max(SCAN_SECONDS, pause * 1.5)) * random.uniform(0.5, 1.0)  # noqa: S311

    def _round(self) -> None:
        """Scan all directories and upload what is complete."""
        if self._streams is not None:
            self._streams.ship()
        for part in self._parts.values():
            self._sync_part(part)
        if self._round_wanted and not self._parts[layout.CHECKPOINTS].busy:
            self._parts[layout.CHECKPOINTS].writer.answer(self._round_wanted)
            answered, self._round_wanted = self._round_wanted, 0
            self._report_kept(answered=answered)
        self._ship_growing()
        if self._report is None:
            self._prune_older()

    def _sync_part(self, part: DirectorySync) -> None:
        try:
            if part.publish_if_due() is not None:
                self._recovered()
                self._published(part)
                if part.part == layout.CHECKPOINTS:
                    self._report_snapshot()
        except ChangedError:
            pass  # It is still being written: the next scan is soon.
        except OSError as exc:
            if not part.given_up:
                part.given_up = True
                self._on_event(
                    "warning",
                    _("{part} is not synced: {strerror}.").format(
                        part=part.part, strerror=exc.strerror
                    ),
                    {},
                )

    def _last_round(self) -> None:
        """Synchronize a last time, after the end of the program."""
        if self._streams is not None:
            self._streams.ship()
        for part in self._parts.values():
            # A process that the program left behind may still write: keep the last snapshot then.
            before = part.number
            with suppress(ChangedError, OSError):
                part.publish_last(self._whole, self._outputs_follow)
            if part.part == layout.CHECKPOINTS and part.number != before:
                self._report_snapshot()
        if not self._outputs_follow:
            self._ship_growing()

    def _published(self, part: DirectorySync) -> None:
        if self._reported or not part.number:
            return
        self._reported = True
        data: dict[str, object] = {"part": part.part, "number": part.number, "files": part.files}
        self._on_event(
            "snapshot", _("The first snapshot of {part} is complete.").format(part=part.part), data
        )

    def _ship_growing(self) -> None:
        if self._event_files.ship(last=self._deadline is not None):
            self._recovered()

    def _recovered(self) -> None:
        if self._failing:
            self._on_event("synced", _("Checkpoints are synced again."), {})
        self._failing = False

    def _prune_older(self) -> None:
        """Delete earlier attempts' snapshots once this attempt has two of its own."""
        parts = self._parts.values()
        if self._pruned or not all(part.is_independent for part in parts):
            return
        self._delete_older(set())
        self._pruned = True

    def _delete_older(self, held: set[tuple[int, int]]) -> None:
        """Delete the snapshots of earlier attempts, except those of the attempts in ``held``."""
        role, index = layout.split_task(self._task)
        directory = f"{layout.SNAPSHOTS}/{role}-{index}"
        for entry in self._store.entries(directory):
            attempt = layout.parse_attempt(entry.name)
            if attempt is not None and attempt < self._now and attempt not in held:
                self._store.delete(f"{directory}/{entry.name}", recursive=True)


class EventFileSync:
    """The files below one directory.

    Parameters
    ----------
    root
        The task's TensorBoard directory on the local disk.
    check
        Called between blocks; raises to end a long upload.
    """

    def __init__(
        self,
        store: Store,
        root: str,
        task: str,
        now: tuple[int, int],
        check: Callable[[], None],
    ) -> None:
        self._store, self._root, self._task, self._now = store, root, task, now
        self._check = check
        self._growing: PieceWriter | None = None
        self._before: dict[str, FileState] = {}

    def ship(self, *, last: bool) -> bool:
        """Ship what is new; return whether something was shipped, so the store is available.

        Parameters
        ----------
        last
            The program has ended: ship files that have just changed as well.

        Raises
        ------
        StoreError
            If the store failed; a further call continues.
        """
        try:
            files = scan_directory(self._root)
        except OSError:
            return False
        if not files and self._growing is None:
            return False
        if self._growing is None:
            shipped = {}
            if self._now != (1, 1):
                shipped = shipped_lengths(self._store, task_directory(self._task))
            name = layout.attempt_directory(layout.GROWING, self._task, *self._now)
            reader = FileReader(lambda path: os.path.join(self._root, path), self._check)
            self._growing = PieceWriter(self._store, name, self._root, reader, shipped)
        before, self._before = self._before, files
        self._growing.ship(files, files if last else before)
        return files != before
