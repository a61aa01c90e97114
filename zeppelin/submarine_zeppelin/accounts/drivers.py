"""Stop the YARN driver (a Java process) of each Zeppelin user with the last process that uses it.

Only interpreter processes use the state directory of a Zeppelin user and the driver in it. Each
process holds a shared lock on a file in that directory. The last process stops the driver when it
shuts down; if it is killed, the driver stops after its idle time. The driver of Zeppelin's account
may have other users and is not stopped.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import threading
from pathlib import Path
from typing import TextIO

from submarine_jobs.config import make_private
from submarine_jobs.model import Profile
from submarine_zeppelin.accounts.users import common_state_dir

log = logging.getLogger(__name__)
_LOCK_FILE = "in-use"

_lock = threading.Lock()
_held: dict[Path, TextIO] = {}


def hold_driver(profile: Profile) -> None:
    """Record that this process uses the drivers of the profile's user."""
    own = profile.state_dir
    if own == common_state_dir(profile):
        return
    with _lock:
        if own in _held:
            return
        make_private(own)
        # Not `filelock`: its locks are exclusive.
        stream = (own / _LOCK_FILE).open("w")
        fcntl.flock(stream, fcntl.LOCK_SH)
        _held[own] = stream


def release_drivers() -> None:
    """Release all drivers of this process, and stop unused ones in parallel."""
    with _lock:
        held = dict(_held)
        _held.clear()
    threads = [threading.Thread(target=_stop, args=one, daemon=True) for one in held.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _stop(own: Path, stream: TextIO) -> None:
    # cost: memory, before a process stops.
    from submarine_jobs.backends.yarn.driver import stop_directory

    with stream, contextlib.suppress(BlockingIOError):
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for directory in (own / "driver").glob("*"):
            if stop_directory(directory):
                log.info("stopped the driver of %s", own.name)
