"""Pauses between attempts of an operation that fails: each twice as long, with jitter."""

from __future__ import annotations

import random


class Backoff:
    """Pauses from ``first`` to ``longest`` seconds, each shortened by up to a half at random."""

    def __init__(self, first: float, longest: float) -> None:
        self._first, self._longest = first, longest
        self._next = first

    def reset(self) -> None:
        """Start again with the first pause, after a success."""
        self._next = self._first

    def pause(self, longest: float | None = None) -> float:
        """Return the seconds to wait now; ``longest`` replaces the maximum for this pause."""
        now = min(self._next, self._longest if longest is None else longest)
        self._next = now * 2
        return now * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, not a secret
