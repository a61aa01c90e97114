"""The file systems of a cluster, with the identity of a profile."""

from __future__ import annotations

import json

from submarine_jobs.backends.yarn.cluster.hadoop_configuration import HadoopConf
from submarine_jobs.backends.yarn.cluster.identity import Identity
from submarine_jobs.errors import UsageError
from submarine_jobs.inputs import FreeDisk, without_user
from submarine_jobs.model import Profile
from submarine_jobs.storage import Storage, hdfs_storage, webhdfs_place
from submarine_runtime.cluster_http import HttpClient, NoAnswerError
from submarine_runtime.translation import _

_NODES = "Hadoop:service=NameNode,name=NameNodeInfo"


def default_file_system(profile: Profile, conf: HadoopConf, identity: Identity) -> Storage:
    """Return the storage of ``fs.defaultFS``."""
    storage = hdfs_storage(
        conf.default_fs,
        conf_dir=conf.directory,
        webhdfs=conf.webhdfs,
        addresses=conf.addresses,
        user=identity.user,
        access=identity.file_system_access,
        process_wide=identity.process_wide,
        timeout=profile.timeout,
        gateway=bool(conf.gateway),
    )
    storage.mounted = conf.mounted if conf.is_view else None
    return storage


def other_file_system(
    uri: str, default: Storage, conf: HadoopConf, identity: Identity
) -> tuple[Storage, str] | None:
    """Return the file system that a Hadoop URI means, and the path in it; None: none.

    Raises
    ------
    UsageError
        If it is another cluster's, and the cluster has Kerberos: the tokens of a job are those of
        the default file system.
    """
    if uri.lower().startswith("viewfs://"):
        target = conf.mounted(uri)
        if target is None:
            raise UsageError(
                _("{uri}: the client configuration has no mount table with a link for it.").format(
                    uri=without_user(uri)[:200]
                ),
                _("Name the hdfs:// address, or add fs.viewfs.mounttable to core-site.xml."),
            )
        path = default.path_of(target)
        if path is not None:
            return default, path
        uri = target
    if identity.kerberos:
        raise UsageError(
            _(
                "{uri} is in another file system than {default}, and the delegation tokens of a "
                "job are for that one only."
            ).format(uri=without_user(uri)[:200], default=default.prefix),
            _("Copy it there with `hadoop distcp`."),
        )
    return webhdfs_place(uri, identity.user, conf.webhdfs_of(uri), identity.file_system_access)


def free_disk(conf: HadoopConf, identity: Identity, timeout: float) -> FreeDisk | None:
    """Return the DataNode with the least free disk; None if the NameNode does not report it.

    YARN does not report free disk. The NameNode does for the disks of its DataNodes, on which the
    containers of the same nodes usually run.
    """
    client = HttpClient(conf.webhdfs, access=identity.file_system_access, timeout=timeout)
    try:
        answer = client.request("GET", "/jmx", {"qry": _NODES})
        nodes = json.loads(answer.json_object()["beans"][0]["LiveNodes"])
        free = {str(name): int(node["remaining"]) for name, node in nodes.items()}
    except (NoAnswerError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        return None
    if not free:
        return None
    node = min(free, key=lambda name: free[name])
    return FreeDisk(node.partition(":")[0], free[node])
