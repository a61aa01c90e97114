"""Update the job cards of all paragraphs, also after their runs have ended.

The watcher of ``submarine_jobs`` reports new views. One thread draws them, at most once a second
for each paragraph, so that busy jobs and a slow server do not block other work. Metrics are read
in separate threads, because storage may not respond.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from submarine_jobs.model import JobView
from submarine_zeppelin.display.page import JobCard, Page
from submarine_zeppelin.interface import ParagraphGoneError

log = logging.getLogger(__name__)
#: Minimum seconds between two updates of a card, and between two reads of its metrics.
INTERVAL, METRICS_INTERVAL = 1.0, 5.0
#: Maximum number of cards that are updated. The oldest is dropped for a new one.
MAX_CARDS = 100


@dataclass(eq=False)
class _UpdatedCard:
    page: Page
    card: JobCard
    on_final: Callable[[], None]
    is_superseded: Callable[[], bool]
    unsubscribe: Callable[[], None] = lambda: None
    dirty: bool = True
    drawn_at: float = 0.0
    metrics_at: float = 0.0
    #: Set while its metrics are read.
    reading: threading.Event = field(default_factory=threading.Event)
    #: Set after the final view was drawn.
    completed: threading.Event = field(default_factory=threading.Event)


class CardUpdater:
    """Updates the cards of one interpreter. Its thread starts with the first card."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._cards: list[_UpdatedCard] = []
        self._thread: threading.Thread | None = None

    def add(
        self,
        page: Page,
        card: JobCard,
        on_final: Callable[[], None],
        is_superseded: Callable[[], bool] = lambda: False,
    ) -> None:
        """Update a card of a page until its final view is shown.

        Parameters
        ----------
        on_final
            Called after the final view was shown.
        is_superseded
            Whether another process uses the paragraph of the card.
        """
        entry = _UpdatedCard(page, card, on_final, is_superseded)
        with self._lock:
            if any(item.card is card for item in self._cards):
                return
            self._cards.append(entry)
            excess = self._cards[:-MAX_CARDS]
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, daemon=True, name="submarine-cards"
                )
                self._thread.start()
        for old in excess:
            self._drop(old)

        def on_view(view: JobView) -> None:
            card.update(view)
            entry.dirty = True
            self._wake.set()

        entry.unsubscribe = card.job.session.watcher.subscribe(card.job, on_view)
        self._wake.set()  # the thread may be waiting

    def remove(self, page: Page) -> None:
        """Stop updating the cards of a page."""
        for entry in self._of(page):
            self._drop(entry)

    def wait_final(self, card: JobCard, timeout: float) -> None:
        """Wait until the final view and metrics of a job are shown."""
        with self._lock:
            entry = next((item for item in self._cards if item.card is card), None)
        if entry is not None:
            entry.completed.wait(timeout)

    def close(self) -> None:
        """Show on each card that updates have stopped, and stop them. Jobs continue."""
        with self._lock:
            cards, self._cards = self._cards, []
            self._thread = None
        for item in cards:
            item.unsubscribe()
            item.card.paused = True
        self._wake.set()
        for item in cards:
            self._pause(item)

    def _pause(self, entry: _UpdatedCard) -> None:
        if entry.card.final:
            return
        try:
            if not entry.is_superseded():
                entry.page.show()
        except Exception as error:  # the server may have ended too
            log.info("the card of %s was not updated: %s", entry.card.job.id, error)

    def _of(self, page: Page) -> list[_UpdatedCard]:
        with self._lock:
            return [item for item in self._cards if item.page is page]

    def _drop(self, entry: _UpdatedCard) -> None:
        with self._lock:
            if entry in self._cards:
                self._cards.remove(entry)
        entry.unsubscribe()
        entry.completed.set()

    def _run(self) -> None:
        while True:
            with self._lock:
                if self._thread is not threading.current_thread():
                    return
                dirty = [item for item in self._cards if item.dirty]
            now = time.monotonic()
            due = [item for item in dirty if item.card.final or now - item.drawn_at >= INTERVAL]
            for item in due:
                self._draw(item)
            if not due:
                self._wake.wait(INTERVAL / 4 if dirty else None)
                self._wake.clear()

    def _draw(self, entry: _UpdatedCard) -> None:
        entry.dirty, entry.drawn_at = False, time.monotonic()
        final = entry.card.final
        try:
            if entry.is_superseded():
                raise ParagraphGoneError("another process uses the paragraph")
            self._read_metrics(entry, final)
            entry.page.show()
            if final:
                entry.on_final()
        except ParagraphGoneError:
            log.info("the paragraph of %s has other contents", entry.card.job.id)
            self._drop(entry)
            return
        except Exception:
            log.exception("the card of %s cannot be shown", entry.card.job.id)
        if final:
            self._drop(entry)

    def _read_metrics(self, entry: _UpdatedCard, final: bool) -> None:
        now = time.monotonic()
        if not final and now - entry.metrics_at < METRICS_INTERVAL:
            return
        entry.metrics_at = now
        if final:
            entry.card.read_metrics()
        elif not entry.reading.is_set():
            entry.reading.set()
            threading.Thread(
                target=self._read_in_thread, args=(entry,), daemon=True, name="submarine-metrics"
            ).start()

    def _read_in_thread(self, entry: _UpdatedCard) -> None:
        try:
            if entry.card.read_metrics():
                entry.dirty = True
                self._wake.set()
        except Exception:
            log.exception("the metrics of %s cannot be read", entry.card.job.id)
        finally:
            entry.reading.clear()
