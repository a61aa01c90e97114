"""What a start is to make: settings that agree with what is there, and ports to keep.

Starts nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from submarine_minicluster.errors import MiniclusterError
from submarine_minicluster.hadoop import config
from submarine_minicluster.layout import Layout
from submarine_minicluster.machine import file_lock, ports
from submarine_minicluster.settings import Saved, Settings

Progress = Callable[[str], None]


def settle(name: str, old: Saved | None, settings: Settings | None, running: bool) -> Settings:
    """The settings to start with.

    Parameters
    ----------
    name
        The cluster's, for messages.
    old
        What is remembered of it.
    settings
        What is asked for; None keeps what is remembered, or takes the defaults.
    running
        Whether any of its daemons runs.

    Raises
    ------
    MiniclusterError
        When they contradict what runs, or the version that wrote the data.
    """
    wanted = settings or (old.settings if old else Settings())
    if old and running and wanted != old.settings:
        raise MiniclusterError(
            f"Minicluster {name!r} is running with other settings "
            f"({old.settings.describe()}): stop it first, or use another --name."
        )
    if old and wanted.hadoop != old.settings.hadoop:
        raise MiniclusterError(
            f"The data of minicluster {name!r} was written by Hadoop "
            f"{old.settings.hadoop}: use another --name, or remove the data with "
            f"`submarine minicluster stop --name {name} --delete-data`."
        )
    return wanted


def remember(layout: Layout, saved: Saved, running: bool, progress: Progress) -> None:
    """Complete the ports of `saved` and write it; one cluster at a time, so none are shared."""
    with file_lock(layout.root.parent / ".ports.lock", timeout=60):
        saved.ports = _ports(layout, saved, running, progress)
        saved.write(layout.saved)


def _ports(layout: Layout, saved: Saved, running: bool, progress: Progress) -> dict[str, int]:
    """The cluster's ports: the old ones as far as they are still to be had."""
    kept = dict(saved.ports)
    names = config.port_names(saved.settings.nodes)
    if not running:
        lost = [name for name in names if name in kept and not ports.is_free(kept[name])]
        if lost:
            progress(f"another program took {len(lost)} of this cluster's ports: choosing anew")
        kept = {name: port for name, port in kept.items() if name not in lost}
    others = [Saved.read(path) for path in layout.root.parent.glob("*/cluster.json")]
    taken = {port for other in others if other for port in other.ports.values()}
    missing = [name for name in names if name not in kept]
    return kept | ports.choose(missing, taken | set(kept.values()))
