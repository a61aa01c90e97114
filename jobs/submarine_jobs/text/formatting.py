"""Format durations, sizes, memory and times for display."""

from __future__ import annotations

import math
from datetime import UTC, datetime


def duration(seconds: float | None) -> str:
    """Return ``0.4 s``, ``3 min 05 s``, ``2 h 07 min`` or ``3 d 04 h``; a hyphen for None."""
    if seconds is None or not math.isfinite(seconds):
        return "-"
    seconds = min(max(seconds, 0.0), 1e9)
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 86400} d {whole % 86400 // 3600:02d} h"


def running_duration(seconds: float) -> str:
    """Format the duration of something that is still running: it changes once a second."""
    whole = math.floor(max(seconds, 0.0))
    return f"{whole} s" if whole < 10 else duration(whole)


def size(count: float) -> str:
    """Return bytes as ``812 B``, ``3.4 kB``, ``1.2 MB`` (powers of 1000)."""
    value = float(max(count, 0))
    for unit in ("B", "kB", "MB", "GB"):
        if value < 999.5:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 99.5 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def timestamp(time: float | None) -> str:
    """Return ``2026-11-20 14:03:09 UTC``; a hyphen for None or a time out of range."""
    if time is None:
        return "-"
    try:
        return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "-"


def memory(mebibytes: float) -> str:
    """Return ``812 MiB`` or ``1.2 GiB``."""
    if mebibytes >= 1024:
        return f"{mebibytes / 1024:.1f}".removesuffix(".0") + " GiB"
    return f"{mebibytes:.0f} MiB"
