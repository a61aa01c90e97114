"""Pictures of runs that renew themselves: one thread for all of them, as long as any of them runs.

Draws anew only where there is news. What a run is, and where the news of it come from, is known to
``local_run`` and ``azkaban_run``; nothing is started or ended here.
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
class _Watched:
    source: Source
    update: Update
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
            now, (seen, goes_on) = time.monotonic(), self.source.stamp()
            wait = self.pause if goes_on else 0.0
            if now - self.drawn < (max(wait, RENEW) if seen == self.seen else wait):
                return
            self.seen, self.drawn = seen, now
            try:
                picture, self.over = self.source.picture()
            except ClusterError as error:  # it may answer again
                log.debug("nothing is heard of the run %s: %s", self.source.name, error)
                return
            except SubmarineError as error:  # it is there no more
                log.debug("the run %s is shown no more: %s", self.source.name, error)
                self.over = True
                return
            self.pause = len(picture["text/html"]) * 1.5 / RATE
            self.update(picture)


class RunWatcher:
    """The pictures of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched: list[_Watched] = []
        self._children: list[subprocess.Popen[bytes]] = []
        self._thread: threading.Thread | None = None

    def watch(self, source: Source, update: Update) -> Callable[[], None]:
        """Renew a picture until its run has ended.

        Returns
        -------
        Callable
            Brings it up to date now, from the thread that calls it.
        """
        watched = _Watched(source, update)
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
                    log.exception("the picture of %s cannot be renewed", watched.source.name)
                    watched.over = True
            with self._lock:
                self._watched = [one for one in self._watched if not one.over]
                self._children = [one for one in self._children if one.poll() is None]
                if not self._watched and not self._children:
                    self._thread = None
                    return
            time.sleep(LOOK)


#: Runs of this machine; runs elsewhere, whose servers may keep who asks them waiting.
watcher, distant = RunWatcher(), RunWatcher()
