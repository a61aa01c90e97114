"""Changes of the configuration for high availability: two NameNodes and two ResourceManagers.

The NameNodes share a directory of edits on this machine, the ResourceManagers their state store.
The state of each is set by `DaemonRunner.activate`; there is no ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Mapping

from submarine_minicluster.hadoop.config import NAMESERVICE, Properties, replicas
from submarine_minicluster.layout import Layout
from submarine_minicluster.settings import SavedCluster

HA_KINDS: Mapping[str, str] = {"namenode": "nn", "resourcemanager": "rm"}
"""Kinds of daemons with a standby, each with the prefix of Hadoop's ids."""

_FAILOVER_PROXY = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
_RM_PORTS = {"resource-tracker": "tracker", "scheduler": "scheduler", "admin": "admin"}


def ha_ids(kind: str) -> dict[str, str]:
    """Return Hadoop's id of each `namenode` or `resourcemanager`, by the daemon's name."""
    names = replicas(kind, ha=True)
    return {name: f"{HA_KINDS[kind]}{number}" for number, name in enumerate(names, 1)}


def ha_sites(
    sites: Mapping[str, Properties], layout: Layout, saved: SavedCluster, directory: str
) -> dict[str, Properties]:
    """Return the files of a client or daemon with the properties of high availability.

    Parameters
    ----------
    sites
        Properties of a cluster without it, by file.
    directory
        Name of the configuration directory: the daemon's, or that of clients.
    """
    return {
        **sites,
        "hdfs-site": _hdfs(sites["hdfs-site"], layout, saved, directory),
        "yarn-site": _yarn(sites["yarn-site"], saved, directory),
    }


def _hdfs(single: Properties, layout: Layout, saved: SavedCluster, directory: str) -> Properties:
    addresses = ("dfs.namenode.rpc-address", "dfs.namenode.http-address")
    properties = {name: value for name, value in single.items() if name not in addresses}
    ids, host = ha_ids("namenode"), saved.settings.host
    properties |= {
        "dfs.nameservices": NAMESERVICE,
        f"dfs.ha.namenodes.{NAMESERVICE}": ",".join(ids.values()),
        f"dfs.client.failover.proxy.provider.{NAMESERVICE}": _FAILOVER_PROXY,
        "dfs.namenode.shared.edits.dir": f"file://{layout.data('shared-edits')}",
    }
    for name, key in ids.items():
        for address, port in zip(addresses, (name, f"{name}-http"), strict=True):
            properties[f"{address}.{NAMESERVICE}.{key}"] = f"{host}:{saved.ports[port]}"
    if directory in ids:
        # Hadoop would identify a NameNode by its address, which both have here.
        properties["dfs.ha.namenode.id"] = ids[directory]
        properties["dfs.namenode.name.dir"] = f"file://{layout.data(directory)}"
    return properties


def _yarn(single: Properties, saved: SavedCluster, directory: str) -> Properties:
    prefix, host = "yarn.resourcemanager", saved.settings.host
    ports = {f"{prefix}.address": "", f"{prefix}.webapp.address": "-http"}
    ports |= {f"{prefix}.{name}.address": f"-{port}" for name, port in _RM_PORTS.items()}
    alone = {*ports, f"{prefix}.hostname"}
    properties = {name: value for name, value in single.items() if name not in alone}
    ids = ha_ids("resourcemanager")
    properties |= {
        f"{prefix}.ha.enabled": "true",
        f"{prefix}.ha.automatic-failover.enabled": "false",
        f"{prefix}.ha.rm-ids": ",".join(ids.values()),
        f"{prefix}.cluster-id": NAMESERVICE,
    }
    for rm, key in zip(replicas("rm", ha=True), ids.values(), strict=True):
        properties[f"{prefix}.hostname.{key}"] = host
        for name, suffix in ports.items():
            properties[f"{name}.{key}"] = f"{host}:{saved.ports[rm + suffix]}"
    if directory in ids:
        properties[f"{prefix}.ha.id"] = ids[directory]
    return properties
