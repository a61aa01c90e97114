"""The drivers of Zeppelin's users: a Java process each, in use while a process of the group is.

A user's state directory is Zeppelin's alone (``users``), so only processes of the group use the
driver in it; each holds a shared lock of a file there for as long as it lives, and the last of
them, when it ends in order, ends the driver. A process that is killed leaves that to the driver's
own idle time. The driver of Zeppelin's account may be anybody's and is left alone.
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
_IN_USE = "in-use"

_lock = threading.Lock()
_held: dict[Path, TextIO] = {}


def hold(profile: Profile) -> None:
    """Take note that this process uses the drivers of a profile's user."""
    own = profile.state_dir
    if own == common_state_dir(profile):
        return
    with _lock:
        if own in _held:
            return
        make_private(own)
        stream = (own / _IN_USE).open("w")
        fcntl.flock(stream, fcntl.LOCK_SH)
        _held[own] = stream


def release() -> None:
    """End the drivers that nobody else uses, side by side; this process uses none any more."""
    with _lock:
        held = dict(_held)
        _held.clear()
    threads = [threading.Thread(target=_end, args=one, daemon=True) for one in held.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _end(own: Path, stream: TextIO) -> None:
    from submarine_jobs.backends.yarn.driver import stop_directory

    with stream, contextlib.suppress(BlockingIOError):
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for directory in (own / "driver").glob("*"):
            if stop_directory(directory):
                log.info("the driver of %s has ended with its last user", own.name)
