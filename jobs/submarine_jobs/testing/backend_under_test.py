"""What the contract test suite needs to know about a backend."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import psutil

from submarine_jobs.model import Profile


def processes_of(job_id: str) -> list[str]:
    """Return the processes of this machine whose command line contains the id of a job."""
    found = []
    for process in psutil.process_iter(["pid", "cmdline"]):
        words = process.info["cmdline"] or []
        if any(job_id in word for word in words):
            found.append(f"process {process.info['pid']}: {' '.join(words)[:200]}")
    return found


@dataclass(frozen=True)
class BackendUnderTest:
    """A backend and its system; returned by the fixture ``backend_under_test``.

    Parameters
    ----------
    profile
        A profile of the backend, with a temporary ``state_dir`` and job root. Its ``python_env``
        is that of the test's programs.
    unreachable
        A profile of the same backend whose system does not answer; None: the tests of errors are
        skipped.
    leftovers
        Returns what the system still has of a job (processes, directories, pods). The default finds
        processes of this machine.
    memory
        MiB of each task.
    patience
        Seconds in which the system starts a task, and in which it reports an end.
    """

    profile: Profile
    unreachable: Profile | None = None
    leftovers: Callable[[str], Iterable[str]] = processes_of
    memory: int = 256
    patience: float = 30.0
