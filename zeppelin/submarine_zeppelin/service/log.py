"""Set up the log of this process and mask secrets in it.

Zeppelin passes all its properties to each interpreter, including the keystore's password and git's
token. The masks cover messages of libraries and texts of errors that contain a secret.
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

from submarine_runtime.translation import _

_SECRET_NAME = re.compile(
    r"pass|secret|token|credential|private|access.?key|keytab|signing|salt", re.I
)
#: Shorter and common values are not treated as secrets: masking them would garble the log.
_MIN_LENGTH = 4
_HARMLESS = {"true", "false", "none", "null", "simple", "kerberos", "anonymous", "default"}
MASK = "******"
_FORMAT = "%(asctime)s %(levelname)s %(name)s %(threadName)s: %(message)s"
_MAX_SIZE, _BACKUPS = 10 << 20, 2


class SecretsMask:
    """Collects secrets and masks them in texts. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._secrets: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def add(self, properties: Mapping[str, str]) -> None:
        """Add the values of properties with names that indicate a secret."""
        secrets = {
            str(value)
            for name, value in properties.items()
            if value and _SECRET_NAME.search(str(name))
        }
        secrets = {
            one for one in secrets if len(one) >= _MIN_LENGTH and one.lower() not in _HARMLESS
        }
        with self._lock:
            self._secrets |= secrets
            ordered = sorted(self._secrets, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def mask(self, text: str) -> str:
        """Replace each secret in a text."""
        pattern = self._pattern
        return pattern.sub(MASK, text) if pattern is not None else text


class _Formatter(logging.Formatter):
    """Masks the complete record: message, arguments and stack trace."""

    def __init__(self, mask: SecretsMask) -> None:
        super().__init__(_FORMAT)
        self._mask = mask

    def format(self, record: logging.LogRecord) -> str:
        return self._mask.mask(super().format(record))


def set_up_logging(group: str, mask: SecretsMask) -> None:
    """Log to a file of this process in Zeppelin's log directory, else to standard error.

    Zeppelin shows the output of a process that does not start as the reason of the failure.
    """
    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.WARNING)
    directory = os.environ.get("ZEPPELIN_LOG_DIR", "")
    if directory and Path(directory).is_dir():
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", group)[:150] or "submarine"
        path = Path(directory) / f"zeppelin-interpreter-{name}.log"
        try:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
            handler = RotatingFileHandler(
                path, maxBytes=_MAX_SIZE, backupCount=_BACKUPS, delay=True
            )
        except OSError as error:
            print(
                _("Submarine logs to standard error: {path}: {strerror}").format(
                    path=path, strerror=error.strerror
                ),
                file=sys.stderr,
            )
    handler.setFormatter(_Formatter(mask))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.INFO)
