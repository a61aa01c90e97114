"""Log that this process waits for a file system: one line for an outage, and one after it.

The lines are warnings of the logger ``submarine_data``. Without a configuration of ``logging`` they
are in stderr, and so in the log of the job.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import contextmanager
from typing import Iterator

from submarine_data.remote.configuration import split_uri
from submarine_runtime.translation import _

#: Seconds of a wait that is not logged: most broken connections are followed by a working one.
_SILENT = 2.0
#: Seconds after which a call without any answer is logged, and between two looks at the calls.
_STALLED, _LOOK = 10.0, 1.0

_logger = logging.getLogger("submarine_data")
_lock = threading.Lock()
#: File system -> when the first operation began to wait for it, while its outage is logged.
_outages: dict[str, float] = {}
#: Running calls of clients without a timeout, and the thread that looks at them.
_calls: dict[int, Wait] = {}
_watcher: threading.Thread | None = None


class Wait:
    """The possible wait of one operation, which begins now.

    Parameters
    ----------
    uri
        File of the operation.
    patience
        Seconds that the operation is repeated at most.
    """

    def __init__(self, uri: str, patience: float) -> None:
        self._uri, self._patience = uri, patience
        self._began = time.monotonic()
        self._waits = False

    def failed(self, error: Exception) -> None:
        """Note that an attempt has failed and another one follows."""
        self._waits = True
        if self._lasts(_SILENT) and self._begin():
            _logger.warning(
                _("{uri} is not available, waiting for up to {seconds:.0f} s: {error}.").format(
                    uri=self._uri, seconds=self._patience, error=str(error).rstrip(".")
                )
            )

    def look(self) -> None:
        """Log a call that has had no answer for a long time."""
        if self._lasts(_STALLED):
            self._waits = True
            if self._begin():
                _logger.warning(
                    _("{uri} is not available, waiting: no answer for {seconds:.0f} s.").format(
                        uri=self._uri, seconds=time.monotonic() - self._began
                    )
                )

    def succeeded(self) -> None:
        """Note that an attempt has succeeded."""
        began = self._end()
        if began is not None:
            _logger.warning(
                _("{uri} is available again after {seconds:.0f} s.").format(
                    uri=self._uri, seconds=time.monotonic() - began
                )
            )

    def given_up(self) -> None:
        """Note that the operation has failed for good: its error says why."""
        self._end()

    def _lasts(self, seconds: float) -> bool:
        return time.monotonic() - self._began >= seconds

    def _system(self) -> str:
        return "://".join(split_uri(self._uri)[:2])

    def _begin(self) -> bool:
        """Return whether the outage of the file system is a new one."""
        with _lock:
            known = self._system() in _outages
            _outages.setdefault(self._system(), self._began)
            return not known

    def _end(self) -> float | None:
        """Return when the outage that this operation has seen began; None if it is not logged."""
        if not self._waits:
            return None
        with _lock:
            return _outages.pop(self._system(), None)


@contextmanager
def watched(uri: str) -> Iterator[None]:
    """Log if the call inside has no answer for a long time; for clients without a timeout."""
    global _watcher
    wait = Wait(uri, 0.0)
    with _lock:
        _calls[id(wait)] = wait
        # After a fork there is no thread.
        if _watcher is None or not _watcher.is_alive():
            _watcher = threading.Thread(target=_watch, name="submarine-waits", daemon=True)
            _watcher.start()
    try:
        yield
        wait.succeeded()
    finally:
        with _lock:
            _calls.pop(id(wait), None)


def _watch() -> None:
    """Look at the running calls until there are none; the next call begins this again."""
    global _watcher
    while True:
        time.sleep(_LOOK)
        with _lock:
            calls = list(_calls.values())
            if not calls:
                _watcher = None
                return
        for call in calls:
            call.look()
