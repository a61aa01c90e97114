"""Waiting until daemons work together: HDFS takes a file, every node has joined, logs are served.

Only asks; starts and stops nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from submarine_minicluster.hadoop import SUPERUSER, Daemon, Runner, rest

TIMEOUT = 180.0
"""Seconds for one step; a quiet machine needs 10, five JVMs on a loaded one take longer."""


def wait_until(
    what: str,
    check: Callable[[], bool],
    runner: Runner,
    daemons: Sequence[Daemon],
    progress: Callable[[str], None],
) -> None:
    """Ask again and again until `check` holds.

    Parameters
    ----------
    what
        What is still wrong, as in "HDFS is not writable".
    check
        Asks once; `RestError` means not yet.
    runner, daemons
        Whose death ends the wait at once.
    progress
        Called every 15 s with what is still waited for.

    Raises
    ------
    MiniclusterError
        When one of `daemons` has died, or time is up; it quotes the first one's log.
    """
    deadline = time.monotonic() + TIMEOUT
    last, tell = "", time.monotonic() + 15
    while time.monotonic() < deadline:
        for daemon in daemons:
            if runner.identity(daemon) is None:
                raise runner.failure(daemon, "has died")
        try:
            if check():
                return
        except rest.RestError as error:
            last = f"; the last answer was: {error}"
        if time.monotonic() > tell:
            progress(f"still waiting for the {daemons[0].title}: {what}")
            tell += 15
        time.sleep(0.1)
    raise runner.failure(daemons[0], f"did not get ready in {TIMEOUT:.0f} s: {what}{last}")


def answers(url: str, timeout: float) -> bool:
    """Whether anything is served at a daemon's web address within `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            rest.request("GET", f"{url}/jmx?qry=none")
            return True
        except rest.RestError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.5)


def hdfs_writable(base: str) -> bool:
    """Whether HDFS is out of safe mode and a file can be written and removed."""
    hdfs = rest.WebHdfs(base, SUPERUSER)
    probe = "/.minicluster-ready"
    hdfs.write(probe, b"ready")
    hdfs.delete(probe)
    return True


def node_up(url: str) -> bool:
    """Whether a NodeManager answers and finds itself healthy."""
    return bool(rest.get(f"{url}/ws/v1/node/info")["nodeInfo"]["nodeHealthy"])


def running_nodes(rm_url: str) -> int:
    """How many nodes the ResourceManager can schedule on."""
    answer = rest.get(f"{rm_url}/ws/v1/cluster/nodes?states=RUNNING")
    return len((answer.get("nodes") or {}).get("node") or [])


def history_up(url: str) -> bool:
    """Whether the history server answers."""
    return bool(rest.get(f"{url}/ws/v1/history/info")["historyInfo"])
