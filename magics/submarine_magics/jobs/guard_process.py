"""Ends a headless run's jobs when its kernel has vanished; a process of its own, run as a script.

It reads from the kernel's pipe which jobs there are and which are answered for, and sleeps in that
read. At the end of the pipe it cancels what nobody has answered for, through the core, which it
imports only then. Speaks the standard library until then, and is never imported by anyone.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

#: Seconds that a cluster which does not answer is asked again, and between two questions.
PATIENCE = 900.0
FIRST_PAUSE, LAST_PAUSE = 1.0, 30.0
#: Jobs that are cancelled at the same time; each waits for its agent.
AT_ONCE = 8
WHY = "the kernel that waited for it is gone"
_Told = dict[str, Any]


def main() -> None:
    """Listen to the kernel until it says goodbye, or no more."""
    # Whoever ends a whole service sends SIGTERM to each of its processes, to this one too.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    jobs, path = listen()
    if jobs:
        sys.path += [entry for entry in path if entry not in sys.path]
        end_all(list(jobs.values()))


def listen() -> tuple[dict[str, _Told], list[str]]:
    """Jobs that nobody has answered for at the end of the pipe, and the kernel's module path."""
    jobs: dict[str, _Told] = {}
    path: list[str] = []
    for line in sys.stdin.buffer:
        try:
            told = json.loads(line)
        except ValueError:  # the kernel died in the middle of a word
            continue
        if "path" in told:
            path = [str(entry) for entry in told["path"]]
        if "watch" in told:
            jobs[told["watch"]] = told
        jobs.pop(told.get("release", ""), None)
    return jobs, path


def end_all(jobs: list[_Told]) -> None:
    """Cancel jobs, a few at the same time, and give up after ``PATIENCE``."""
    deadline = time.monotonic() + PATIENCE
    places = threading.BoundedSemaphore(AT_ONCE)

    def work(told: _Told) -> None:
        with places:
            end(told, deadline)

    threads = [threading.Thread(target=work, args=(told,), daemon=True) for told in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))


def end(told: _Told, deadline: float) -> None:
    """Cancel one job, again and again while its cluster does not answer."""
    from submarine_jobs.client import Session
    from submarine_jobs.errors import ClusterError, SubmarineError

    pause = FIRST_PAUSE
    while time.monotonic() < deadline:
        try:
            session = Session(profile_of(told["profile"]))
            session.job(told["watch"]).cancel(WHY)
            return
        except (ClusterError, OSError):
            time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
            pause = min(pause * 2, LAST_PAUSE)
        except SubmarineError:  # there is no such job any more
            return


def profile_of(raw: _Told) -> Any:
    """The kernel's profile, from its JSON."""
    from submarine_jobs.model import Profile

    paths = {
        name: Path(raw[name])
        for name in ("hadoop_conf_dir", "java_home", "state_dir")
        if raw.get(name)
    }
    return Profile(**{**raw, **paths})


def detach() -> None:
    """Leave the kernel's family: what ends its children does not reach this process."""
    if os.fork():
        os._exit(0)


if __name__ == "__main__":
    detach()
    main()
