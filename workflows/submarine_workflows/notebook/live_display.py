"""Update displayed runs from one thread, which ends with the last active run.

A display is updated when its source has changed. ``local_run`` and ``azkaban_run`` implement
sources. A kernel has a watcher for its own outputs, the server extension one for all pages.
"""

from __future__ import annotations

import logging
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from submarine_jobs.errors import ClusterError, SubmarineError
from submarine_runtime.translation import _

log = logging.getLogger(__name__)
#: Seconds between checks, and between updates of the elapsed time.
POLL_INTERVAL, REFRESH_INTERVAL = 0.5, 5.0
#: Number of displays that are updated; older ones are no longer updated.
MAX_WATCHED = 24
#: Characters per second of one display: all together stay below the limit of 1 MB/s of Jupyter
#: servers.
MAX_RATE = 40_000

Update = Callable[[Mapping[str, Any]], None]
#: Called once at the end, with the reason if it is not the end of the run.
OnEnd = Callable[[SubmarineError | None], None]


class Source(Protocol):
    """A displayed run."""

    @property
    def name(self) -> str:
        """Id of the run."""

    def stamp(self) -> tuple[object, bool]:
        """Return a stamp that changes with the run, and whether it is active; must be cheap."""

    def render(self) -> tuple[dict[str, Any], bool]:
        """Return the current output, and whether it is final."""


@dataclass
class WatchedRun:
    """A displayed run. Calling it updates the display from the calling thread.

    Attributes
    ----------
    last_stamp
        Stamp of the displayed state; see ``Source.stamp``.
    drawn
        Time of the last update (``time.monotonic``).
    pause
        Minimum seconds until the next update; depends on the size of the last one.
    over
        Whether the final state is displayed.
    stopped
        Whether ``stop`` was called.
    """

    source: Source
    update: Update
    ended: OnEnd | None = None
    last_stamp: object = None
    drawn: float = 0.0
    pause: float = 0.0
    over: bool = False
    stopped: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def stop(self) -> None:
        """Stop updating; an update in progress may still follow."""
        self.stopped = True

    def fail(self, error: SubmarineError) -> None:
        """End the display with an error."""
        self.over = True
        if self.ended is not None:
            self.ended(error)

    def __call__(self) -> None:
        """Update the display if the run has changed."""
        with self.lock:
            if self.over or self.stopped:
                return
            now, (last_stamp, is_active) = time.monotonic(), self.source.stamp()
            wait = self.pause if is_active else 0.0
            if now - self.drawn < (
                max(wait, REFRESH_INTERVAL) if last_stamp == self.last_stamp else wait
            ):
                return
            self.last_stamp, self.drawn = last_stamp, now
            try:
                picture, over = self.source.render()
            except ClusterError as error:  # temporary
                log.debug("no state of the run %s: %s", self.source.name, error)
                return
            except SubmarineError as error:  # the run was deleted
                log.debug("the run %s is no longer displayed: %s", self.source.name, error)
                self.fail(error)
                return
            self.over = over
            self.pause = len(picture["text/html"]) * 1.5 / MAX_RATE
            self.update(picture)
            if over and self.ended is not None:
                self.ended(None)


class RunWatcher:
    """Updates the displays of one process.

    Parameters
    ----------
    most
        Number of displays that are updated; older ones are no longer updated.
    """

    def __init__(self, most: int = MAX_WATCHED) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._watched: list[WatchedRun] = []
        self._children: list[subprocess.Popen[bytes]] = []
        self._thread: threading.Thread | None = None

    def watch(self, source: Source, update: Update, ended: OnEnd | None = None) -> WatchedRun:
        """Update a display until its run has ended, or the returned object is stopped."""
        watched = WatchedRun(source, update, ended)
        with self._lock:
            self._watched = [*self._watched[-self._most + 1 :], watched]
            self._begin()
        return watched

    def reap(self, child: subprocess.Popen[bytes]) -> None:
        """Reap a runner process when it ends."""
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
                    watched()
                except Exception:
                    log.exception("the display of %s cannot be updated", watched.source.name)
                    watched.fail(SubmarineError(_("Its display cannot be updated; see the log.")))
            with self._lock:
                self._watched = [one for one in self._watched if not (one.over or one.stopped)]
                self._children = [one for one in self._children if one.poll() is None]
                if not self._watched and not self._children:
                    self._thread = None
                    return
            time.sleep(POLL_INTERVAL)


#: Local runs; and remote runs, because their servers may respond slowly.
watcher, distant = RunWatcher(), RunWatcher()
