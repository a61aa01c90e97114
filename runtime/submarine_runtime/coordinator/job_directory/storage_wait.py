"""Wait for the file system of the job directory, and report the wait."""

from __future__ import annotations

import time
from typing import Callable, TypeVar

from submarine_runtime.protocol import CoordinatorConfig
from submarine_runtime.storage import StoreError, retry, wait_sentence
from submarine_runtime.translation import _

T = TypeVar("T")
#: Maximal seconds between two attempts, and seconds between two lines of the container's log.
MAX_PAUSE = 2.0
LOG_SECONDS = 60.0


class StorageWait:
    """Repeat calls to the job directory for ``save_grace`` seconds each.

    Parameters
    ----------
    log
        Called once a minute with a sentence for the container's log.

    Attributes
    ----------
    waited
        Seconds of the longest wait so far; 0 if the file system has always answered.
    """

    def __init__(self, config: CoordinatorConfig, log: Callable[[str], None]) -> None:
        self._name = storage_name(config.store.kind)
        self._seconds = config.save_grace
        self._log = log
        self.waited = 0.0

    def retry(
        self,
        action: Callable[[], T],
        wait: Callable[[float], object] = time.sleep,
        show: Callable[[str], None] = lambda sentence: None,
    ) -> T:
        """Repeat ``action`` while the file system does not answer.

        Parameters
        ----------
        show
            Called during the wait with a sentence for the job's record.

        Raises
        ------
        StoreError
            The first permanent error, or an error that names the wait when it was too long.
        """
        began, logged = time.monotonic(), -LOG_SECONDS

        def attempt() -> T:
            nonlocal logged
            try:
                return action()
            except StoreError as exc:
                passed = time.monotonic() - began
                if exc.transient:
                    self.waited = max(self.waited, passed)
                    sentence = wait_sentence(self._name, self._seconds - passed, exc)
                    show(sentence)
                    if passed - logged >= LOG_SECONDS:
                        logged = passed
                        self._log(sentence)
                raise

        try:
            return retry(attempt, began + self._seconds, wait=wait, longest=MAX_PAUSE)
        except StoreError as exc:
            if exc.transient:
                sentence = _("{name} did not answer for {seconds:.0f} s: {error}").format(
                    name=self._name, seconds=self._seconds, error=exc
                )
                raise StoreError(sentence, transient=True) from exc
            raise

    def summary(self) -> str:
        """Return a sentence about the wait, for the job's events."""
        return _("The coordinator waited {waited:.0f} s for {name}.").format(
            waited=self.waited, name=self._name
        )


def storage_name(kind: str) -> str:
    """Return the name of a store's file system for users."""
    return "HDFS" if kind == "webhdfs" else _("the file system of the job directory")
