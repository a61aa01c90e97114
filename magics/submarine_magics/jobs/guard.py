"""The kernel's side of the guard, a small process that outlives it: what it is told, and when.

It is started with the first job of a headless run. What it does when the kernel vanishes is
``guard_process``'s matter; a kernel that answers for its jobs before it ends leaves it nothing.
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

if TYPE_CHECKING:
    from submarine_jobs.client import Job
    from submarine_jobs.model import Profile

_SCRIPT = Path(__file__).with_name("guard_process.py")
_START_SECONDS = 20.0
_all: weakref.WeakSet[Guard] = weakref.WeakSet()


class Guard:
    """One guard; called from any thread. A guard that was killed is replaced at the next word."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched: dict[str, dict[str, Any]] = {}
        self._pipe: int | None = None
        _all.add(self)

    def watch(self, job: Job) -> None:
        """Have ``job`` cancelled if this process vanishes from now on."""
        told = {"watch": job.id, "profile": _plain(job.session.profile)}
        with self._lock:
            self._watched[job.id] = told
            if self._pipe is None:
                self._start()
            else:
                self._tell(told)

    def release(self, job_id: str) -> None:
        """Leave a job alone from now on; no error where it was not watched."""
        with self._lock:
            if self._watched.pop(job_id, None) is not None:
                self._tell({"release": job_id})

    def _start(self) -> None:
        """Start the process and tell it everything; without one, the run goes on all the same."""
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
                f"Nobody will end this run's jobs if its kernel is killed: {error}",
                file=sys.stderr,
            )
            return
        finally:
            os.close(read)
        self._pipe = write
        # Not the directory of the notebook: its files are no modules of ours.
        here = os.getcwd() if os.path.isdir(".") else ""
        path = [entry for entry in sys.path if os.path.isabs(entry) and entry != here]
        self._write({"path": path})
        for told in self._watched.values():
            self._write(told)

    def _tell(self, told: dict[str, Any]) -> None:
        if self._pipe is None:
            return
        try:
            self._write(told)
        except OSError:
            os.close(self._pipe)
            self._pipe = None
            if self._watched:
                self._start()

    def _write(self, told: dict[str, Any]) -> None:
        assert self._pipe is not None
        data = json.dumps(told).encode() + b"\n"
        while data:
            data = data[os.write(self._pipe, data) :]

    def forked(self) -> None:
        """In a child of this process: the pipe is the parent's, or its end would never be seen."""
        self._lock = threading.Lock()
        pipe, self._pipe = self._pipe, None
        self._watched = {}
        if pipe is not None:
            with contextlib.suppress(OSError):
                os.close(pipe)


def _plain(profile: Profile) -> dict[str, Any]:
    raw = asdict(profile)
    return {
        key: os.path.abspath(value) if isinstance(value, Path) else value
        for key, value in raw.items()
    }


def _forked() -> None:
    for guard in list(_all):
        guard.forked()


os.register_at_fork(after_in_child=_forked)
