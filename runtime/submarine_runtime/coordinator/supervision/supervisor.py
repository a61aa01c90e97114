"""The verb ``supervise``: starts the coordinator, and starts it again when it is killed or hangs.

Dies with its parent, the application master, without which nothing can be placed. A SIGTERM is
passed on, so that the coordinator can publish its last words.
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

from submarine_runtime.coordinator.supervision.liveness import Pulse
from submarine_runtime.coordinator.supervision.process_identity import parent_identity

USAGE = "usage: python -I runtime.zip supervise --directory DIR"
#: Most restarts; and the seconds after which an earlier one is forgiven.
MAX_RESTARTS = 8
FORGIVEN_SECONDS = 600.0
#: Seconds between two looks at the parent.
LOOK_SECONDS = 0.25
#: Seconds without a pulse after which a coordinator hangs: long for a loop of half a second, and
#: so short that a new one is there before agents that are not answered end their programs.
HANG_SECONDS = 10.0
LONGEST_BACKOFF = 10.0
#: Exit code of a coordinator that failed in itself; its journal serves the next one.
CRASHED = 70
#: Seconds that a coordinator has for its last words once the parent is gone.
LAST_WORDS = 5.0


class Supervise:
    """Keeps one coordinator running in ``directory``."""

    def __init__(self, directory: str) -> None:
        self._command = [sys.executable, "-I", sys.argv[0], "coordinator"]
        self._command += ["--master", parent_identity(), "--directory", directory]
        self._pulse = Pulse(directory)
        self._parent = os.getppid()
        self._child: subprocess.Popen[bytes] | None = None
        self._told = False

    def run(self) -> int:
        """Until the coordinator ends by itself; its exit code."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._pass_on)
        restarts: list[float] = []
        while True:
            self._pulse.stop()  # that of one who was killed
            self._child = subprocess.Popen(self._command, preexec_fn=_die_with_us)
            code = self._wait(self._child)
            if self._told or (code >= 0 and code != CRASHED):
                return code if code >= 0 else 1
            now = time.monotonic()
            restarts = [moment for moment in restarts if now - moment < FORGIVEN_SECONDS]
            if len(restarts) >= MAX_RESTARTS:
                _say(f"the coordinator ended {MAX_RESTARTS + 1} times; it is not started again")
                return 1
            _say(f"the coordinator ended with {code}; it is started again")
            # At once the first time: agents are waiting.
            time.sleep(min(LONGEST_BACKOFF, 0.5 * (2 ** len(restarts) - 1)))
            restarts.append(now)

    def _wait(self, child: subprocess.Popen[bytes]) -> int:
        orphaned: float | None = None
        while True:
            with suppress(subprocess.TimeoutExpired):
                return child.wait(LOOK_SECONDS)
            silence = self._pulse.silence()
            if silence > HANG_SECONDS:
                _say(f"the coordinator has hung for {silence:.0f} s; it is killed")
                child.kill()
            if os.getppid() != self._parent:
                if orphaned is None:
                    orphaned = time.monotonic()
                    self._told = True
                    child.send_signal(signal.SIGUSR1)
                elif time.monotonic() - orphaned > LAST_WORDS:
                    child.kill()

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        self._told = True
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(signal.SIGTERM)


def _die_with_us() -> None:
    """A coordinator without supervisor would be nobody's: the kernel tells it."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGUSR1)  # PR_SET_PDEATHSIG


def _say(sentence: str) -> None:
    with suppress(OSError):  # a full disk must not end the supervisor
        os.write(2, f"submarine supervisor: {sentence}\n".encode())


def main(arguments: Sequence[str]) -> int:
    """Run until the job is over; 2 for orders that make no sense."""
    if len(arguments) != 2 or arguments[0] != "--directory":
        sys.stderr.write(USAGE + "\n")
        return 2
    return Supervise(os.path.abspath(arguments[1])).run()
