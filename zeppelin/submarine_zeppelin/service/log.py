"""The log of this process, in which no secret of the server's configuration ever stands.

Zeppelin hands all its properties to each interpreter, its keystore's password and git's token
included. Nobody here logs them; should a library or an error's text hold one, it is masked.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
from collections.abc import Mapping
from logging.handlers import RotatingFileHandler
from pathlib import Path

_SECRET_NAME = re.compile(
    r"pass|secret|token|credential|private|access.?key|keytab|signing|salt", re.I
)
#: Shorter values, and those that are everywhere, are no secrets and would mask half of each line.
_SHORTEST = 4
_HARMLESS = {"true", "false", "none", "null", "simple", "kerberos", "anonymous", "default"}
MASK = "******"
_FORMAT = "%(asctime)s %(levelname)s %(name)s %(threadName)s: %(message)s"
_SIZE, _OLD = 10 << 20, 2


class SecretsMask:
    """The secrets known so far, and texts without them; safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._secrets: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def learn(self, properties: Mapping[str, str]) -> None:
        """Take note of the values whose names say that they are secret."""
        found = {
            str(value)
            for name, value in properties.items()
            if value and _SECRET_NAME.search(str(name))
        }
        found = {one for one in found if len(one) >= _SHORTEST and one.lower() not in _HARMLESS}
        with self._lock:
            self._secrets |= found
            ordered = sorted(self._secrets, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def clean(self, text: str) -> str:
        """A text with each secret masked."""
        pattern = self._pattern
        return pattern.sub(MASK, text) if pattern is not None else text


class _Formatter(logging.Formatter):
    """Masks the whole of what is written: message, arguments and stack."""

    def __init__(self, mask: SecretsMask) -> None:
        super().__init__(_FORMAT)
        self._mask = mask

    def format(self, record: logging.LogRecord) -> str:
        return self._mask.clean(super().format(record))


def set_up_logging(group: str, mask: SecretsMask) -> None:
    """Log into Zeppelin's directory of logs, a file for each process, else to the error stream.

    Zeppelin takes what a process prints before it is ready for the reason why it did not start.
    """
    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.WARNING)
    directory = os.environ.get("ZEPPELIN_LOG_DIR", "")
    if directory and Path(directory).is_dir():
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", group)[:150] or "submarine"
        path = Path(directory) / f"zeppelin-interpreter-{name}.log"
        try:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
            handler = RotatingFileHandler(path, maxBytes=_SIZE, backupCount=_OLD, delay=True)
        except OSError as error:
            print(f"Submarine logs here: {path}: {error.strerror}", file=sys.stderr)
    handler.setFormatter(_Formatter(mask))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.INFO)
