"""Pictures of runs that renew themselves: one thread for all of them, as long as any of them runs.

A run's journal tells how it is; the thread looks whether that file has changed and draws nothing
else anew. Does not start or end runs.
"""

from __future__ import annotations

import logging
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from submarine_jobs.errors import UsageError
from submarine_workflows.local.runs import RunFolder
from submarine_workflows.local.statuses import Status
from submarine_workflows.local.views import RunView, view_of
from submarine_workflows.notebook.pictures import NodeState, RunState, Step, of_run

log = logging.getLogger(__name__)
#: Seconds between two looks at the journals, and after which a picture's times are renewed.
LOOK, RENEW = 0.5, 5.0
#: Pictures that are kept up to date at the same time; older ones stay as they are then.
MAX_WATCHED = 24
#: Characters a second that one picture may send: all of them together stay below the 1 MB/s that
#: Jupyter servers let through.
RATE = 40_000

Update = Callable[[Mapping[str, Any]], None]


def state_of(view: RunView) -> RunState:
    """A run, as pictures show it."""
    nodes = {
        node.path: NodeState(
            str(node.status),
            node.started,
            node.ended,
            node.attempt,
            node.reason if node.status is not Status.READY else "",
        )
        for node in view.nodes
    }
    ended = view.ended if not view.alive else None
    return RunState(view.run, str(view.status), view.started or None, ended, nodes, view.reason)


def picture_of(view: RunView, command: str) -> dict[str, Any]:
    """MIME type -> data of a run, with what may be done next."""
    return of_run(view.workflow, state_of(view), _next_steps(view, command))


def _next_steps(view: RunView, command: str) -> Sequence[Step]:
    """By the run's id and not by the workflow's name: outputs are read for a long time."""
    own, run = f"{command} workflow", view.run
    jobs = Step(f"{command} list --workflow-run {run}", "its jobs")
    failed = next((n.path for n in view.nodes if n.status in (Status.FAILED, Status.KILLED)), "")
    logs = Step(f"{own} logs {run} {failed}".rstrip(), "what its commands wrote")
    if view.alive:
        return [logs, Step(f"{own} cancel {run}", "end it"), jobs]
    if view.status is Status.SUCCEEDED:
        return [logs, jobs]
    return [logs, Step(f"{own} run --resume {run}", "go on from there"), jobs]


@dataclass
class _Watched:
    run: RunFolder
    update: Update
    command: str
    seen: object = None
    drawn: float = 0.0
    pause: float = 0.0
    over: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def look(self) -> None:
        """Draw it anew where something has changed."""
        with self.lock:
            if self.over:
                return
            now, seen = time.monotonic(), self._stamp()
            wait = self.pause if self.run.alive else 0.0
            if now - self.drawn < (max(wait, RENEW) if seen == self.seen else wait):
                return
            try:
                view = view_of(self.run)
            except UsageError as error:  # its folder was removed
                log.debug("the run %s is shown no more: %s", self.run.run, error)
                self.over = True
                return
            self.over, self.seen, self.drawn = not view.alive, seen, now
            picture = picture_of(view, self.command)
            self.pause = len(picture["text/html"]) * 1.5 / RATE
            self.update(picture)

    def _stamp(self) -> object:
        with suppress(OSError):
            status = self.run.journal.stat()
            return status.st_mtime_ns, status.st_size, self.run.alive
        return None


class RunWatcher:
    """The pictures of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched: list[_Watched] = []
        self._children: list[subprocess.Popen[bytes]] = []
        self._thread: threading.Thread | None = None

    def watch(self, run: RunFolder, update: Update, command: str) -> Callable[[], None]:
        """Renew a picture until its run has ended.

        Returns
        -------
        Callable
            Brings it up to date now, from the thread that calls it.
        """
        watched = _Watched(run, update, command)
        with self._lock:
            self._watched = [*self._watched[-MAX_WATCHED + 1 :], watched]
            self._begin()
        return watched.look

    def adopt(self, child: subprocess.Popen[bytes]) -> None:
        """Take note when a runner that this process has started ends."""
        with self._lock:
            self._children.append(child)
            self._begin()

    def _begin(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="submarine-runs", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            for watched in list(self._watched):
                try:
                    watched.look()
                except Exception:
                    log.exception("the picture of %s cannot be renewed", watched.run.run)
                    watched.over = True
            with self._lock:
                self._watched = [one for one in self._watched if not one.over]
                self._children = [one for one in self._children if one.poll() is None]
                if not self._watched and not self._children:
                    self._thread = None
                    return
            time.sleep(LOOK)


watcher = RunWatcher()
