"""The verb ``supervise``: start the coordinator, and start it again when it is killed or hangs.

The supervisor ends with its parent, the application master, because only that can place containers.
It forwards SIGTERM, so that the coordinator can publish what it knows.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from types import FrameType
from typing import Sequence

from submarine_runtime.coordinator.supervision.liveness import LivenessFile
from submarine_runtime.processes import ProcessIdentity

USAGE = "usage: python -I runtime.zip supervise --directory DIR"
#: Maximal number of restarts within a window of seconds.
MAX_RESTARTS = 8
RESTART_WINDOW = 600.0
#: Seconds between two checks of the parent.
POLL_SECONDS = 0.25
#: Seconds without a turn of the event loop after which the coordinator is killed. A new one must
#: answer the agents before they end their programs.
HANG_SECONDS = 10.0
MAX_BACKOFF = 10.0
#: Exit code of a coordinator after an internal error; the next one continues from its journal.
INTERNAL_ERROR_CODE = 70
#: Seconds that a coordinator has after the end of the parent.
LAST_SECONDS = 5.0


class Supervisor:
    """Keep one coordinator running in ``directory``."""

    def __init__(self, directory: str) -> None:
        self._command = [sys.executable, "-I", sys.argv[0], "coordinator"]
        # Not determined by the coordinator: after the end of the application master the supervisor
        # has another parent.
        parent = ProcessIdentity.of(os.getppid()) if os.getppid() > 1 else None
        self._command += ["--master", str(parent or ""), "--directory", directory]
        self._liveness = LivenessFile(directory)
        self._parent = os.getppid()
        self._child: subprocess.Popen[bytes] | None = None
        self._stop_requested = False

    def run(self) -> int:
        """Run until the coordinator ends by itself; return its exit code."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._forward_signal)
        # It stays pending, so `sigtimedwait` notices each end of the coordinator.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        restarts: list[float] = []
        while True:
            self._liveness.remove()  # A killed coordinator leaves its file.
            self._child = subprocess.Popen(self._command, preexec_fn=_prepare_child)
            code = self._wait(self._child)
            if self._stop_requested or (code >= 0 and code != INTERNAL_ERROR_CODE):
                return code if code >= 0 else 1
            now = time.monotonic()
            restarts = [at for at in restarts if now - at < RESTART_WINDOW]
            if len(restarts) >= MAX_RESTARTS:
                _log(f"the coordinator ended {MAX_RESTARTS + 1} times; it is not started again")
                return 1
            _log(f"the coordinator ended with {code}; it is started again")
            # No pause before the first restart: agents are waiting.
            time.sleep(min(MAX_BACKOFF, 0.5 * (2 ** len(restarts) - 1)))
            restarts.append(now)

    def _wait(self, child: subprocess.Popen[bytes]) -> int:
        orphaned: float | None = None
        while child.poll() is None:
            # Not `child.wait`, which polls many times a second.
            signal.sigtimedwait({signal.SIGCHLD}, POLL_SECONDS)
            unchanged = self._liveness.seconds_unchanged()
            if unchanged > HANG_SECONDS:
                _log(f"the coordinator has hung for {unchanged:.0f} s; it is killed")
                child.kill()
            if os.getppid() != self._parent:
                if orphaned is None:
                    orphaned = time.monotonic()
                    self._stop_requested = True
                    child.send_signal(signal.SIGUSR1)
                elif time.monotonic() - orphaned > LAST_SECONDS:
                    child.kill()
        return int(child.returncode)

    def _forward_signal(self, number: int, frame: FrameType | None) -> None:
        self._stop_requested = True
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(signal.SIGTERM)


def _prepare_child() -> None:
    """Unblock SIGCHLD, and let the kernel signal the coordinator when the supervisor dies."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGUSR1)  # PR_SET_PDEATHSIG


def _log(sentence: str) -> None:
    with suppress(OSError):  # A full disk must not end the supervisor.
        os.write(2, f"submarine supervisor: {sentence}\n".encode())


def main(arguments: Sequence[str]) -> int:
    """Run until the job is over; return 2 for invalid arguments."""
    if len(arguments) != 2 or arguments[0] != "--directory":
        sys.stderr.write(USAGE + "\n")
        return 2
    return Supervisor(os.path.abspath(arguments[1])).run()
