"""Wait until daemons are ready: HDFS is writable, all nodes have joined, logs are served.

This module only queries the daemons.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from submarine_minicluster.hadoop import (
    Access,
    Daemon,
    DaemonRunner,
    RestError,
    WebHdfs,
    get_json,
    http_request,
)
from submarine_runtime.translation import _

TIMEOUT = 180.0
"""Seconds for one step. An idle machine needs about 10; a loaded one needs more."""


def wait_until(
    what: str,
    check: Callable[[], bool],
    runner: DaemonRunner,
    daemons: Sequence[Daemon],
    progress: Callable[[str], None],
) -> None:
    """Poll until `check` returns True.

    Parameters
    ----------
    what
        The condition that is not met, for messages, such as "HDFS is not writable".
    check
        Queries the daemons once. `RestError` means that they are not ready.
    runner, daemons
        The wait fails at once if one of these daemons ends.
    progress
        Called every 15 s with the condition that is not met.

    Raises
    ------
    MiniclusterError
        If one of `daemons` has ended, or on timeout; with the end of the daemon's log.
    """
    deadline = time.monotonic() + TIMEOUT
    last, next_report = "", time.monotonic() + 15
    while time.monotonic() < deadline:
        for daemon in daemons:
            if runner.identity(daemon) is None:
                raise runner.failure(daemon, _("has ended"))
        try:
            if check():
                return
        except RestError as error:
            last = _("; the last answer was: {error}").format(error=error)
        if time.monotonic() > next_report:
            progress(
                _("still waiting for the {title}: {what}").format(title=daemons[0].title, what=what)
            )
            next_report += 15
        time.sleep(0.1)
    raise runner.failure(
        daemons[0],
        _("was not ready after {timeout:.0f} s: {what}{last}").format(
            timeout=TIMEOUT, what=what, last=last
        ),
    )


def responds(url: str, timeout: float, access: Access | None) -> bool:
    """Whether a daemon's web address responds within `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            http_request("GET", f"{url}/jmx?qry=none", access=access)
            return True
        except RestError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.5)


def hdfs_writable(hdfs: WebHdfs) -> bool:
    """Whether HDFS has left safe mode and a file can be written and removed."""
    probe = "/.minicluster-ready"
    hdfs.write(probe, b"ready")
    hdfs.delete(probe)
    return True


def node_up(url: str, access: Access | None) -> bool:
    """Whether a NodeManager answers and reports that it is healthy."""
    return bool(get_json(f"{url}/ws/v1/node/info", access)["nodeInfo"]["nodeHealthy"])


def running_nodes(rm_url: str, access: Access | None) -> int:
    """Return the number of nodes on which the ResourceManager can schedule."""
    answer = get_json(f"{rm_url}/ws/v1/cluster/nodes?states=RUNNING", access)
    return len((answer.get("nodes") or {}).get("node") or [])


def history_up(url: str, access: Access | None) -> bool:
    """Whether the history server answers."""
    return bool(get_json(f"{url}/ws/v1/history/info", access)["historyInfo"])
