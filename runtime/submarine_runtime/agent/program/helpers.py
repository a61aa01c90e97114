"""Helper processes of a framework, started before the program.

They may serve the programs of other tasks after the end of this one.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import Callable, Sequence

from submarine_runtime.agent.program.environment import OWN, runtime_path
from submarine_runtime.agent.program.failure import last_line
from submarine_runtime.frameworks import Helper
from submarine_runtime.processes import Guard
from submarine_runtime.translation import _

#: Seconds that a helper has to become ready.
READY_SECONDS = 60.0
_POLL_SECONDS = 0.01
_MAX_OUTPUT = 1 << 20


class HelperError(Exception):
    """A helper does not become ready; one sentence."""


class HelperProcesses:
    """The helpers of one attempt.

    Parameters
    ----------
    python
        The job's interpreter.
    ready
        File for stdout of all helpers, on which they announce that they are ready.
    log
        File for stderr of all helpers, a stream of the task's log.
    """

    def __init__(self, guard: Guard, python: str, directory: str, ready: str, log: str) -> None:
        self._guard = guard
        self._python = python
        self._directory = directory
        self._ready_file = ready
        self._log = log
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, helpers: Sequence[Helper], wait: Callable[[float], object]) -> None:
        """Start them in order, each after the previous one is ready.

        Raises
        ------
        HelperError
            If one ends, or is not ready in time.
        OSError
            If one cannot be started.
        """
        for helper in helpers:
            began = self._length()
            process = self._start(helper)
            deadline = time.monotonic() + READY_SECONDS
            while helper.ready and not self._ready(helper.ready, began):
                if process.poll() is not None:
                    said = last_line(self._log) or "nothing"
                    raise HelperError(
                        _("A helper ended before it was {ready!r}; its output was {said}").format(
                            ready=helper.ready, said=said
                        )
                    )
                if time.monotonic() > deadline:
                    late = _("was not {ready!r} in {ready_seconds:g} s").format(
                        ready=helper.ready, ready_seconds=READY_SECONDS
                    )
                    raise HelperError(_("A helper {late}.").format(late=late))
                wait(_POLL_SECONDS)

    def _start(self, helper: Helper) -> subprocess.Popen[bytes]:
        places = {"python": self._python, "agent": sys.executable, "runtime": runtime_path()}
        command = [part.format(**places) for part in helper.command]
        environment = {k: v for k, v in os.environ.items() if not k.startswith(OWN)}
        with open(self._ready_file, "ab") as ready, open(self._log, "ab") as log:
            process = subprocess.Popen(
                command,
                cwd=self._directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=ready,
                stderr=log,
                start_new_session=True,
            )
        self._running.append(process)
        self._guard.always(process.pid)
        return process

    def _length(self) -> int:
        try:
            return os.stat(self._ready_file).st_size
        except OSError:
            return 0

    def _ready(self, line: str, after: int) -> bool:
        try:
            with open(self._ready_file, "rb") as file:
                file.seek(after)
                said = file.read(_MAX_OUTPUT).decode("utf-8", "replace")
        except OSError:
            return False
        return line in said.split("\n")[:-1]

    def end(self) -> None:
        """Kill the helpers."""
        for process in self._running:
            if process.poll() is None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._running.clear()
