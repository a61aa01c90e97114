"""Location of a notebook: the interface, a size limit, and URLs without passwords.

``urls`` selects the implementation.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from pathlib import Path

from submarine_jobs.errors import UsageError
from submarine_jobs.text import printable
from submarine_runtime.translation import _

#: Front ends do not open larger notebooks either.
MAX_BYTES = 256 * 1024 * 1024


class Location(ABC):
    """Location of one file.

    Attributes
    ----------
    url
        The location as given, without a password.
    local
        Path on this machine, or None.
    retry_seconds
        Seconds to retry the last save of a run: a restarting server becomes available again, a full
        local disk does not.
    """

    url: str
    local: Path | None = None
    retry_seconds: float = 150.0

    @abstractmethod
    def read(self) -> bytes:
        """Return the content. UsageError if there is none, StorageError without a connection."""

    def exists(self) -> bool:
        """Return whether a file or folder exists; StorageError without a connection.

        By default the file is read.
        """
        try:
            self.read()
        except UsageError:
            return False
        return True

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Replace the content; StorageError on failure."""


def without_password(url: str) -> str:
    """Return ``url`` without the part before ``@``, for display and logs."""
    return re.sub(r"://[^/@\s]*@", "://", url)


def check_size(data: bytes, url: str) -> bytes:
    """Return ``data``, which was read from ``url``; UsageError if it exceeds the limit."""
    if len(data) > MAX_BYTES:
        raise UsageError(
            _("{url} is larger than {max_bytes} MiB.").format(
                url=printable(url, 200), max_bytes=MAX_BYTES >> 20
            ),
            _("Clear its outputs and save it."),
        )
    return data
