"""Processes that a test has started, directly or not."""

from __future__ import annotations

from pathlib import Path


def is_gone(pid: int) -> bool:
    """Whether a process has ended; it may be a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in "ZX"
