"""One attempt of a node: run its commands in order, write the log, report the end.

Each command has its own process group.
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
from submarine_runtime.translation import _
from submarine_workflows.local.process_guard import GRACE, ProcessGuard
from submarine_workflows.model import awaited_url, is_notebook

_GATE = str(Path(__file__).with_name("gate.py"))
#: Seconds for processes that a command leaves in its group.
_LEFTOVER_GRACE = 5.0
#: Exit code of a command that timed out.
_TIMEOUT_CODE = 124
_MAX_LAST_OUTPUT = 8 << 10
#: Last line of a failed headless run; see ``headless.report``.
_FAILURE = re.compile(r" {4}(?:failed after|ended after|was not saved there)[^:]{1,60}: (.+)")


@dataclass(frozen=True)
class NodeWork:
    """Commands of one attempt of a node, with their directory, environment and log.

    Attributes
    ----------
    commands
        Commands as lists of words.
    log
        File to which output is appended.
    """

    commands: Sequence[Sequence[str]]
    environ: Mapping[str, str]
    folder: Path
    log: Path


@dataclass(frozen=True)
class AttemptResult:
    """Result of an attempt: exit code as in shells, and a sentence if it failed."""

    code: int
    reason: str = ""
    stopped: bool = False


@dataclass
class NodeProcess:
    """One attempt, in its own thread."""

    work: NodeWork
    guard: ProcessGuard
    ended: Callable[[AttemptResult], None]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _process: subprocess.Popen[bytes] | None = None
    _stopped: bool = False

    def start(self) -> None:
        """Start the attempt; ``ended`` is called once, from another thread."""
        threading.Thread(target=self._run, name="submarine-node", daemon=True).start()

    def stop(self, *, hard: bool = False) -> None:
        """Terminate the command, and kill it after the grace period; ``hard``: kill it now."""
        with self._lock:
            first, self._stopped = not self._stopped, True
            process = self._process
            # Sent once: many programs treat a second SIGTERM differently.
            if process is not None and (first or hard):
                _signal(process.pid, signal.SIGKILL if hard else signal.SIGTERM)
        if process is not None and first and not hard:
            timer = threading.Timer(GRACE, self._end, (process,))
            timer.daemon = True
            timer.start()

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            if self._process is process:  # not reaped yet, so its process id is still valid
                _signal(process.pid, signal.SIGKILL)

    def _run(self) -> None:
        try:
            end = self._run_commands()
        except OSError as exc:
            end = AttemptResult(
                126, _("It cannot be started: {strerror}.").format(strerror=exc.strerror or exc)
            )
        except Exception as exc:  # the end must be reported in any case
            end = AttemptResult(
                126,
                _("It cannot be started: {name}: {error}.").format(
                    name=type(exc).__name__, error=exc
                ),
            )
        self.ended(end)

    def _run_commands(self) -> AttemptResult:
        if not self.work.folder.is_dir():
            return AttemptResult(
                126,
                _("Its working directory {folder} does not exist.").format(folder=self.work.folder),
            )
        with FileIO(self.work.log, "a") as log:
            for number, words in enumerate(self.work.commands, 1):
                _say(log, f"$ {shlex.join(words)}")
                began, whole = time.monotonic(), log.tell()
                code = self._run_command(words, log)
                if code is None:
                    return AttemptResult(143, _("It was stopped."), stopped=True)
                _say(
                    log,
                    _("(code {code} after {monotonic:.1f} s)").format(
                        code=code, monotonic=time.monotonic() - began
                    ),
                )
                if self._stopped:
                    return AttemptResult(code or 143, _("It was stopped."), stopped=True)
                if code:
                    late = awaited_url(words) if code == _TIMEOUT_CODE else ""
                    timeout_reason = (
                        _("{late} did not appear in time.").format(late=late) if late else ""
                    )
                    last = _notebook_failure(self.work.log, whole) if is_notebook(words) else ""
                    return AttemptResult(
                        code, timeout_reason or _reason(code, number, len(self.work.commands), last)
                    )
        return AttemptResult(0)

    def _run_command(self, words: Sequence[str], log: FileIO) -> int | None:
        """Return the exit code of one command; None if the attempt was stopped before."""
        if not words:
            raise OSError(0, _("its command is empty"))
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
                self.guard.add(process.pid)
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
        """Wait until the command and its group have ended; the process id is released last."""
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        _signal(process.pid, signal.SIGTERM)
        with self._lock:
            self._process = None
        self.guard.remove(process.pid)
        process.wait()
        deadline = time.monotonic() + _LEFTOVER_GRACE
        while _signal(process.pid, 0):
            if time.monotonic() > deadline:
                _signal(process.pid, signal.SIGKILL)
                break
            time.sleep(0.05)


def _signal(group: int, number: int) -> bool:
    """Send a signal; return whether the group exists."""
    try:
        os.killpg(group, number)
    except OSError:
        return False
    return True


def _say(log: FileIO, text: str) -> None:
    with suppress(OSError):  # disk full: the command itself may not need to write
        log.write(text.encode("utf-8", "replace") + b"\n")


def _notebook_failure(log: Path, since: int) -> str:
    """Return the reason in the last line of a headless run's output after ``since`` bytes."""
    try:
        with log.open("rb") as file:
            file.seek(max(since, file.seek(0, os.SEEK_END) - _MAX_LAST_OUTPUT))
            lines = file.read(_MAX_LAST_OUTPUT).decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    found = next((match for line in reversed(lines) if (match := _FAILURE.search(line))), None)
    return printable(found[1], 500) if found else ""


def _reason(code: int, number: int, count: int, failure: str = "") -> str:
    which = (
        _("Command {number} of {count}").format(number=number, count=count)
        if count > 1
        else _("Its command")
    )
    if code == 127:
        return _("{which} was not found.").format(which=which)
    if code > 128:
        with suppress(ValueError):
            return _("{which} was ended by {signals}.").format(
                which=which, signals=signal.Signals(code - 128).name
            )
    if failure:
        return _("{which} ended with code {code}. {failure}").format(
            which=which, code=code, failure=failure
        )
    return _("{which} ended with code {code}.").format(which=which, code=code)
