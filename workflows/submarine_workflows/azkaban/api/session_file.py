"""Session ids between commands, so that each of them needs no login: Azkaban allows only so many.

A file of the user's alone for each server and user. It holds no password.
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
    """Where the id of one user's session at one server is kept.

    Parameters
    ----------
    folder
        The state directory of this machine; never on a shared file system.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        name = hashlib.sha256(f"{settings.url}\n{settings.user}".encode()).hexdigest()[:24]
        self._path = folder / "azkaban" / f"{name}.session"

    def read(self) -> str:
        """The id; empty where there is none."""
        try:
            text = self._path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            return ""
        return text if _ID.fullmatch(text) else ""

    def write(self, session: str) -> None:
        """Keep it; a disk that takes nothing costs a login more, no command."""
        with suppress(OSError):
            make_private(self._path.parent)
            made = self._path.with_suffix(f".{secrets.token_hex(4)}")
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            with os.fdopen(os.open(made, flags, 0o600), "w") as file:
                file.write(session)
            made.replace(self._path)

    def forget(self) -> None:
        """It is not valid any more."""
        self._path.unlink(missing_ok=True)
