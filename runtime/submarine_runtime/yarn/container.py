"""Properties of this container, and its own log."""

from __future__ import annotations

import os
import socket
import time
import traceback
from contextlib import suppress
from typing import Callable, Sequence

#: Seconds between two lines about a wait in the container's log.
LOG_SECONDS = 60.0
#: The NodeManager writes this file into a container's directory after all its files are localized.
LAUNCH_SCRIPT = "launch_container.sh"


def reachable_host(listen: str) -> str:
    """Return the host name under which other hosts connect to a listener on ``listen``."""
    if listen not in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        return listen
    return os.environ.get("NM_HOST") or socket.getfqdn()


def skein_started_container() -> bool:
    """Return whether skein started this container, so that there may be a page."""
    return bool(os.environ.get("SKEIN_APPMASTER_ADDRESS"))


def write_log(sentence: str) -> None:
    """Write to the container's own log, which is not the job's; ignore a full disk."""
    write_error(f"submarine agent: {sentence}\n")


def wait_reporter(show: Callable[[str], None]) -> Callable[[str], None]:
    """Return a function for ``Store.on_wait``: it calls ``show`` and logs some of the texts.

    The container's log gets the first text and then one a minute.
    """
    logged = -LOG_SECONDS

    def report(sentence: str) -> None:
        nonlocal logged
        show(sentence)
        now = time.monotonic()
        if sentence and now - logged >= LOG_SECONDS:
            logged = now
            write_log(sentence)

    return report


def write_error(text: str) -> None:
    """Write to stderr without a buffer: a full disk raises nothing and changes no exit code."""
    with suppress(OSError):
        os.write(2, text.encode("utf-8", "replace"))


def write_traceback() -> None:
    """Write the exception that is being handled to the container's own log."""
    write_error(traceback.format_exc())


def first_change(paths: Sequence[str]) -> float | None:
    """Return the time of the earliest change of these files; None if none exists."""
    times = []
    for path in paths:
        with suppress(OSError):
            times.append(os.stat(path).st_ctime)
    return min(times) if times else None
