"""Hadoop configuration of a cluster without Kerberos, for clients and for each daemon.

A comment states the reason where a value differs from Hadoop's default.
"""

from __future__ import annotations

import getpass
import os
import pwd
from collections.abc import Iterable, Mapping
from pathlib import Path

from submarine_minicluster.layout import Layout
from submarine_minicluster.settings import SavedCluster, Settings

SERVICES = ("hdfs", "yarn", "mapred")
SUPERUSER = "hdfs"
"""HDFS's superuser; another name than the user's, so that HDFS checks the user's permissions."""

NAMESERVICE = "minicluster"
"""Name of HDFS in a cluster with high availability."""

QUEUES: Mapping[str, tuple[int, float]] = {
    # name: (capacity in percent, maximum share of application masters)
    "default": (50, 1.0),
    "gpu": (40, 1.0),
    "narrow": (10, 0.1),  # YARN's default share
}

ZONE_KEY = "minicluster"
"""Name of the key of encryption zones."""

HDFS_TMP = "/tmp"  # noqa: S108 - a shared directory of HDFS
HDFS_LOGS = f"{HDFS_TMP}/logs"

MARK = "SUBMARINE_MINICLUSTER"
"""Environment variable of the daemons, which their containers inherit."""

Properties = dict[str, str]

PREEMPTION: Mapping[str, str] = {
    # Preempt within seconds for a queue below its share; by default it takes about a minute.
    "yarn.resourcemanager.scheduler.monitor.enable": "true",
    **{
        f"yarn.resourcemanager.monitor.capacity.preemption.{name}": value
        for name, value in {
            "monitoring_interval": "1000",
            "max_wait_before_kill": "3000",
            "total_preemption_per_round": "1.0",
            "natural_termination_factor": "1.0",
            "max_ignored_over_capacity": "0.0",
        }.items()
    },
}


