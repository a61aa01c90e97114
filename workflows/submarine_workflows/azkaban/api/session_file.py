"""Store session ids between commands, because Azkaban limits the number of sessions.

A private file for each server and user. It contains no password.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from contextlib import suppress
from pathlib import Path

from submarine_jobs.config import make_private
from submarine_workflows.azkaban.api.settings import Settings

_ID = re.compile(r"[\x21-\x7e]{1,200}")


class SessionFile:
    """File with the session id of one user at one server.

    Parameters
    ----------
    folder
        State directory of this machine; never on a shared file system.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        name = hashlib.sha256(f"{settings.url}\n{settings.user}".encode()).hexdigest()[:24]
        self._path = folder / "azkaban" / f"{name}.session"

    def read(self) -> str:
        """Return the id; empty if there is none."""
        try:
            text = self._path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            return ""
        return text if _ID.fullmatch(text) else ""

    def write(self, session: str) -> None:
        """Store the id. If the disk is full, the next command logs in again."""
        with suppress(OSError):
            make_private(self._path.parent)
            made = self._path.with_suffix(f".{secrets.token_hex(4)}")
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            with os.fdopen(os.open(made, flags, 0o600), "w") as file:
                file.write(session)
            made.replace(self._path)

    def forget(self) -> None:
        """Delete an invalid id."""
        self._path.unlink(missing_ok=True)
