"""The guard of a headless run: a process that cancels the run's jobs if the kernel dies.

This module starts ``guard_process`` with the first job and sends it the jobs to watch through a
pipe. A kernel that has handled all jobs before it ends leaves the guard without work.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import weakref
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.client import Job
    from submarine_jobs.model import Profile

_SCRIPT = Path(__file__).with_name("guard_process.py")
_START_SECONDS = 20.0
_all: weakref.WeakSet[Guard] = weakref.WeakSet()


class Guard:
    """Client of one guard process, thread-safe. The next message replaces a killed process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched: dict[str, dict[str, Any]] = {}
        self._pipe: int | None = None
        _all.add(self)

    def watch(self, job: Job) -> None:
        """Cancel ``job`` if this process dies from now on."""
        message = {"watch": job.id, "profile": _to_json(job.session.profile)}
        with self._lock:
            self._watched[job.id] = message
            if self._pipe is None:
                self._start()
            else:
                self._send(message)

    def release(self, job_id: str) -> None:
        """Stop watching a job. Unknown ids are ignored."""
        with self._lock:
            if self._watched.pop(job_id, None) is not None:
                self._send({"release": job_id})

    def _start(self) -> None:
        """Start the process and send all jobs. If that fails, the run continues without it."""
        read, write = os.pipe()
        try:
            subprocess.run(
                [sys.executable, "-I", str(_SCRIPT)],
                stdin=read,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
                timeout=_START_SECONDS,
                check=True,
            )
        except (OSError, subprocess.SubprocessError) as error:
            os.close(write)
            print(
                _(
                    "The jobs of this run will not be cancelled if its kernel is killed: {error}"
                ).format(error=error),
                file=sys.stderr,
            )
            return
        finally:
            os.close(read)
        self._pipe = write
        # Files in the notebook's directory must not shadow modules.
        here = os.getcwd() if os.path.isdir(".") else ""
        path = [entry for entry in sys.path if os.path.isabs(entry) and entry != here]
        self._write({"path": path})
        for message in self._watched.values():
            self._write(message)

    def _send(self, message: dict[str, Any]) -> None:
        if self._pipe is None:
            return
        try:
            self._write(message)
        except OSError:
            os.close(self._pipe)
            self._pipe = None
            if self._watched:
                self._start()

    def _write(self, message: dict[str, Any]) -> None:
        assert self._pipe is not None
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(self._pipe, data) :]

    def reset_after_fork(self) -> None:
        """Close the inherited pipe in a child process; else the guard would not see its end."""
        self._lock = threading.Lock()
        pipe, self._pipe = self._pipe, None
        self._watched = {}
        if pipe is not None:
            with contextlib.suppress(OSError):
                os.close(pipe)


def _to_json(profile: Profile) -> dict[str, Any]:
    raw = asdict(profile)
    return {
        key: os.path.abspath(value) if isinstance(value, Path) else value
        for key, value in raw.items()
    }


def _after_fork() -> None:
    for guard in list(_all):
        guard.reset_after_fork()


os.register_at_fork(after_in_child=_after_fork)
