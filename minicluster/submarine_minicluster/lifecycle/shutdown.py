"""Stop the processes of a cluster: YARN applications first, then all processes with its mark.

Removes no data.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from submarine_minicluster.hadoop import (
    MARK,
    Access,
    Daemon,
    DaemonRunner,
    RestError,
    get_json,
    http_request,
)
from submarine_minicluster.layout import Layout
from submarine_minicluster.machine import Identity, find_marked, session_members, terminate
from submarine_runtime.translation import _, ngettext

_ACTIVE = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"
_DRIVER = b"com.anaconda.skein.Driver"


def stop_all(
    layout: Layout,
    runner: DaemonRunner | None,
    daemons: Sequence[Daemon],
    progress: Callable[[str], None],
) -> int:
    """Stop all processes of the cluster and return their number.

    Parameters
    ----------
    runner, daemons
        Those of the saved settings; None and empty if a first start was not completed.
    """
    if runner is not None:
        _kill_applications(runner, daemons, progress)
    stop_drivers(layout.client_conf)
    # Containers survive the end of their NodeManager and are found by their mark.
    running = find_marked(MARK, str(layout.root))
    terminate(running, grace=10)
    left = find_marked(MARK, str(layout.root))
    terminate(left, grace=0)
    if running:
        progress(_("ended {count} processes").format(count=len(running)))
    for daemon in daemons:
        layout.pidfile(daemon.name).unlink(missing_ok=True)
    shutil.rmtree(layout.tmp, ignore_errors=True)
    return len(running)


def kill_node(layout: Layout, daemon: Daemon, identity: Identity | None) -> None:
    """Kill a NodeManager and all processes that work in its directories."""
    if identity is not None:
        terminate([identity], grace=0)
    place = f"{layout.data(daemon.name)}/"
    marked = find_marked(MARK, str(layout.root))
    terminate([one for one in marked if one.directory.startswith(place)], grace=0)


def stop_drivers(client_conf: Path) -> int:
    """Stop skein's drivers of a cluster and return their number.

    A driver is a JVM that YARN clients share. It keeps connections to one cluster, so it is useless
    after the cluster has stopped.

    Parameters
    ----------
    client_conf
        Configuration directory in the class path of the drivers.
    """
    drivers: list[Identity] = []
    helpers: list[Identity] = []
    for entry in Path("/proc").glob("[0-9]*"):
        identity = Identity.of(int(entry.name))
        if identity and _is_driver(entry, str(client_conf).encode()):
            drivers.append(identity)
            helpers += session_members(identity)
    terminate(drivers, grace=3)
    terminate(helpers, grace=1)
    return len(drivers)


def _is_driver(entry: Path, conf: bytes) -> bool:
    try:
        if _DRIVER not in (entry / "cmdline").read_bytes().split(b"\0"):
            return False
        variables = (entry / "environ").read_bytes().split(b"\0")
    except OSError:  # of another user, or ended
        return False
    paths = [word for word in variables if word.startswith(b"CLASSPATH=")]
    return any(conf in word.partition(b"=")[2].split(b":") for word in paths)


def _kill_applications(
    runner: DaemonRunner, daemons: Sequence[Daemon], progress: Callable[[str], None]
) -> None:
    """Kill YARN's applications through the ResourceManager if it runs."""
    alive = [one for one in daemons if runner.identity(one)]
    managers = [one for one in alive if one.title == "ResourceManager"]
    access = runner.administrator
    # A standby has no list of applications.
    killed = sum(_kill_all(runner.url(one), access) for one in managers)
    if killed:
        progress(
            ngettext(
                "killed {killed} running application",
                "killed {killed} running applications",
                killed,
            ).format(killed=killed)
        )
        nodes = [runner.url(one) for one in alive if one.title == "NodeManager"]
        _wait_for_containers(nodes, access)


def _kill_all(rm_url: str, access: Access | None) -> int:
    """Kill all active applications and return their number."""
    try:
        answer = get_json(f"{rm_url}/ws/v1/cluster/apps?states={_ACTIVE}", access)
        active = (answer.get("apps") or {}).get("app") or []
        for application in active:
            http_request(
                "PUT",
                f"{rm_url}/ws/v1/cluster/apps/{application['id']}/state?user.name=yarn",
                body=json.dumps({"state": "KILLED"}).encode(),
                access=access,
            )
    except RestError:  # the processes are then found by their mark
        return 0
    return len(active)


def _wait_for_containers(
    node_urls: Sequence[str], access: Access | None, timeout: float = 10.0
) -> None:
    """Wait until no NodeManager has a container, for at most `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        try:
            if not any(_containers(url, access) for url in node_urls):
                return
        except RestError:
            return
        time.sleep(0.2)


def _containers(url: str, access: Access | None) -> int:
    answer = get_json(f"{url}/ws/v1/node/containers", access)
    listed = (answer.get("containers") or {}).get("container") or []
    return sum(one.get("state") not in ("DONE", "EXITED_WITH_SUCCESS") for one in listed)
