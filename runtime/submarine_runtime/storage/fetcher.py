"""Copy many files from a store to the local disk: several at once, resumed after errors.

``agent.preparation.inputs`` and ``snapshots.restoration`` choose the files.
"""

from __future__ import annotations

import os
import threading
import time
from queue import Empty, SimpleQueue
from typing import BinaryIO, Callable, Iterator, NamedTuple, Sequence, TypeVar
from zlib import crc32

from submarine_runtime.files import replace_file
from submarine_runtime.storage.local import make_directories
from submarine_runtime.storage.retries import retry, wait_sentence
from submarine_runtime.storage.store import Store, StoreError
from submarine_runtime.translation import _

T = TypeVar("T")
THREADS = 4
REPORT_SECONDS = 0.5


class FileRequest(NamedTuple):
    """A file to fetch: source, target and size; offset and CRC-32 if known."""

    source: str
    target: str
    size: int
    offset: int = 0
    crc: int | None = None
    modified_ns: int | None = None

    def local_size(self) -> int:
        """Return the size of the target if it is complete, else 0."""
        try:
            size = os.stat(self.target).st_size
            return size if size == self.size else 0
        except OSError:
            return 0


class DamagedError(StoreError):
    """The fetched bytes are not those that were saved.

    ``part`` is the task that saved them, if files of several tasks were fetched.
    """

    part = ""


class _StopRequest(Exception):  # noqa: N818 - not an error: it was requested
    pass


class Fetcher:
    """Fetches files from ``store`` with several threads.

    Parameters
    ----------
    grace
        Seconds for which the store may be unavailable before an error.
    quiet
        Do not display a wait, because no program waits for the files.
    """

    def __init__(self, store: Store, grace: float, quiet: bool = False) -> None:
        self._store = store
        self._quiet = quiet
        self._grace = grace
        self._lock = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._stop = threading.Event()
        self._done = 0
        self._failure: BaseException | None = None

    def retry(self, action: Callable[[], T]) -> T:
        """Retry ``action`` while the store is unavailable, for ``grace`` seconds."""
        store = None if self._quiet else self._store
        return retry(action, time.monotonic() + self._grace, store=store)

    def _report_wait(self, sentence: str) -> None:
        if not self._quiet:
            self._store.on_wait(sentence)

    def _wait(self, seconds: float) -> None:
        if self._stop.wait(seconds):
            raise _StopRequest

    def fetch(
        self,
        requests: Sequence[FileRequest],
        on_progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        """Fetch all files; return when every file is complete.

        Raises
        ------
        StoreError, OSError
            The first error of a source or of the local disk; the other transfers are stopped.
        """
        self._begin()
        total = sum(file.size for file in requests)
        queue: SimpleQueue[FileRequest] = SimpleQueue()
        # The largest first, so that it is not the only one left at the end.
        for file in sorted(requests, key=lambda file: -file.size):
            queue.put(file)
        threads = [
            threading.Thread(target=self._work, args=(queue,), name=f"fetch-{n}", daemon=True)
            for n in range(min(THREADS, len(requests)))
        ]
        on_progress(0, total)
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(REPORT_SECONDS)
                    on_progress(min(self._done, total), total)
        finally:
            self._stop.set()
            self._report_wait("")
        if self._failure is not None:
            raise self._failure
        on_progress(total, total)

    def _work(self, queue: SimpleQueue[FileRequest]) -> None:
        try:
            while not self._stop.is_set():
                self._one(queue.get_nowait())
        except (Empty, _StopRequest):
            pass
        except BaseException as exc:
            with self._lock:
                self._failure = self._failure or exc
            self._stop.set()

    def _one(self, file: FileRequest) -> None:
        if file.local_size() and file.crc is None:
            self._count(file.size)
            return
        make_directories(os.path.dirname(file.target))
        replace_file(file.target, lambda target: self._write(file, target), mode=0o600)

    def _write(self, file: FileRequest, target: BinaryIO) -> None:
        crc = 0
        for block in self._blocks(file):
            target.write(block)
            self._count(len(block))
            if file.crc is not None:
                crc = crc32(block, crc)
        if file.crc is not None and crc != file.crc:
            raise DamagedError(
                _("the content of {source} differs from what was saved").format(source=file.source)
            )
        if file.modified_ns is not None:
            target.flush()
            os.utime(target.fileno(), ns=(file.modified_ns, file.modified_ns))

    def _blocks(self, file: FileRequest) -> Iterator[bytes]:
        """Yield all bytes of a file; resume after an error, with a new grace after progress."""
        got = 0
        last = time.monotonic()
        waiting = False
        while got < file.size:
            before = got
            try:
                for block in self._store.stream(file.source, file.offset + got, file.size - got):
                    got += len(block)
                    if waiting:
                        waiting = False
                        self._report_wait("")
                    yield block
                    if self._stop.is_set():
                        raise _StopRequest
                if got < file.size:
                    raise DamagedError(
                        _(
                            "{source} has {offset} bytes and {offset_2} were expected: it was "
                            "changed or cut off"
                        ).format(
                            source=file.source,
                            offset=file.offset + got,
                            offset_2=file.offset + file.size,
                        )
                    )
            except StoreError as exc:
                now = time.monotonic()
                if got > before:
                    last = now
                left = self._grace - (now - last)
                if not exc.transient or left < 0:
                    raise
                self._report_wait(wait_sentence(self._store.label, left, exc))
                waiting = True
                self._wait(min(5.0, 0.2 + (now - last) / 4))

    def _count(self, size: int) -> None:
        with self._lock:
            self._done += size
