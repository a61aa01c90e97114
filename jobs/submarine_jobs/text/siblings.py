"""Suggest other files of the same directory when a file is missing."""

from __future__ import annotations

from pathlib import Path

from submarine_jobs.text.sanitize import one_line
from submarine_runtime.translation import _, ngettext

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
    more = _(" and {count} more").format(count=len(names) - _MOST) if len(names) > _MOST else ""
    words = ngettext(
        "There is {names}{more} beside it.", "There are {names}{more} beside it.", len(names)
    )
    return words.format(names=", ".join(one_line(name, 100) for name in names[:_MOST]), more=more)
