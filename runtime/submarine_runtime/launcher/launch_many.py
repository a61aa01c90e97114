"""Starts several processes of one program in one container; copied beside ``launch.py``.

``python launch_many.py ORDERS``, where ORDERS is a JSON file with ``command`` and ``variables``, a
list with the variables of each process. Ends the rest when one fails, and ends as that one did;
ends with 0 when all have ended well. Gives nothing back but its own end.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

TYPE_CHECKING = False  # importing typing would cost the program's start some milliseconds
if TYPE_CHECKING:
    from typing import Any

#: Seconds between SIGTERM and SIGKILL for the processes that are left.
GRACE = 10.0


def main() -> int:
    """Start all and wait; the exit status."""
    with open(sys.argv[1], encoding="utf-8") as file:
        orders = json.load(file)
    signal.signal(signal.SIGTERM, _told_to_end)
    running: dict[int, subprocess.Popen[bytes]] = {}
    try:
        for number, variables in enumerate(orders["variables"]):
            own = {**variables, "SUBMARINE_PROCESS": str(number)}
            process = subprocess.Popen(orders["command"], env={**os.environ, **own})
            running[process.pid] = process
        status = _first_failure(running)
    except _ToldToEnd:
        status = -signal.SIGTERM
    _end(running)
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


class _ToldToEnd(BaseException):
    """SIGTERM came; the whole process group has it too."""


def _told_to_end(*_: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise _ToldToEnd


def _first_failure(running: dict[int, subprocess.Popen[bytes]]) -> int:
    """Wait until all have ended well (0) or one has not: its exit status, negative for a signal."""
    while running:
        pid, status = os.wait()
        process = running.pop(pid, None)
        if process is None:
            continue  # an orphan that was given to us
        process.returncode = code = _code(status)
        if code != 0:
            return code
    return 0


def _end(running: dict[int, subprocess.Popen[bytes]]) -> None:
    for process in running.values():
        process.terminate()
    deadline = time.monotonic() + GRACE
    while time.monotonic() < deadline and any(one.poll() is None for one in running.values()):
        time.sleep(0.02)
    for process in running.values():
        process.kill()
        process.wait()


def _code(status: int) -> int:
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


if __name__ == "__main__":
    sys.exit(main())