def login() -> str:
    """Return the user name of the operating system, which Hadoop's clients send."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return getpass.getuser()


def nodemanagers(count: int) -> list[str]:
    """Return the names of the NodeManagers."""
    return [f"nodemanager-{index}" for index in range(count)]


def replicas(name: str, *, ha: bool) -> list[str]:
    """Return the names of the daemons of a kind, or of their ports: two with high availability."""
    return [name, f"{name}-2"] if ha else [name]


def default_fs(saved: SavedCluster) -> str:
    """Return the address of HDFS; with high availability, that of its nameservice."""
    if saved.settings.ha:
        return f"hdfs://{NAMESERVICE}"
    return f"hdfs://{saved.settings.host}:{saved.ports['namenode']}"


def port_names(nodes: int, *, kerberos: bool = False, ha: bool = False) -> list[str]:
    """Return the names of the ports that a cluster of `nodes` NodeManagers needs."""
    names = ["datanode", "datanode-http", "datanode-ipc"]
    for one in replicas("namenode", ha=ha):
        names += [one, f"{one}-http"]
    for one in replicas("rm", ha=ha):
        names += [one, *(f"{one}-{part}" for part in ("scheduler", "tracker", "admin", "http"))]
    names += ["history", "history-http", "history-admin"]
    for node in nodemanagers(nodes):
        names += [node, f"{node}-localizer", f"{node}-http"]
    if kerberos:
        names.append("kdc")
    return names


def core_site(layout: Layout, saved: SavedCluster) -> Properties:
    """Return the properties common to all daemons and clients."""
    return {
        "fs.defaultFS": default_fs(saved),
        "hadoop.tmp.dir": str(layout.tmp),
        "hadoop.security.authentication": "simple",
        # hadoop-policy.xml lists the users that are served.
        "hadoop.security.authorization": "true",
        # The service users exist in HDFS only, not in the operating system.
        "hadoop.user.group.static.mapping.overrides": (
            f"{SUPERUSER}=supergroup,hadoop;yarn=hadoop;mapred=hadoop;dr.who="
        ),
        # Fail sooner than Hadoop's default of 10 s: a closed loopback port stays closed.
        "ipc.client.connect.max.retries": "5",
        "ipc.client.connect.retry.interval": "200",
    }


def namenode_core(core: Properties, layout: Layout, settings: Settings) -> Properties:
    """Return `core` for a NameNode, which names the keys of encryption zones to Java's clients.

    Other clusters have a server for keys (KMS), which all configuration files name.
    """
    keys = {"hadoop.security.key.provider.path": layout.key_provider}
    return {**core, **(keys if settings.encryption_zones else {})}


def hadoop_policy(users: Iterable[str]) -> Properties:
    """Return the properties that restrict calls to `users` and Hadoop's service users.

    A client can claim any of these names; other names are rejected.
    """
    names = ",".join(sorted({*SERVICES, *users}))
    return {
        "security.service.authorization.default.acl": names,
        # The callers are containers, which are named by the id of their token.
        "security.applicationmaster.protocol.acl": "*",
        "security.containermanagement.protocol.acl": "*",
        "security.resourcelocalizer.protocol.acl": "*",
    }


def with_daemon_retries(core: Properties) -> Properties:
    """Return `core` with more connection attempts, for daemons that start in parallel.

    After a failed connection a DataNode sleeps for 5 s.
    """
    return {**core, "ipc.client.connect.max.retries": "100"}


def hdfs_site(layout: Layout, saved: SavedCluster) -> Properties:
    """Return the properties of HDFS: one NameNode, one DataNode, permission checks."""
    host, ports = saved.settings.host, saved.ports
    return {
        "dfs.replication": "1",
        "dfs.permissions.enabled": "true",
        "dfs.permissions.superusergroup": "supergroup",
        "dfs.webhdfs.enabled": "true",
        "dfs.namenode.rpc-address": f"{host}:{ports['namenode']}",
        "dfs.namenode.http-address": f"{host}:{ports['namenode-http']}",
        "dfs.namenode.name.dir": f"file://{layout.data('namenode')}",
        "dfs.namenode.safemode.extension": "0",
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
        "dfs.datanode.data.dir": f"file://{layout.data('datanode')}",
        "dfs.datanode.address": f"{host}:{ports['datanode']}",
        "dfs.datanode.http.address": f"{host}:{ports['datanode-http']}",
        "dfs.datanode.ipc.address": f"{host}:{ports['datanode-ipc']}",
        "dfs.datanode.hostname": host,
        # Detect a restarted DataNode at once.
        "dfs.heartbeat.interval": "1",
        # The first query for a new block is usually too early by microseconds; retry after 10 ms.
        "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "10",
        # With one DataNode there is no replacement for a failed one.
        "dfs.client.block.write.replace-datanode-on-failure.enable": "false",
    }


def yarn_client(layout: Layout, saved: SavedCluster, lib: Path) -> Properties:
    """Return the YARN properties of clients and application masters."""
    host, ports = saved.settings.host, saved.ports
    return {
        "yarn.resourcemanager.hostname": host,
        "yarn.resourcemanager.address": f"{host}:{ports['rm']}",
        "yarn.resourcemanager.scheduler.address": f"{host}:{ports['rm-scheduler']}",
        "yarn.resourcemanager.resource-tracker.address": f"{host}:{ports['rm-tracker']}",
        "yarn.resourcemanager.admin.address": f"{host}:{ports['rm-admin']}",
        "yarn.resourcemanager.webapp.address": f"{host}:{ports['rm-http']}",
        # Configuration last: a class-data archive (AppCDS) requires jars first.
        "yarn.application.classpath": f"{lib}/*,{layout.client_conf}",
        # By default a client waits 30 s between attempts. The total wait covers a restart of the
        # ResourceManager, because application masters use this file too.
        "yarn.resourcemanager.connect.retry-interval.ms": "500",
        "yarn.resourcemanager.connect.max-wait.ms": "120000",
        "yarn.client.nodemanager-connect.max-wait-ms": "20000",
        "yarn.client.nodemanager-connect.retry-interval-ms": "500",
        "yarn.client.app-submission.poll-interval": "20",
        "yarn.log-aggregation-enable": "true",
        "yarn.log-aggregation.retain-seconds": str(7 * 24 * 3600),
        "yarn.nodemanager.remote-app-log-dir": HDFS_LOGS,
        "yarn.log.server.url": f"http://{host}:{ports['history-http']}/jobhistory/logs",
        "yarn.log.server.web-service.url": f"http://{host}:{ports['history-http']}/ws/v1/history",
        "yarn.scheduler.minimum-allocation-mb": "64",
        "yarn.scheduler.maximum-allocation-mb": str(saved.settings.memory_mb),
        "yarn.scheduler.maximum-allocation-vcores": str(saved.settings.vcores),
    }


def resourcemanager(layout: Layout, settings: Settings) -> Properties:
    """Return the properties of the ResourceManager only."""
    return {
        **(PREEMPTION if settings.preemption else {}),
        **(node_labels(layout) if settings.labels else {}),
        # Clients submit by RPC, which checks the user name; REST does not.
        "yarn.webapp.enable-rest-app-submissions": "false",
        # Allow priorities; Hadoop's default permits only 0.
        "yarn.cluster.max-application-priority": "10",
        "yarn.resourcemanager.scheduler.class": (
            "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler"
        ),
        "yarn.resourcemanager.recovery.enabled": "true",
        "yarn.resourcemanager.work-preserving-recovery.enabled": "true",
        "yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms": "1000",
        "yarn.resourcemanager.store.class": (
            "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore"
        ),
        "yarn.resourcemanager.fs.state-store.uri": f"file://{layout.data('resourcemanager')}",
        # Containers are only scheduled on heartbeats; the default interval is one second.
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "100",
        # Hadoop's default is ten minutes.
        "yarn.nm.liveness-monitor.expiry-interval-ms": str(settings.node_expiry * 1000),
    }


def node_labels(layout: Layout) -> Properties:
    """Return the properties that enable node labels. Labels are set by REST and persist."""
    return {
        "yarn.node-labels.enabled": "true",
        "yarn.node-labels.fs-store.root-dir": f"file://{layout.data('resourcemanager')}/labels",
    }


def nodemanager(layout: Layout, saved: SavedCluster, node: str) -> Properties:
    """Return the properties of one NodeManager only."""
    host, ports, data = saved.settings.host, saved.ports, layout.data(node)
    return {
        "yarn.nodemanager.hostname": host,
        "yarn.nodemanager.address": f"{host}:{ports[node]}",
        "yarn.nodemanager.localizer.address": f"{host}:{ports[f'{node}-localizer']}",
        "yarn.nodemanager.webapp.address": f"{host}:{ports[f'{node}-http']}",
        "yarn.nodemanager.local-dirs": str(data / "local"),
        "yarn.nodemanager.log-dirs": str(data / "logs"),
        "yarn.nodemanager.resource.memory-mb": str(saved.settings.memory_mb),
        "yarn.nodemanager.resource.cpu-vcores": str(saved.settings.vcores),
        "yarn.nodemanager.recovery.enabled": "true",
        "yarn.nodemanager.recovery.supervised": "true",
        "yarn.nodemanager.recovery.dir": str(data / "recovery"),
        # Limit resident memory, not the address space of a JVM.
        "yarn.nodemanager.pmem-check-enabled": "true",
        "yarn.nodemanager.vmem-check-enabled": "false",
        # Otherwise cgroups, which are not used here, replace the check above.
        "yarn.nodemanager.resource.memory.enforced": "false",
        "yarn.nodemanager.container-monitor.interval-ms": "3000",
        # The disks of personal machines are often nearly full.
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
        "yarn.nodemanager.disk-health-checker.min-free-space-per-disk-mb": "0",
        "yarn.nodemanager.env-whitelist": f"JAVA_HOME,HADOOP_CONF_DIR,PATH,LANG,TZ,{MARK}",
        "yarn.nodemanager.localizer.cache.target-size-mb": "4096",
    }


def mapred_site(saved: SavedCluster) -> Properties:
    """Return the properties of the history server, which serves logs of ended applications."""
    host, ports = saved.settings.host, saved.ports
    return {
        "mapreduce.jobhistory.address": f"{host}:{ports['history']}",
        "mapreduce.jobhistory.webapp.address": f"{host}:{ports['history-http']}",
        "mapreduce.jobhistory.admin.address": f"{host}:{ports['history-admin']}",
        # MapReduce's own history; it stays empty.
        "mapreduce.jobhistory.done-dir": "/mr-history/done",
        "mapreduce.jobhistory.intermediate-done-dir": "/mr-history/intermediate",
    }


def capacity_scheduler(settings: Settings) -> Properties:
    """Return three queues. Each may use all of an idle cluster, with labelled nodes."""
    prefix = "yarn.scheduler.capacity"
    values = {
        f"{prefix}.resource-calculator": (
            "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
        ),
        f"{prefix}.root.queues": ",".join(QUEUES),
    }
    for queue, (capacity, masters) in QUEUES.items():
        values |= {
            f"{prefix}.root.{queue}.capacity": str(capacity),
            f"{prefix}.root.{queue}.maximum-capacity": "100",
            f"{prefix}.root.{queue}.user-limit-factor": "100",
            f"{prefix}.root.{queue}.maximum-am-resource-percent": str(masters),
            f"{prefix}.root.{queue}.state": "RUNNING",
        }
    for label in sorted({name for name, _ in settings.node_labels}):
        values[f"{prefix}.root.accessible-node-labels.{label}.capacity"] = "100"
        for queue, (capacity, _) in QUEUES.items():
            labels = f"{prefix}.root.{queue}.accessible-node-labels"
            values[labels] = "*"
            values[f"{labels}.{label}.capacity"] = str(capacity)
            values[f"{labels}.{label}.maximum-capacity"] = "100"
    return values
