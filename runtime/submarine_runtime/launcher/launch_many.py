"""Start several processes of one program in one container; copied beside ``launch.py``.

``python launch_many.py ORDERS``, where ORDERS is a JSON file with ``command`` and ``variables``, a
list with the variables of each process. When one process fails, the others are ended and this
process ends in the same way. Otherwise it ends with 0 after all processes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

TYPE_CHECKING = False  # Importing typing would delay the program's start by some milliseconds.
if TYPE_CHECKING:
    from typing import Any

#: Seconds between SIGTERM and SIGKILL for the remaining processes.
GRACE = 10.0


def main() -> int:
    """Start all processes, wait for them, and return the exit status."""
    with open(sys.argv[1], encoding="utf-8") as file:
        orders = json.load(file)
    signal.signal(signal.SIGTERM, _on_sigterm)
    running: dict[int, subprocess.Popen[bytes]] = {}
    try:
        for number, variables in enumerate(orders["variables"]):
            own = {**variables, "SUBMARINE_PROCESS": str(number)}
            process = subprocess.Popen(orders["command"], env={**os.environ, **own})
            running[process.pid] = process
        status = _first_failure(running)
    except _SigtermInterrupt:
        status = -signal.SIGTERM
    _end(running)
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


class _SigtermInterrupt(BaseException):
    """SIGTERM has arrived; the whole process group receives it."""


def _on_sigterm(*_: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise _SigtermInterrupt


def _first_failure(running: dict[int, subprocess.Popen[bytes]]) -> int:
    """Return the first nonzero exit status, negative for a signal; 0 if all processes succeed."""
    while running:
        pid, status = os.wait()
        process = running.pop(pid, None)
        if process is None:
            continue  # An orphan of the user's program.
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
