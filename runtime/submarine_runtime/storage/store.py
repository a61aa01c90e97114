"""The agent's interface to the job directory, and retries of its operations.

``local`` and ``webhdfs`` implement the interface.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Callable, Iterable, Iterator, NamedTuple, TypeVar

from submarine_runtime.protocol import NO_SPACE_CODE, STORE_UNAVAILABLE_CODE
from submarine_runtime.translation import _

T = TypeVar("T")


class StoreError(Exception):
    """The job directory rejected an operation.

    Parameters
    ----------
    message
        One sentence.
    transient
        Whether the same call may succeed later (a NameNode in safe mode, a refused connection).
    full
        Whether the reason is a full disk or an exceeded quota.
    """

    def __init__(self, message: str, transient: bool = False, full: bool = False) -> None:
        super().__init__(message)
        self.transient = transient
        self.full = full

    @property
    def exit_code(self) -> int:
        """Exit code of an agent or coordinator that failed because of this error."""
        if self.full:
            return NO_SPACE_CODE
        return STORE_UNAVAILABLE_CODE if self.transient else 1


class UnconfirmedError(StoreError):
    """The write gate rejected a change after a suspend; the file system was not accessed."""


class UnauthenticatedError(StoreError):
    """The sign-in failed: there is no valid ticket or token, or the server rejects it."""


class UntrustedError(StoreError):
    """The certificate of a server is not accepted."""


class NotFoundError(StoreError):
    """There is no file at the path."""


class Entry(NamedTuple):
    """A file or directory: base name, bytes, whether it is a directory, modification time.

    ``owner`` is the file system's name of its owner; empty: unknown. ``mode`` has the permission
    bits; 0: unknown. ``encrypted``: it is in an encryption zone of HDFS.
    """

    name: str
    size: int
    is_directory: bool
    modified: float
    owner: str = ""
    mode: int = 0
    encrypted: bool = False


class Appender(ABC):
    """A file that is being written; appended data is kept if this process is killed.

    Every method raises StoreError if the file system fails; the file cannot be used then.
    """

    @abstractmethod
    def append(self, data: bytes) -> None:
        """Send bytes; they need not be visible to readers before the file is closed."""

    @abstractmethod
    def close(self) -> None:
        """Complete the file."""

    @abstractmethod
    def abort(self) -> None:
        """Close the connection without completing the file; raises nothing."""


class Store(ABC):
    """A job directory; paths are relative to it, with ``/`` between their parts.

    An absolute path names any file of the same file system. Several threads may use one store.
    Every method makes one attempt, limited by the client's timeout, and raises StoreError.

    Attributes
    ----------
    operations
        NameNode operations so far (0 for a local directory).
    files
        Files published so far.
    publish_cost
        NameNode operations of an exclusive publish.
    gate
        Called before each change. A StoreError that it raises prevents the change (``write_gate``).
    on_wait
        Called by ``retry`` with the text that the job displays during the wait, and with an
        empty text at its end; in any thread.
    label
        Name of the file system for users.
    modes
        Absolute directory -> permission bits of directories that are created below it, and without
        the bits for execution of files. Elsewhere new files are private, or those of ``shared``.
    """

    publish_cost = 0
    label = _("the file system of the job directory")

    def __init__(self) -> None:
        self.operations = 0
        self.files = 0
        self.gate: Callable[[], None] = lambda: None
        self.on_wait: Callable[[str], None] = lambda sentence: None
        self.modes: dict[str, int] = {}

    def mode_of(self, path: str) -> int:
        """Return the bits of ``modes`` for a new directory at ``path``; 0: there are none."""
        places = (mode for top, mode in self.modes.items() if f"{path}/".startswith(f"{top}/"))
        return next(places, 0)

    @abstractmethod
    def read(self, path: str) -> bytes | None:
        """Return the whole of a small file; None if it does not exist."""

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Return whether ``path`` exists."""

    @abstractmethod
    def publish_exclusive(self, path: str, data: bytes) -> bool:
        """Publish a whole file unless the name is taken; return True too if it holds ``data``."""

    @abstractmethod
    def upload(self, path: str, source: str, offset: int = 0, length: int | None = None) -> int:
        """Publish a range of a local file by rename, replacing any; return the bytes sent.

        Parameters
        ----------
        source
            Path of the local file.
        offset, length
            Range in bytes; None: to the end.
        """

    @abstractmethod
    def publish(self, path: str, data: bytes) -> None:
        """Publish a whole small file by rename, replacing any."""

    @abstractmethod
    def put(self, path: str, blocks: Iterable[bytes], length: int) -> None:
        """Publish the bytes of ``blocks``, ``length`` in total, by rename, replacing any."""

    @abstractmethod
    def appender(self, path: str) -> Appender:
        """Create a file, replacing any, that grows until it is closed."""

    @abstractmethod
    def stat(self, path: str) -> Entry | None:
        """Return the entry of ``path``; None if it does not exist."""

    @abstractmethod
    def entries(self, path: str) -> list[Entry]:
        """Return the entries of a directory, in any order; none if it does not exist."""

    @abstractmethod
    def stream(self, path: str, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
        """Yield bytes of a file from ``offset`` in blocks; raise NotFoundError if there is none."""

    @abstractmethod
    def move(self, path: str, to: str) -> None:
        """Rename a file, replacing any other; the target's directory must exist."""

    @abstractmethod
    def delete(self, path: str, recursive: bool = False) -> None:
        """Remove a file or an empty directory, or a whole tree; no error if it does not exist."""

    @abstractmethod
    def make_directory(self, path: str) -> None:
        """Create a directory (0700) and its parents; no error if it exists."""
