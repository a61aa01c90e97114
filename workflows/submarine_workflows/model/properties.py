"""Azkaban's properties of a node that are numbers, and whether a text is fit for one."""

from __future__ import annotations

#: Under ``config:``; the second in milliseconds.
NUMBERS = ("retries", "retry.backoff")
_LONGEST = 12


def number_problem(name: str, text: str) -> str:
    """What is wrong with the value of a property, one sentence; empty: nothing."""
    text = text.strip()
    if text.isascii() and text.isdigit() and len(text) <= _LONGEST:
        return ""
    return f"`{name}` under `config:` is a whole number from 0, not `{text[:40]}`."
