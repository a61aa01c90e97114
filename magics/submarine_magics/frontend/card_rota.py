"""Which cards of a kernel are live: the newest, and older ones as soon as a place is free.

A live card costs a connection to its job's agent and a share of what a Jupyter server lets through
to the browser, so their number has a bound. Does not make or send cards (``live_display``).
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.client import Job
    from submarine_jobs.model import JobView
    from submarine_magics.frontend.cards import LiveCard

#: Cards that are kept up to date at the same time. At three updates a second of some 12 kB each
#: they stay below the 1 MB/s that Jupyter servers let through.
MAX_CARDS = 24
#: Cards that are remembered at all, live, waiting for a place or ended.
MAX_KEPT = 500


class CardRota:
    """All cards of one kernel that may still change; called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._cards: list[LiveCard] = []
        self._live: list[LiveCard] = []

    def add(self, card: LiveCard) -> None:
        """Make ``card`` live; if there are too many, the oldest stands still until one ends."""
        with self._lock:
            self._cards.append(card)
            while len(self._live) >= MAX_CARDS:
                self._live.pop(0).unsubscribe()
            self._start(card)
            while len(self._cards) > MAX_KEPT:
                self._remove(next((old for old in self._cards if old.final), self._cards[0]))

    def of_job(self, job_id: str) -> list[LiveCard]:
        """The cards that show a job, ended ones too."""
        with self._lock:
            return [card for card in self._cards if card.job.id == job_id]

    def jobs(self) -> list[Job]:
        """The jobs whose cards may still change, each once."""
        with self._lock:
            return list({card.job.id: card.job for card in self._cards}.values())

    def remove(self, card: LiveCard) -> None:
        """Forget a card; its place goes to one that waits."""
        with self._lock:
            self._remove(card)
            self._fill()

    def _remove(self, card: LiveCard) -> None:
        self._cards.remove(card)
        if card in self._live:
            self._live.remove(card)
        card.unsubscribe()

    def _start(self, card: LiveCard) -> None:
        self._live.append(card)

        def hear(view: JobView) -> None:
            card.update(view)
            if card.final:
                self._ended(card)

        card.unsubscribe = card.job.session.watcher.subscribe(card.job, hear)

    def _ended(self, card: LiveCard) -> None:
        with self._lock:
            if card in self._live:
                self._live.remove(card)
            self._fill()

    def _fill(self) -> None:
        for card in self._cards:
            if len(self._live) >= MAX_CARDS:
                return
            if not card.final and card not in self._live:
                self._start(card)
