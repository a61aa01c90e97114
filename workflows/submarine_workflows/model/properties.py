"""Azkaban's numeric node properties and their validation."""

from __future__ import annotations

#: Under ``config:``; ``retry.backoff`` is in milliseconds.
NUMBERS = ("retries", "retry.backoff")
_LONGEST = 12


def number_problem(name: str, text: str) -> str:
    """Return the problem of a property's value in one sentence, or an empty string."""
    text = text.strip()
    if text.isascii() and text.isdigit() and len(text) <= _LONGEST:
        return ""
    return f"`{name}` under `config:` must be a whole number of at least 0, not `{text[:40]}`."
