"""Suggest other files of the same directory when a file is missing."""

from __future__ import annotations

from pathlib import Path

from submarine_jobs.text.sanitize import one_line

_MOST = 5


def sibling_hint(path: Path) -> str:
    """Return ``There are a.py, b.py beside it.``, files with the suffix of ``path``, or empty."""
    if not path.suffix:
        return ""
    try:
        names = sorted(
            item.name
            for item in path.parent.iterdir()
            if item.suffix == path.suffix and not item.name.startswith(".") and item.is_file()
        )
    except (OSError, ValueError):
        return ""
    if not names:
        return ""
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    verb = "is" if len(names) == 1 else "are"
    return (
        f"There {verb} {', '.join(one_line(name, 100) for name in names[:_MOST])}{more} beside it."
    )
