"""Keeps the cards of all paragraphs up to date, also long after their run has ended.

The core's one watcher tells what is new; one thread of ours draws it, at most once a second for a
paragraph, so that neither a job that talks much nor a slow Zeppelin holds anybody up. Metrics are
read beside it: a storage that does not answer holds no card up. Does not decide what is shown
(``page``).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from submarine_jobs.model import JobView
from submarine_zeppelin.display.page import Card, Page
from submarine_zeppelin.interface import ParagraphGoneError

log = logging.getLogger(__name__)
#: Seconds between two drawings of one paragraph, and between two looks for metrics.
PACE, METRICS = 1.0, 5.0
#: Cards that are kept up to date at the same time; the oldest is let go for a newer one.
MOST = 100


@dataclass(eq=False)
class _Shown:
    page: Page
    card: Card
    done: Callable[[], None]
    left: Callable[[], bool]
    unsubscribe: Callable[[], None] = lambda: None
    dirty: bool = True
    drawn: float = 0.0
    measured: float = 0.0
    over: bool = False
    #: That its metrics are being read.
    measuring: threading.Event = field(default_factory=threading.Event)
    #: That the last word is drawn.
    settled: threading.Event = field(default_factory=threading.Event)


class Refresher:
    """The one of a process; its thread starts with the first card."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._shown: list[_Shown] = []
        self._thread: threading.Thread | None = None

    def add(
        self,
        page: Page,
        card: Card,
        done: Callable[[], None],
        left: Callable[[], bool] = lambda: False,
    ) -> None:
        """Keep a card of a page up to date; ``done`` is called when its last word is shown.

        Parameters
        ----------
        left
            Whether another process shows something else in the card's place.
        """
        shown = _Shown(page, card, done, left)
        with self._lock:
            if any(item.card is card for item in self._shown):
                return
            self._shown.append(shown)
            over = self._shown[:-MOST]
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, daemon=True, name="submarine-cards"
                )
                self._thread.start()
        for old in over:
            self._drop(old)

        def hear(view: JobView) -> None:
            card.hear(view)
            shown.dirty = True
            self._wake.set()

        shown.unsubscribe = card.job.session.watcher.subscribe(card.job, hear)
        self._wake.set()  # the thread may wait for news of other cards

    def leave(self, page: Page) -> None:
        """A page is not to be written any more."""
        for shown in self._of(page):
            self._drop(shown)

    def settle(self, card: Card, timeout: float) -> None:
        """Wait until the last word of a job is drawn, its last metrics too."""
        with self._lock:
            found = next((item for item in self._shown if item.card is card), None)
        if found is not None:
            found.settled.wait(timeout)

    def close(self) -> None:
        """Say of each card that it stands still now, and write nothing any more; jobs live on."""
        with self._lock:
            shown, self._shown = self._shown, []
            self._thread = None
        for item in shown:
            item.unsubscribe()
            item.card.paused = True
        self._wake.set()
        for item in shown:
            self._pause(item)

    def _pause(self, shown: _Shown) -> None:
        if shown.card.final:
            return
        try:
            if not shown.left():
                shown.page.show()
        except Exception as error:  # the server may be gone, too, and all that is as it should be
            log.info("the card of %s is left as it is: %s", shown.card.job.id, error)

    def _of(self, page: Page) -> list[_Shown]:
        with self._lock:
            return [item for item in self._shown if item.page is page]

    def _drop(self, shown: _Shown) -> None:
        with self._lock:
            if shown in self._shown:
                self._shown.remove(shown)
        shown.over = True
        shown.unsubscribe()
        shown.settled.set()

    def _run(self) -> None:
        while True:
            with self._lock:
                if self._thread is not threading.current_thread():
                    return
                dirty = [item for item in self._shown if item.dirty]
            now = time.monotonic()
            due = [item for item in dirty if item.card.final or now - item.drawn >= PACE]
            for item in due:
                self._draw(item)
            if not due:
                self._wake.wait(PACE / 4 if dirty else None)
                self._wake.clear()

    def _draw(self, shown: _Shown) -> None:
        shown.dirty, shown.drawn = False, time.monotonic()
        final = shown.card.final
        try:
            if shown.left():
                raise ParagraphGoneError("another process shows something else there")
            self._measure(shown, final)
            shown.page.show()
            if final:
                shown.done()
        except ParagraphGoneError:
            log.info("the paragraph of %s shows something else now", shown.card.job.id)
            self._drop(shown)
            return
        except Exception:
            log.exception("the card of %s cannot be drawn", shown.card.job.id)
        if final:
            self._drop(shown)

    def _measure(self, shown: _Shown, final: bool) -> None:
        now = time.monotonic()
        if not final and now - shown.measured < METRICS:
            return
        shown.measured = now
        if final:
            shown.card.measure()
        elif not shown.measuring.is_set():
            shown.measuring.set()
            threading.Thread(
                target=self._measure_beside, args=(shown,), daemon=True, name="submarine-metrics"
            ).start()

    def _measure_beside(self, shown: _Shown) -> None:
        try:
            if shown.card.measure():
                shown.dirty = True
                self._wake.set()
        except Exception:
            log.exception("the metrics of %s cannot be read", shown.card.job.id)
        finally:
            shown.measuring.clear()
