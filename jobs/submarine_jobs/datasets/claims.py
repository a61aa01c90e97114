"""Let one client at a time write or remove the content of a digest.

The claim is a file that its holder publishes again every few seconds. A claim that has not changed
for longer is that of a client that has ended, and is taken over. Times of different machines are
not compared. The claim only avoids a second upload: all files of a content are published by rename
and have the same bytes from each client.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from submarine_jobs.errors import ClusterError
from submarine_jobs.storage import Storage

#: Seconds between two publications of a claim, and without one until it is taken over.
RENEW_EVERY, STALE_AFTER = 3.0, 30.0
_POLL = 0.2


@contextmanager
def claimed(
    storage: Storage, path: str, finished: Callable[[], bool] = lambda: False
) -> Iterator[bool]:
    """Hold the claim at ``path`` inside the ``with`` block.

    Parameters
    ----------
    finished
        Whether another client has done the work; called while waiting for its claim.

    Yields
    ------
    bool
        False if ``finished`` returned true; the claim is then not held.
    """
    if not _acquire(storage, path, finished):
        yield False
        return
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(RENEW_EVERY):
            with suppress(ClusterError, OSError):  # the file system may be away for a while
                storage.publish(path, _content())

    thread = threading.Thread(target=renew, daemon=True, name="submarine-dataset-claim")
    thread.start()
    try:
        yield True
    finally:
        ended.set()
        thread.join()
        with suppress(ClusterError, OSError):
            storage.delete(path)


def _acquire(storage: Storage, path: str, finished: Callable[[], bool]) -> bool:
    last, since = b"", time.monotonic()
    while not _published(storage, path):
        if finished():
            return False
        try:
            current = storage.read(path)
        except FileNotFoundError:
            continue
        if current != last:
            last, since = current, time.monotonic()
        elif time.monotonic() - since > STALE_AFTER:
            storage.delete(path)
            last, since = b"", time.monotonic()
            continue
        time.sleep(_POLL)
    return True


def _published(storage: Storage, path: str) -> bool:
    try:
        return storage.publish_exclusive(path, _content())
    except FileNotFoundError:
        return False  # It existed, and was removed before its content could be compared.


def _content() -> bytes:
    # Different at each publication: `publish_exclusive` accepts equal content, and waiting clients
    # compare it.
    return f"{socket.gethostname()} {os.getpid()} {uuid.uuid4().hex}\n".encode()
