"""What clients in a program need to know of the cluster's HDFS, also as Hadoop's settings."""

from __future__ import annotations

from dataclasses import dataclass, field

_FAILOVER = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"


@dataclass
class HdfsClients:
    """Addresses and security settings of HDFS; no secrets.

    Parameters
    ----------
    default
        The default file system, ``hdfs://host:port`` or ``hdfs://nameservice``; empty: unknown.
    web
        Nameservice, or ``host:port`` of the RPC interface -> base URLs of the NameNodes' WebHDFS.
    rpc
        Nameservice -> ``host:port`` of the RPC interface of each NameNode.
    mounts
        Mount table of viewfs -> path -> URI; the empty path is the fallback.
    settings
        Settings of Hadoop's clients that concern security.
    """

    default: str = ""
    web: dict[str, list[str]] = field(default_factory=dict)
    rpc: dict[str, list[str]] = field(default_factory=dict)
    mounts: dict[str, dict[str, str]] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)


def core_settings(hdfs: HdfsClients) -> dict[str, str]:
    """Return the settings of core-site.xml."""
    found = {"fs.defaultFS": hdfs.default}
    found.update({key: value for key, value in hdfs.settings.items() if key[:3] != "dfs"})
    for table, links in hdfs.mounts.items():
        prefix = f"fs.viewfs.mounttable.{table}"
        for link, uri in links.items():
            found[f"{prefix}.link.{link}" if link else f"{prefix}.linkFallback"] = uri
    return found


def hdfs_settings(hdfs: HdfsClients) -> dict[str, str]:
    """Return the settings of hdfs-site.xml."""
    found = {key: value for key, value in hdfs.settings.items() if key[:3] == "dfs"}
    services = [name for name, nodes in hdfs.rpc.items() if nodes]
    if services:
        found["dfs.nameservices"] = ",".join(services)
    for name in services:
        nodes = {f"nn{number}": address for number, address in enumerate(hdfs.rpc[name], 1)}
        found[f"dfs.ha.namenodes.{name}"] = ",".join(nodes)
        found[f"dfs.client.failover.proxy.provider.{name}"] = _FAILOVER
        for node, address in nodes.items():
            found[f"dfs.namenode.rpc-address.{name}.{node}"] = address
            for url in hdfs.web.get(address.lower(), ()):
                scheme, _colon, place = url.partition("://")
                found[f"dfs.namenode.{scheme}-address.{name}.{node}"] = place
    if not services:
        for url in next(iter(hdfs.web.values()), ())[:1]:
            scheme, _colon, place = url.partition("://")
            found[f"dfs.namenode.{scheme}-address"] = place
    return found
