"""Names as parts of paths: two never become one, and none is hidden or leads elsewhere."""

from __future__ import annotations

import hashlib
import re

_UNFIT = re.compile(r"[^\w.+~-]", re.ASCII)
_LONGEST = 120
_LONGEST_NAME = 128


def is_workflow_name(name: str) -> bool:
    """Whether a workflow may have this name.

    It becomes the name of files and folders, a line of a crontab and text on a terminal.
    """
    plain = name.isprintable() and not {"/", "\\"}.intersection(name)
    return plain and 0 < len(name) <= _LONGEST_NAME and name not in (".", "..")


def file_name(name: str) -> str:
    """``name`` in letters, digits and ``. _ - + ~``.

    The ``:`` of an embedded flow's nodes becomes ``+`` and a space ``~``, which no node has in its
    name; whatever else has to change, a digest of the whole tells it from others.
    """
    plain = name.replace("+", "\0").replace("~", "\0").replace(":", "+").replace(" ", "~")
    fit = _UNFIT.sub("_", plain)[:_LONGEST] or "_"
    if fit.startswith("."):
        fit = f"_{fit[1:]}"
    if fit == plain:
        return fit
    return f"{fit}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
