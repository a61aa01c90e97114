"""Start one run of the user's program and send its signals; it ends with the agent.

``ending`` determines why the program ended.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from typing import IO, Iterable, Mapping, Sequence

from submarine_runtime.files import share_log
from submarine_runtime.processes import Guard, ProcessTree, read_process, related_processes


class Program:
    """The user's program, in its own session.

    Parameters
    ----------
    command
        Arguments to execute.
    stdout, stderr
        Files for its output; opened for appending, so that a truncation by the user's code is
        harmless.
    guard
        The guard of its helpers; None: a new one.
    stdin
        Descriptor of its standard input; -1: empty.

    Raises
    ------
    OSError
        If it cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        directory: str,
        environment: Mapping[str, str],
        stdout: str,
        stderr: str,
        guard: Guard | None = None,
        stdin: int = -1,
    ) -> None:
        self._groups: frozenset[int] = frozenset()
        self._signals: set[int] = set()
        self._guard = guard or Guard()
        try:
            with open_log(stdout) as out, open_log(stderr) as err:
                self.started = time.time()
                self._process = subprocess.Popen(
                    list(command),
                    cwd=directory,
                    env=dict(environment),
                    stdin=subprocess.DEVNULL if stdin < 0 else stdin,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                )
        except BaseException:
            self._guard.release()
            raise
        self.pid = self._process.pid
        #: Measurements of its processes; the monitor samples it.
        self.tree = ProcessTree(self.pid)
        self.guard(frozenset({self.pid}))

    def guard(self, groups: Iterable[int]) -> None:
        """Set the process groups that the guard kills when the agent has ended."""
        self._groups = frozenset(groups) | {self.pid}
        self._guard.watch(self._groups)

    def poll(self) -> int | None:
        """Return the exit status as subprocess does (negative for a signal); None while it runs."""
        return self._process.poll()

    def sent(self, number: int) -> bool:
        """Return whether this object has sent this signal."""
        return number in self._signals

    def signal(self, number: int) -> None:
        """Send a signal to all known process groups of the program."""
        self._signals.add(number)
        for group in self._groups:
            # Until it is reaped, the program's own group id is not reused.
            if group == self.pid and self._process.returncode is not None:
                continue
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, number)

    def end_remaining_processes(self, known: Mapping[int, int], grace: float = 1.0) -> int:
        """End the processes that the program left behind; return how many there were.

        Parameters
        ----------
        known
            Processes that were observed below it, pid -> start time: one in its own session is no
            longer connected to it after the end of its parent.
        """
        left = self._remaining_processes(known)
        count = len(left)
        self._send(left, signal.SIGTERM)
        deadline = time.monotonic() + grace
        while left and time.monotonic() < deadline:
            time.sleep(0.05)
            left = self._remaining_processes(known)
        for _ in range(20):
            if not left:
                break
            self._send(left, signal.SIGKILL)
            time.sleep(0.05)
            left = self._remaining_processes(known)
        return count

    def _remaining_processes(self, known: Mapping[int, int]) -> list[int]:
        # A session's id is not given to a new process while one of its members runs.
        left = set(related_processes(self.pid))
        for pid, start in known.items():
            process = read_process(pid)
            if process is not None and process.start == start and not process.zombie:
                left |= {pid, *related_processes(pid)}
        return sorted(left - {os.getpid()})

    @staticmethod
    def _send(pids: Iterable[int], number: int) -> None:
        for pid in pids:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def release(self) -> None:
        """End the guard after the end of the program."""
        self._guard.release()


def open_log(path: str) -> IO[bytes]:
    """Open a log file for the user alone, and for YARN where the container's directory says so."""
    file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")
    share_log(file.fileno(), os.path.dirname(path) or ".")
    return file
