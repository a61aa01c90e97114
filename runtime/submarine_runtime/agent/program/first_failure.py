"""Find the process of a program that failed first, among several in one container.

A process that fails makes the others fail, and may be the last one to exit: it writes its exception
at once, and may then clean up for seconds.
"""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from submarine_runtime.agent.program.environment import failure_file
from submarine_runtime.agent.program.failure import load_failure, load_torch_error, parse_stderr
from submarine_runtime.frameworks import follows_from_lost_peer
from submarine_runtime.protocol import Failure

EXITS = "exits.json"


@dataclass
class FailedProcess:
    """A failed process.

    Parameters
    ----------
    number
        Its number in the container.
    status
        Exit status as subprocess returns it.
    time
        When it failed, in seconds since the epoch.
    kind
        See ``ProgramFacts.kind``.
    """

    number: int
    status: int
    time: float
    failure: Failure | None = None
    kind: str = ""


def first_failure(
    root: str, launch: str, stderr: str, status: int, labels: list[str]
) -> FailedProcess:
    """Return the process that failed first; an error of a lost peer counts if there is no other.

    Parameters
    ----------
    root, launch
        The directories of the failures and of the launcher.
    stderr
        Path of the log, in which the lines of several processes have their labels.
    status
        Exit status of the program.
    labels
        One for each process.
    """
    several = len(labels) > 1
    exits = _exits(os.path.join(launch, EXITS)) if several else {0: (status, 0.0, False)}
    found = []
    for number, label in enumerate(labels):
        code, ended, stopped = exits.get(number, (0, 0.0, True))
        loaded = load_failure(os.path.join(root, failure_file(number)))
        failure, kind = loaded if loaded is not None else (None, "")
        if failure is None:
            failure = load_torch_error(os.path.join(root, f"torch-error-{number}.json"))
        if failure is None and (stopped or code == 0):
            continue  # It runs, has succeeded, or was ended because another process failed.
        if failure is None:
            failure = parse_stderr(stderr, label if several else "")
        if stopped or not code:
            code = 1
        moment = failure.time if failure is not None and failure.time else ended
        found.append(FailedProcess(number, code, moment, failure, kind))
    causes = [one for one in found if not _is_consequence(one)]
    chosen = min(causes or found, key=lambda one: one.time, default=None)
    return chosen or FailedProcess(0, status, 0.0)


def _is_consequence(process: FailedProcess) -> bool:
    failure = process.failure
    if process.status == -signal.SIGABRT:
        return True  # Libraries abort a process after the failure of a peer.
    return failure is not None and follows_from_lost_peer(failure.type, failure.message)


def _exits(path: str) -> dict[int, tuple[int, float, bool]]:
    """Return number -> status, time and whether the launcher ended it, of the ended processes."""
    found: dict[int, tuple[int, float, bool]] = {}
    with suppress(OSError, ValueError, TypeError, KeyError):
        with open(path, encoding="utf-8") as file:
            listed: Any = json.load(file)
        for one in listed:
            found[int(one["process"])] = (
                int(one["status"]),
                float(one["time"]),
                bool(one["stopped"]),
            )
    return found
