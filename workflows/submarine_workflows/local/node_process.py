"""One attempt of one node: its commands one after the other, its log, its end.

Each command has a process group of its own. Does not know why the node runs or what follows.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path

from submarine_jobs.text import printable
from submarine_workflows.local.keeper import GRACE, Keeper
from submarine_workflows.model import data_waited_for, is_notebook

_GATE = str(Path(__file__).with_name("gate.py"))
#: Seconds that what a command leaves in its group has after it.
_LEFT_OVER = 5.0
#: The code of a command that has waited long enough.
_LATE = 124
_TAIL = 8 << 10
#: The last line of a headless run that failed; see ``headless.report``.
_FAILURE = re.compile(r" {4}(?:failed after|ended after|was not saved there)[^:]{1,60}: (.+)")


@dataclass(frozen=True)
class Work:
    """What is to be done.

    Attributes
    ----------
    commands
        Each as words.
    log
        File that takes the commands' output; appended to.
    """

    commands: Sequence[Sequence[str]]
    environ: Mapping[str, str]
    folder: Path
    log: Path


@dataclass(frozen=True)
class End:
    """How it ended: a code as shells have them, and a sentence where it did not end well."""

    code: int
    reason: str = ""
    stopped: bool = False


@dataclass
class NodeProcess:
    """The attempt, in a thread of its own."""

    work: Work
    keeper: Keeper
    ended: Callable[[End], None]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _process: subprocess.Popen[bytes] | None = None
    _stopped: bool = False

    def start(self) -> None:
        """Begin; ``ended`` is called once, from another thread."""
        threading.Thread(target=self._run, name="submarine-node", daemon=True).start()

    def stop(self, *, hard: bool = False) -> None:
        """Ask the command to end, and end it after the grace; ``hard``: end it now."""
        with self._lock:
            first, self._stopped = not self._stopped, True
            process = self._process
            # Said once: a second SIGTERM means more than a first to many programs.
            if process is not None and (first or hard):
                _signal(process.pid, signal.SIGKILL if hard else signal.SIGTERM)
        if process is not None and first and not hard:
            timer = threading.Timer(GRACE, self._end, (process,))
            timer.daemon = True
            timer.start()

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            if self._process is process:  # not reaped yet: the number is still its own
                _signal(process.pid, signal.SIGKILL)

    def _run(self) -> None:
        try:
            end = self._all()
        except OSError as exc:
            end = End(126, f"It cannot be started: {exc.strerror or exc}.")
        except Exception as exc:  # an end must be told, whatever happened
            end = End(126, f"It cannot be started: {type(exc).__name__}: {exc}.")
        self.ended(end)

    def _all(self) -> End:
        if not self.work.folder.is_dir():
            return End(126, f"Its working directory {self.work.folder} is not there.")
        with FileIO(self.work.log, "a") as log:
            for number, words in enumerate(self.work.commands, 1):
                _say(log, f"$ {shlex.join(words)}")
                began, whole = time.monotonic(), log.tell()
                code = self._one(words, log)
                if code is None:
                    return End(143, "It was stopped.", stopped=True)
                _say(log, f"(code {code} after {time.monotonic() - began:.1f} s)")
                if self._stopped:
                    return End(code or 143, "It was stopped.", stopped=True)
                if code:
                    late = data_waited_for(words) if code == _LATE else ""
                    said = f"{late} was not there in time." if late else ""
                    last = _notebook_failure(self.work.log, whole) if is_notebook(words) else ""
                    return End(code, said or _reason(code, number, len(self.work.commands), last))
        return End(0)

    def _one(self, words: Sequence[str], log: FileIO) -> int | None:
        """The code of one command; None: it was not started any more."""
        if not words:
            raise OSError(0, "its command is empty")
        reader, writer = os.pipe()
        try:
            with self._lock:
                if self._stopped:
                    return None
                self._process = process = subprocess.Popen(
                    [sys.executable, "-I", "-S", _GATE, *words],
                    stdin=reader,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=self.work.folder,
                    env=dict(self.work.environ),
                    start_new_session=True,
                )
            try:
                self.keeper.add(process.pid)
                os.write(writer, b"g")
            except OSError:
                _signal(process.pid, signal.SIGKILL)
                raise
            finally:
                self._wait(process)
        finally:
            os.close(reader)
            os.close(writer)
        code = process.returncode
        return code if code >= 0 else 128 - code

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        """Until it has ended and its group is empty; its number is given back last."""
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        _signal(process.pid, signal.SIGTERM)
        with self._lock:
            self._process = None
        self.keeper.remove(process.pid)
        process.wait()
        deadline = time.monotonic() + _LEFT_OVER
        while _signal(process.pid, 0):
            if time.monotonic() > deadline:
                _signal(process.pid, signal.SIGKILL)
                break
            time.sleep(0.05)


def _signal(group: int, number: int) -> bool:
    """Whether there was a group to take it."""
    try:
        os.killpg(group, number)
    except OSError:
        return False
    return True


def _say(log: FileIO, text: str) -> None:
    with suppress(OSError):  # a full disk: the command itself may have nothing to write
        log.write(text.encode("utf-8", "replace") + b"\n")


def _notebook_failure(log: Path, since: int) -> str:
    """Why a headless run failed: what the last line of its output says, below ``since`` bytes."""
    try:
        with log.open("rb") as file:
            file.seek(max(since, file.seek(0, os.SEEK_END) - _TAIL))
            lines = file.read(_TAIL).decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    found = next((said for line in reversed(lines) if (said := _FAILURE.search(line))), None)
    return printable(found[1], 500) if found else ""


def _reason(code: int, number: int, count: int, failure: str = "") -> str:
    which = f"Command {number} of {count}" if count > 1 else "Its command"
    if code == 127:
        return f"{which} was not found."
    if code > 128:
        with suppress(ValueError):
            return f"{which} was ended by {signal.Signals(code - 128).name}."
    if failure:
        return f"{which} ended with code {code}. {failure}"
    return f"{which} ended with code {code}."
