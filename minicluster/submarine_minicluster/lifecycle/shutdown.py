"""Ends everything of a cluster: applications in good order, then every process with its mark.

Removes no data.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence

from submarine_minicluster.hadoop import Daemon, Runner, config
from submarine_minicluster.layout import Layout
from submarine_minicluster.lifecycle import applications, drivers
from submarine_minicluster.machine import processes


def end_all(
    layout: Layout,
    runner: Runner | None,
    daemons: Sequence[Daemon],
    progress: Callable[[str], None],
) -> int:
    """End the cluster's processes; how many there were.

    Parameters
    ----------
    runner, daemons
        Those of the saved settings; None and nothing where the cluster was never quite started.
    """
    if runner is not None:
        _kill_applications(runner, daemons, progress)
    drivers.end_drivers(layout.client_conf)
    # Containers outlive their NodeManager on purpose; by their mark all are found.
    running = processes.marked(config.MARK, str(layout.root))
    processes.end(running, grace=10)
    left = processes.marked(config.MARK, str(layout.root))
    processes.end(left, grace=0)
    if running:
        progress(f"ended {len(running)} processes")
    for daemon in daemons:
        layout.pidfile(daemon.name).unlink(missing_ok=True)
    shutil.rmtree(layout.tmp, ignore_errors=True)
    return len(running)


def end_node(layout: Layout, daemon: Daemon, identity: processes.Identity | None) -> None:
    """Kill a NodeManager and every process that works in its directories."""
    if identity is not None:
        processes.end([identity], grace=0)
    place = f"{layout.data(daemon.name)}/"
    marked = processes.marked(config.MARK, str(layout.root))
    processes.end([one for one in marked if one.directory.startswith(place)], grace=0)


def _kill_applications(
    runner: Runner, daemons: Sequence[Daemon], progress: Callable[[str], None]
) -> None:
    """End YARN's applications in good order where it still answers."""
    alive = [one for one in daemons if runner.identity(one)]
    masters = [one for one in alive if one.name == "resourcemanager"]
    if not masters:
        return
    killed = applications.kill_all(runner.url(masters[0]))
    if killed:
        progress(f"killed {killed} running application{'s'[: killed > 1]}")
        nodes = [runner.url(one) for one in alive if one.title == "NodeManager"]
        applications.wait_for_containers(nodes)
