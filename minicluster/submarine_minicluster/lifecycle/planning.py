"""Choose the settings and ports of a start, consistent with the existing cluster."""

from __future__ import annotations

from collections.abc import Callable

from submarine_minicluster.errors import MiniclusterError
from submarine_minicluster.hadoop import port_names
from submarine_minicluster.layout import Layout
from submarine_minicluster.machine import choose_ports, file_lock, is_free_port
from submarine_minicluster.settings import SavedCluster, Settings
from submarine_runtime.translation import _

Progress = Callable[[str], None]


def choose_settings(
    name: str, old: SavedCluster | None, settings: Settings | None, running: bool
) -> Settings:
    """Choose the settings of a start.

    Parameters
    ----------
    name
        Name of the cluster, for messages.
    old
        Saved settings and ports of the cluster; None before its first start.
    settings
        Requested settings. None means the saved ones, or the defaults.
    running
        Whether any daemon runs.

    Raises
    ------
    MiniclusterError
        If they differ from those of running daemons, or from the version that wrote the data.
    """
    chosen = settings or (old.settings if old else Settings())
    if old and running and chosen != old.settings:
        raise MiniclusterError(
            _(
                "Minicluster {name!r} is running with other settings ({settings}). Stop it "
                "first, or use another --name."
            ).format(name=name, settings=old.settings.describe())
        )
    if old and chosen.releases != old.settings.releases:
        raise MiniclusterError(
            _(
                "The data of minicluster {name!r} was written by Hadoop {hadoop}. Use another "
                "--name, or remove the data with `submarine minicluster stop --name {name} "
                "--delete-data`."
            ).format(name=name, hadoop=old.settings.releases)
        )
    if old and chosen.kerberos != old.settings.kerberos:
        raise MiniclusterError(
            _(
                "Minicluster {name!r} was created {kind}, and its data has other owners. Use "
                "another --name, or remove the data with `submarine minicluster stop --name "
                "{name} --delete-data`."
            ).format(
                name=name,
                kind=_("with Kerberos") if old.settings.kerberos else _("without Kerberos"),
            )
        )
    if old and chosen.ha != old.settings.ha:
        raise MiniclusterError(
            _(
                "Minicluster {name!r} was created {kind}, and the addresses of its files contain "
                "the name of its HDFS. Use another --name, or remove the data with `submarine "
                "minicluster stop --name {name} --delete-data`."
            ).format(
                name=name,
                kind=(
                    _("with high availability")
                    if old.settings.ha
                    else _("without high availability")
                ),
            )
        )
    return chosen


def save_with_ports(layout: Layout, saved: SavedCluster, running: bool, progress: Progress) -> None:
    """Choose the missing ports of `saved` and write it, under a lock so that no port is shared."""
    with file_lock(layout.root.parent / ".ports.lock", timeout=60):
        saved.ports = _ports(layout, saved, running, progress)
        saved.write(layout.cluster_file)


def _ports(
    layout: Layout, saved: SavedCluster, running: bool, progress: Progress
) -> dict[str, int]:
    """Return the ports of the cluster. Ports of the last start are kept if they are free."""
    kept = dict(saved.ports)
    settings = saved.settings
    names = port_names(settings.nodes, kerberos=settings.kerberos, ha=settings.ha)
    if not running:
        lost = [name for name in names if name in kept and not is_free_port(kept[name])]
        if lost:
            progress(
                _("another program uses {count} of this cluster's ports: choosing new ones").format(
                    count=len(lost)
                )
            )
        kept = {name: port for name, port in kept.items() if name not in lost}
    others = [SavedCluster.read(path) for path in layout.root.parent.glob("*/cluster.json")]
    taken = {port for other in others if other for port in other.ports.values()}
    missing = [name for name in names if name not in kept]
    return kept | choose_ports(missing, taken | set(kept.values()))
