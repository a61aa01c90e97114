"""Convert names to safe parts of paths: distinct, visible, and without separators."""

from __future__ import annotations

import hashlib
import re

_INVALID_CHARACTERS = re.compile(r"[^\w.+~-]", re.ASCII)
_MAX_FILE_NAME = 120
_MAX_WORKFLOW_NAME = 128


def is_workflow_name(name: str) -> bool:
    """Return whether a workflow may have this name.

    The name is used for files and folders, in a crontab, and on terminals.
    """
    plain = name.isprintable() and not {"/", "\\"}.intersection(name)
    return plain and 0 < len(name) <= _MAX_WORKFLOW_NAME and name not in (".", "..")


def file_name(name: str) -> str:
    """Return ``name`` in letters, digits and ``. _ - + ~``.

    The ``:`` of nodes of embedded flows becomes ``+`` and a space becomes ``~``; node names contain
    neither. If other characters are replaced, a digest of the name keeps it distinct.
    """
    plain = name.replace("+", "\0").replace("~", "\0").replace(":", "+").replace(" ", "~")
    fit = _INVALID_CHARACTERS.sub("_", plain)[:_MAX_FILE_NAME] or "_"
    if fit.startswith("."):
        fit = f"_{fit[1:]}"
    if fit == plain:
        return fit
    return f"{fit}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
