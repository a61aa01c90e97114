"""Start several processes of one program in one container; copied beside ``launch.py``.

``python launch_many.py ORDERS``, where ORDERS is a JSON file with ``command``, ``variables`` (a
list with the variables of each process), ``labels`` (one for each process), ``failures`` (the file
of each in which it writes its exception) and ``consequence`` (a pattern of ``type: message`` of
exceptions that follow from the failure of another process). Each line of a process is written at
once, after its label. When one process fails, the others are ended and this process ends in the
same way. Otherwise it ends with 0 after all processes. ``exits.json`` beside ORDERS lists the ends.
"""

from __future__ import annotations

import array
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import termios
import threading
import time

TYPE_CHECKING = False  # Importing typing would delay the program's start by some milliseconds.
if TYPE_CHECKING:
    from typing import IO, Any

#: Seconds between SIGTERM and SIGKILL for the remaining processes.
GRACE = 10.0
#: Seconds that the others have to report an exception if the first failure is a consequence.
REPORT = 5.0
PAUSE = 0.02
#: A longer line is written in pieces.
MAX_LINE = 1 << 16
#: Seconds without output of children that a process left, after which it is no longer copied.
DRAIN = 1.0


class Processes:
    """All processes of the program, by their numbers.

    Attributes
    ----------
    exits
        Number, status, time and whether this object ended it, of each process that has ended.
    """

    def __init__(self, orders: dict[str, Any]) -> None:
        self.exits: list[dict[str, Any]] = []
        self._orders = orders
        self._running: dict[int, tuple[int, subprocess.Popen[bytes]]] = {}
        self._copies: list[LineCopy] = []
        self._stopping = False

    def start(self) -> None:
        """Start all."""
        lock = threading.Lock()
        labels = self._orders["labels"]
        for number, variables in enumerate(self._orders["variables"]):
            own = {**variables, "SUBMARINE_PROCESS": str(number)}
            process = subprocess.Popen(
                self._orders["command"],
                env={**os.environ, **own},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            self._running[process.pid] = (number, process)
            label = b"[" + labels[number].encode() + b"] "
            for source, target in ((process.stdout, 1), (process.stderr, 2)):
                assert source is not None
                copy = LineCopy(source, target, label, lock)
                copy.start()
                self._copies.append(copy)

    def first_failure(self) -> int:
        """Wait for the first failure; return its status, or 0 if all processes succeed."""
        while self._running:
            status = self._reap(0)
            if status:
                return status
        return 0

    def settle(self) -> None:
        """Let the process that failed first report its exception, and then exit by itself."""
        deadline = time.monotonic() + REPORT
        while self._running and time.monotonic() < deadline and self._only_consequences():
            self._reap(os.WNOHANG)
            time.sleep(PAUSE)
        deadline = time.monotonic() + GRACE
        while time.monotonic() < deadline and self._cleans_up():
            self._reap(os.WNOHANG)
            time.sleep(PAUSE)

    def end(self) -> None:
        """End the processes that still run, and finish their output."""
        self._stopping = True
        for _number, process in self._running.values():
            process.terminate()
        deadline = time.monotonic() + GRACE
        while self._running and time.monotonic() < deadline:
            self._reap(os.WNOHANG)
            time.sleep(PAUSE)
        for _number, process in self._running.values():
            process.kill()
        while self._running:
            self._reap(0)
        self._drain()

    def _drain(self) -> None:
        """Let the copies finish; they end before a child that keeps a pipe open."""
        deadline = time.monotonic() + GRACE
        quiet = time.monotonic() + DRAIN
        running = self._copies
        while running and time.monotonic() < min(quiet, deadline):
            time.sleep(PAUSE)
            running = [copy for copy in running if copy.is_alive()]
            if not all(copy.idle for copy in running):
                quiet = time.monotonic() + DRAIN

    def _only_consequences(self) -> bool:
        """Return whether all failures so far follow from that of another process."""
        failures = {n: _failure(name) for n, name in enumerate(self._orders["failures"])}
        for one in self.exits:
            if one["status"] not in (0, -signal.SIGABRT) and not failures[one["process"]]:
                return False
        pattern = re.compile(self._orders["consequence"], re.IGNORECASE)
        return all(pattern.search(text) for text in failures.values() if text)

    def _cleans_up(self) -> bool:
        """Return whether a process that still runs has reported an exception."""
        names = self._orders["failures"]
        return any(os.path.exists(names[number]) for number, _ in self._running.values())

    def _reap(self, options: int) -> int:
        pid, status = os.waitpid(-1, options)
        entry = self._running.pop(pid, None)
        if entry is None:
            return 0  # None has ended, or an orphan of the user's program.
        number, process = entry
        process.returncode = code = _code(status)
        self.exits.append(
            {"process": number, "status": code, "time": time.time(), "stopped": self._stopping}
        )
        return code


def main() -> int:
    """Start all processes, wait for them, and return the exit status."""
    with open(sys.argv[1], encoding="utf-8") as file:
        orders = json.load(file)
    signal.signal(signal.SIGTERM, _on_sigterm)
    processes = Processes(orders)
    try:
        processes.start()
        status = processes.first_failure()
        if status:
            processes.settle()
    except _SigtermInterrupt:
        status = -signal.SIGTERM
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    processes.end()
    with open(os.path.join(os.path.dirname(sys.argv[1]), "exits.json"), "w") as file:
        json.dump(processes.exits, file)
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


class LineCopy(threading.Thread):
    """Copies whole lines to a descriptor, each after a label; a carriage return ends a line too.

    Parameters
    ----------
    source
        A pipe. It is kept open: with the object of its process it would be closed.
    """

    def __init__(self, source: IO[bytes], target: int, label: bytes, lock: threading.Lock) -> None:
        super().__init__(daemon=True)
        self._source, self._target, self._label, self._lock = source, target, label, lock
        self._reads = False

    @property
    def idle(self) -> bool:
        """Whether it has copied all that was written so far."""
        return self._reads and not _unread(self._source)

    def run(self) -> None:
        """Copy until each process has closed the pipe."""
        rest = b""
        while True:
            self._reads = True
            piece = os.read(self._source.fileno(), 1 << 16)
            self._reads = False
            if not piece:
                break
            # A return may be the first half of the end of a line.
            lines = (rest + piece).replace(b"\r\n", b"\n").splitlines(keepends=True)
            rest = b""
            if lines and (lines[-1][-1:] != b"\n" and len(lines[-1]) < MAX_LINE):
                rest = lines.pop()
            self._write(b"".join(self._label + line for line in lines))
        if rest:
            self._write(self._label + rest + (b"" if rest.endswith(b"\r") else b"\n"))

    def _write(self, text: bytes) -> None:
        with self._lock:
            while text:
                text = text[os.write(self._target, text) :]


def _unread(source: IO[bytes]) -> int:
    """Return the number of bytes in a pipe."""
    count = array.array("i", [0])
    fcntl.ioctl(source.fileno(), termios.FIONREAD, count)
    return count[0]


def _failure(path: str) -> str:
    """Return ``type: message`` of a reported exception; empty: none was reported."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        return "{}: {}".format(found["type"], found["message"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


class _SigtermInterrupt(BaseException):
    """SIGTERM has arrived; the whole process group receives it."""


def _on_sigterm(*_: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise _SigtermInterrupt


def _code(status: int) -> int:
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


if __name__ == "__main__":
    sys.exit(main())
