"""The number of random examples of a test."""

from __future__ import annotations

from hypothesis import settings


def examples(count: int) -> int:
    """Return `count`, or the fraction of it that the loaded profile uses (the default is 100)."""
    return max(1, count * settings().max_examples // 100)
