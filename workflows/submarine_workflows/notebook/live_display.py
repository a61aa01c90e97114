"""Pictures of runs that renew themselves: one thread for all of them, as long as any of them runs.

Draws anew only where there is news. What a run is, and where the news of it come from, is known to
``local_run`` and ``azkaban_run``; nothing is started or ended here. A kernel has one for its own
outputs, the server extension one for all pages.
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

log = logging.getLogger(__name__)
#: Seconds between two looks for news, and after which a picture's times are renewed.
LOOK, RENEW = 0.5, 5.0
#: Pictures that are kept up to date at the same time; older ones stay as they are then.
MAX_WATCHED = 24
#: Characters a second that one picture may send: all of them together stay below the 1 MB/s that
#: Jupyter servers let through.
RATE = 40_000

Update = Callable[[Mapping[str, Any]], None]
#: Called once, when nothing follows: with the reason where that is not the run's end.
Ended = Callable[[SubmarineError | None], None]


class Source(Protocol):
    """A run that is shown."""

    @property
    def name(self) -> str:
        """The run's id."""

    def stamp(self) -> tuple[object, bool]:
        """Something that is another when there is news, and whether the run goes on; cheap."""

    def picture(self) -> tuple[dict[str, Any], bool]:
        """The picture now, and whether nothing follows."""


@dataclass
class Watched:
    """A run and who shows it; calling it brings that up to date now, from the calling thread."""

    source: Source
    update: Update
    ended: Ended | None = None
    seen: object = None
    drawn: float = 0.0
    pause: float = 0.0
    over: bool = False
    stopped: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def stop(self) -> None:
        """Show it no more; a picture that is under way may still come."""
        self.stopped = True

    def fail(self, error: SubmarineError) -> None:
        """It cannot be shown any more."""
        self.over = True
        if self.ended is not None:
            self.ended(error)

    def __call__(self) -> None:
        """Draw it anew where something has changed."""
        with self.lock:
            if self.over or self.stopped:
                return
            now, (seen, goes_on) = time.monotonic(), self.source.stamp()
            wait = self.pause if goes_on else 0.0
            if now - self.drawn < (max(wait, RENEW) if seen == self.seen else wait):
                return
            self.seen, self.drawn = seen, now
            try:
                picture, over = self.source.picture()
            except ClusterError as error:  # it may answer again
                log.debug("nothing is heard of the run %s: %s", self.source.name, error)
                return
            except SubmarineError as error:  # it is there no more
                log.debug("the run %s is shown no more: %s", self.source.name, error)
                self.fail(error)
                return
            self.over = over
            self.pause = len(picture["text/html"]) * 1.5 / RATE
            self.update(picture)
            if over and self.ended is not None:
                self.ended(None)


class RunWatcher:
    """The pictures of one process.

    Parameters
    ----------
    most
        Pictures that are kept up to date at the same time; older ones stay as they are then.
    """

    def __init__(self, most: int = MAX_WATCHED) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._watched: list[Watched] = []
        self._children: list[subprocess.Popen[bytes]] = []
        self._thread: threading.Thread | None = None

    def watch(self, source: Source, update: Update, ended: Ended | None = None) -> Watched:
        """Renew a picture until its run has ended, or ``stop`` of what this returns."""
        watched = Watched(source, update, ended)
        with self._lock:
            self._watched = [*self._watched[-self._most + 1 :], watched]
            self._begin()
        return watched

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
                    watched()
                except Exception:
                    log.exception("the picture of %s cannot be renewed", watched.source.name)
                    watched.fail(SubmarineError("Its picture cannot be renewed; the log says why."))
            with self._lock:
                self._watched = [one for one in self._watched if not (one.over or one.stopped)]
                self._children = [one for one in self._children if one.poll() is None]
                if not self._watched and not self._children:
                    self._thread = None
                    return
            time.sleep(LOOK)


#: Runs of this machine; runs elsewhere, whose servers may keep who asks them waiting.
watcher, distant = RunWatcher(), RunWatcher()
