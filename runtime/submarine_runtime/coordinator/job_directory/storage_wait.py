"""The wait of a coordinator for the file system of its job directory, and its messages."""

from __future__ import annotations

import time
from typing import Callable, TypeVar

from submarine_runtime.protocol.coordinator_config import CoordinatorConfig
from submarine_runtime.storage import StoreError, patiently, wait_sentence

T = TypeVar("T")
#: Seconds between two tries at most, and between two lines of the container's log.
LONGEST_PAUSE = 2.0
SAY_SECONDS = 60.0


class StorageWait:
    """Waits for ``save_grace`` seconds in each call.

    Parameters
    ----------
    say
        Called once a minute with a sentence for the container's log.

    Attributes
    ----------
    waited
        Seconds of the longest wait so far; 0 while the file system has always answered.
    """

    def __init__(self, config: CoordinatorConfig, say: Callable[[str], None]) -> None:
        self._name = storage_name(config.store.kind)
        self._seconds = config.save_grace
        self._say = say
        self.waited = 0.0

    def patiently(
        self,
        action: Callable[[], T],
        wait: Callable[[float], object] = time.sleep,
        tell: Callable[[str], None] = lambda sentence: None,
    ) -> T:
        """Repeat ``action`` while the file system does not answer.

        Parameters
        ----------
        tell
            Called with what the job says while it waits.

        Raises
        ------
        StoreError
            The first lasting error, or one that names the wait when it was too long.
        """
        began, said = time.monotonic(), -SAY_SECONDS

        def attempt() -> T:
            nonlocal said
            try:
                return action()
            except StoreError as exc:
                passed = time.monotonic() - began
                if exc.transient:
                    self.waited = max(self.waited, passed)
                    sentence = wait_sentence(self._name, self._seconds - passed, exc)
                    tell(sentence)
                    if passed - said >= SAY_SECONDS:
                        said = passed
                        self._say(sentence)
                raise

        try:
            return patiently(attempt, began + self._seconds, wait=wait, longest=LONGEST_PAUSE)
        except StoreError as exc:
            if exc.transient:
                words = f"{self._name} did not answer for {self._seconds:.0f} s: {exc}"
                raise StoreError(words, transient=True) from exc
            raise

    def sentence_after(self) -> str:
        """What the job says after a wait."""
        return f"The coordinator waited {self.waited:.0f} s for {self._name}."


def storage_name(kind: str) -> str:
    """What users call the file system of a store of this kind."""
    return "HDFS" if kind == "webhdfs" else "the file system of the job directory"
