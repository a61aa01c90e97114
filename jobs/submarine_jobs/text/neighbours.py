"""What lies beside a file that is not there: the hint of the message that says so.

Shows names only, and few of them; does not guess which was meant.
"""

from __future__ import annotations

from pathlib import Path

from submarine_jobs.text.sanitize import one_line

_MOST = 5


def beside(path: Path) -> str:
    """``There are a.py, b.py beside it.``: files with the ending of ``path``; empty if none."""
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
