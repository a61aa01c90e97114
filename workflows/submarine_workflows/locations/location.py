"""What a place of a notebook is, and what holds for all of them: a limit, no password shown.

Reads and writes nothing itself, and does not know which places there are (``places`` does).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from pathlib import Path

from submarine_jobs.errors import UsageError
from submarine_jobs.text import printable

#: A notebook larger than this is read by no front end either.
MAX_BYTES = 256 * 1024 * 1024


class Place(ABC):
    """One file somewhere.

    Attributes
    ----------
    url
        Where, as it was written, fit to be shown: without a password.
    local
        The path on this machine, or None.
    patience
        Seconds for which the last save of a run is tried: a server that restarts comes back, a
        full disk of this machine does not.
    """

    url: str
    local: Path | None = None
    patience: float = 150.0

    @abstractmethod
    def read(self) -> bytes:
        """All of it; UsageError where there is none, StorageError where nobody answers."""

    def exists(self) -> bool:
        """Whether a file or folder is there; StorageError where nobody answers.

        A place that cannot say it otherwise is read.
        """
        try:
            self.read()
        except UsageError:
            return False
        return True

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Put ``data`` in the place of what was there; StorageError where that fails."""


def without_password(url: str) -> str:
    """``url`` without what stands before ``@``: it is shown, saved and logged."""
    return re.sub(r"://[^/@\s]*@", "://", url)


def bounded(data: bytes, url: str) -> bytes:
    """``data``, which was read at ``url``; UsageError where it is more than anybody reads."""
    if len(data) > MAX_BYTES:
        raise UsageError(
            f"{printable(url, 200)} is larger than {MAX_BYTES >> 20} MiB.",
            "Clear its outputs and save it.",
        )
    return data
