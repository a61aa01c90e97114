"""Cancel a headless run's jobs when its kernel has died. Runs as a script in a separate process.

The kernel sends the jobs to watch and to release through a pipe, one JSON object a line. At the end
of the pipe the script cancels the jobs that are still watched. It imports ``submarine_jobs`` only
then; before, it uses the standard library alone.
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

#: Seconds for which cancelling is retried while the cluster does not answer, and between retries.
PATIENCE = 900.0
FIRST_PAUSE, LAST_PAUSE = 1.0, 30.0
#: Maximum number of jobs that are cancelled concurrently; each call waits for an agent.
MAX_CONCURRENT = 8
WHY = "the kernel that waited for it is gone"
_Message = dict[str, Any]


def main() -> None:
    """Read messages until the pipe ends, then cancel the watched jobs."""
    # A service manager sends SIGTERM to all processes of a service, this one included.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    jobs, path = read_messages()
    if jobs:
        sys.path += [entry for entry in path if entry not in sys.path]
        cancel_all(list(jobs.values()))


def read_messages() -> tuple[dict[str, _Message], list[str]]:
    """Return the jobs that are watched at the end of the pipe, and the kernel's module path."""
    jobs: dict[str, _Message] = {}
    path: list[str] = []
    for line in sys.stdin.buffer:
        try:
            message = json.loads(line)
        except ValueError:  # The kernel died while it was writing.
            continue
        if "path" in message:
            path = [str(entry) for entry in message["path"]]
        if "watch" in message:
            jobs[message["watch"]] = message
        jobs.pop(message.get("release", ""), None)
    return jobs, path


def cancel_all(jobs: list[_Message]) -> None:
    """Cancel jobs, ``MAX_CONCURRENT`` at a time, for at most ``PATIENCE`` seconds."""
    deadline = time.monotonic() + PATIENCE
    places = threading.BoundedSemaphore(MAX_CONCURRENT)

    def work(message: _Message) -> None:
        with places:
            cancel(message, deadline)

    threads = [threading.Thread(target=work, args=(message,), daemon=True) for message in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))


def cancel(message: _Message, deadline: float) -> None:
    """Cancel one job; retry while its cluster does not answer."""
    # cost: 25 MB of an idle process: nearly all runs end without it.
    from submarine_jobs.client import Session
    from submarine_jobs.errors import ClusterError, SubmarineError

    pause = FIRST_PAUSE
    while time.monotonic() < deadline:
        try:
            session = Session(profile_of(message["profile"]))
            session.job(message["watch"]).cancel(WHY)
            return
        except (ClusterError, OSError):
            time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
            pause = min(pause * 2, LAST_PAUSE)
        except SubmarineError:  # The job does not exist any more.
            return


def profile_of(raw: _Message) -> Any:
    """Return the kernel's profile, from its JSON form."""
    # cost: as in `cancel`.
    from submarine_jobs.model import Profile

    paths = {
        name: Path(raw[name])
        for name in ("hadoop_conf_dir", "java_home", "state_dir")
        if raw.get(name)
    }
    return Profile(**{**raw, **paths})


def daemonize() -> None:
    """Fork and exit the parent, so that a signal to the kernel's children does not arrive here."""
    if os.fork():
        os._exit(0)


if __name__ == "__main__":
    daemonize()
    main()
