"""The agent's view of the job directory: one small interface, and how long to be patient.

Holds no client; ``store_local`` and ``store_webhdfs`` do. Does not decide what is published.
"""

from __future__ import annotations

import os
import random
import time
from abc import ABC, abstractmethod
from typing import Callable, Iterable, Iterator, NamedTuple, TypeVar

from submarine_runtime.protocol.agent_config import NO_ROOM_CODE, STORE_AWAY_CODE, JobStore

T = TypeVar("T")


class StoreError(Exception):
    """The job directory refused an operation.

    Parameters
    ----------
    message
        One sentence.
    transient
        Whether the same call may work later (a NameNode in safe mode, a refused connection).
    full
        Whether it was refused for want of room: a quota or a disk is used up.
    """

    def __init__(self, message: str, transient: bool = False, full: bool = False) -> None:
        super().__init__(message)
        self.transient = transient
        self.full = full

    @property
    def exit_code(self) -> int:
        """What an agent or coordinator ends with that could not leave its word for this."""
        if self.full:
            return NO_ROOM_CODE
        return STORE_AWAY_CODE if self.transient else 1


class UnconfirmedError(StoreError):
    """The write gate prevented a change after a suspend; the file system was not asked."""


class NotThereError(StoreError):
    """Nothing lies at the path that was to be read."""


class Entry(NamedTuple):
    """A file or directory: base name, bytes, whether it is a directory, when it was modified.

    ``owner`` is the file system's name of its owner; empty: not known.
    """

    name: str
    size: int
    is_directory: bool
    modified: float
    owner: str = ""


class Appender(ABC):
    """A file that is being written; what was appended is kept if this process is killed.

    Every method raises StoreError when the file system refuses, and the file is useless then.
    """

    @abstractmethod
    def append(self, data: bytes) -> None:
        """Send bytes; they need not be visible to readers before the file is closed."""

    @abstractmethod
    def close(self) -> None:
        """Complete the file."""

    @abstractmethod
    def abort(self) -> None:
        """Give the connection up; raises nothing."""


class Store(ABC):
    """A job directory; paths are relative to it, ``/`` between their parts.

    A path that begins with ``/`` names anything on the same file system. Several threads may use
    one store. Every method makes one attempt, bounded by the client's timeout, and raises
    StoreError.

    Attributes
    ----------
    operations
        NameNode operations so far (0 for a local directory).
    files
        Files published so far.
    publish_cost
        NameNode operations that an exclusive publish costs.
    gate
        Called before each change. The StoreError that it raises prevents the change (``suspend``).
    on_wait
        Called by ``patiently`` with what the job says while it waits for this file system, and
        with an empty text when the wait is over; from any thread.
    label
        What users call the file system.
    """

    publish_cost = 0
    label = "the file system of the job directory"

    def __init__(self) -> None:
        self.operations = 0
        self.files = 0
        self.gate: Callable[[], None] = lambda: None
        self.on_wait: Callable[[str], None] = lambda sentence: None

    @abstractmethod
    def read(self, path: str) -> bytes | None:
        """The whole of a small file, or None when it is not there."""

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Whether something lies at ``path``."""

    @abstractmethod
    def publish_exclusive(self, path: str, data: bytes) -> bool:
        """Put a whole file in place unless the name is taken; True too if it holds ``data``."""

    @abstractmethod
    def upload(self, path: str, source: str, offset: int = 0, length: int | None = None) -> int:
        """Publish a range of a local file by rename, replacing any; returns the bytes sent."""

    @abstractmethod
    def publish(self, path: str, data: bytes) -> None:
        """Publish a whole small file by rename, replacing any."""

    @abstractmethod
    def put(self, path: str, blocks: Iterable[bytes], length: int) -> None:
        """Publish what ``blocks`` gives, ``length`` bytes in all, by rename, replacing any."""

    @abstractmethod
    def appender(self, path: str) -> Appender:
        """Create a file, replacing any, that grows until it is closed."""

    @abstractmethod
    def stat(self, path: str) -> Entry | None:
        """What lies at ``path``, or None."""

    @abstractmethod
    def entries(self, path: str) -> list[Entry]:
        """What a directory holds, in any order; nothing when it is not there."""

    @abstractmethod
    def stream(self, path: str, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
        """Bytes of a file from ``offset``, a block at a time; NotThereError if there is none."""

    @abstractmethod
    def move(self, path: str, to: str) -> None:
        """Rename a file, replacing any other; the target's directory must be there."""

    @abstractmethod
    def delete(self, path: str, recursive: bool = False) -> None:
        """Remove a file or an empty directory, or all of one; no error when it is not there."""

    @abstractmethod
    def make_directory(self, path: str) -> None:
        """Make a directory (0700) and its parents; no error when it is there."""


def open_store(store: JobStore, timeout: float = 20.0) -> Store:
    """The client for ``store``.

    Raises
    ------
    ValueError
        If the kind is neither ``local`` nor ``webhdfs``.
    """
    if store.kind == "local":
        from submarine_runtime.storage.local import LocalStore

        return LocalStore(store.path)
    if store.kind == "webhdfs":
        from submarine_runtime.storage.webhdfs import WebHdfsStore

        return WebHdfsStore(store.webhdfs, store.path, store.user, timeout)
    raise ValueError(f"job store {store.kind!r} is unknown; this agent knows local and webhdfs")


def patiently(
    action: Callable[[], T],
    deadline: float | Callable[[], float],
    *,
    wait: Callable[[float], object] = time.sleep,
    first: float = 0.2,
    longest: float = 10.0,
    store: Store | None = None,
) -> T:
    """Repeat ``action`` while it fails for passing reasons, with jittered backoff.

    Parameters
    ----------
    deadline
        ``time.monotonic()`` after which the last error is raised; a function where it may change.
    wait
        How to wait for some seconds; a waiter that is woken early just tries earlier.
    store
        Whose ``on_wait`` is called.

    Raises
    ------
    StoreError
        The first lasting error, or the last passing one when time is up.
    """
    pause = first
    waiting = False
    try:
        while True:
            try:
                return action()
            except StoreError as exc:
                now, end = time.monotonic(), deadline() if callable(deadline) else deadline
                if not exc.transient or now + pause > end:
                    raise
                if store is not None and not isinstance(exc, UnconfirmedError):
                    waiting = True
                    store.on_wait(wait_sentence(store.label, end - now, exc))
            wait(pause * random.uniform(0.5, 1.0))  # noqa: S311 - jitter, not a secret
            pause = min(longest, pause * 2)
    finally:
        if waiting and store is not None:
            store.on_wait("")


def wait_sentence(label: str, left: float, error: object) -> str:
    """Return what a job says while it waits for a file system that users call ``label``."""
    return f"waiting for {label} ({max(0.0, left):.0f} s left): {error}"[:500]


def temporary_name(path: str) -> str:
    """A sibling of ``path`` that readers skip and nobody else uses."""
    from submarine_runtime.protocol.layout import TEMPORARY_PREFIX

    directory, _, name = path.rpartition("/")
    unique = f"{TEMPORARY_PREFIX}{name}-{os.urandom(6).hex()}"
    return f"{directory}/{unique}" if directory else unique
