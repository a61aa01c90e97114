"""The cluster's Hadoop configuration: what clients and each daemon are told.

Where a value differs from Hadoop's default, the reason stands beside it. Writes no file
(``config_files``).
"""

from __future__ import annotations

import getpass
import os
import pwd
from collections.abc import Iterable, Mapping
from pathlib import Path

from submarine_minicluster.layout import Layout
from submarine_minicluster.settings import Saved, Settings

HOST = "127.0.0.1"
SERVICES = ("hdfs", "yarn", "mapred")
SUPERUSER = "hdfs"
"""HDFS's superuser: not the person at the keyboard, for whom permissions are to be real."""

QUEUES: Mapping[str, tuple[int, float]] = {
    # name: (capacity in percent, share that application masters may hold)
    "default": (50, 1.0),
    "gpu": (40, 1.0),
    "narrow": (10, 0.1),  # the share that YARN has by default
}

HDFS_TMP = "/tmp"  # noqa: S108 - in HDFS, where it is shared by convention
HDFS_LOGS = f"{HDFS_TMP}/logs"

MARK = "SUBMARINE_MINICLUSTER"
"""Environment variable that daemons carry and hand down to their containers."""

Properties = dict[str, str]

PREEMPTION: Mapping[str, str] = {
    # A queue below its share gets containers back within seconds; the default is a minute or so.
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
    """The name by which Hadoop's clients know this user: that of the operating system."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return getpass.getuser()


def nodemanagers(count: int) -> list[str]:
    """Names of the NodeManagers."""
    return [f"nodemanager-{index}" for index in range(count)]


def port_names(nodes: int) -> list[str]:
    """Names of the ports that a cluster of `nodes` NodeManagers needs."""
    names = ["namenode", "namenode-http", "datanode", "datanode-http", "datanode-ipc"]
    names += ["rm", "rm-scheduler", "rm-tracker", "rm-admin", "rm-http"]
    names += ["history", "history-http", "history-admin"]
    for node in nodemanagers(nodes):
        names += [node, f"{node}-localizer", f"{node}-http"]
    return names


def core_site(layout: Layout, ports: Mapping[str, int]) -> Properties:
    """What every process of the cluster and every client agrees on."""
    return {
        "fs.defaultFS": f"hdfs://{HOST}:{ports['namenode']}",
        "hadoop.tmp.dir": str(layout.tmp),
        "hadoop.security.authentication": "simple",
        # Which names are served at all: hadoop-policy.xml.
        "hadoop.security.authorization": "true",
        # The service users exist in HDFS only; the operating system need not know them.
        "hadoop.user.group.static.mapping.overrides": (
            f"{SUPERUSER}=supergroup,hadoop;yarn=hadoop;mapred=hadoop;dr.who="
        ),
        # A closed port on the loopback device will not open within Hadoop's default of 10 s.
        "ipc.client.connect.max.retries": "5",
        "ipc.client.connect.retry.interval": "200",
    }


def hadoop_policy(users: Iterable[str]) -> Properties:
    """The users whose calls the daemons answer: the cluster's owner, and those of Hadoop.

    A client can claim any of these names. What it cannot do is to use a name of its own.
    """
    names = ",".join(sorted({*SERVICES, *users}))
    return {
        "security.service.authorization.default.acl": names,
        # The callers are containers and show a token, by whose id they are named.
        "security.applicationmaster.protocol.acl": "*",
        "security.containermanagement.protocol.acl": "*",
        "security.resourcelocalizer.protocol.acl": "*",
    }


def patient(core: Properties) -> Properties:
    """The same for daemons, which start side by side and wait for each other.

    A DataNode that has given up once sleeps for 5 s.
    """
    return {**core, "ipc.client.connect.max.retries": "100"}


def hdfs_site(layout: Layout, ports: Mapping[str, int]) -> Properties:
    """One NameNode, one DataNode, permissions checked."""
    return {
        "dfs.replication": "1",
        "dfs.permissions.enabled": "true",
        "dfs.permissions.superusergroup": "supergroup",
        "dfs.webhdfs.enabled": "true",
        "dfs.namenode.rpc-address": f"{HOST}:{ports['namenode']}",
        "dfs.namenode.http-address": f"{HOST}:{ports['namenode-http']}",
        "dfs.namenode.name.dir": f"file://{layout.data('namenode')}",
        "dfs.namenode.safemode.extension": "0",
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
        "dfs.datanode.data.dir": f"file://{layout.data('datanode')}",
        "dfs.datanode.address": f"{HOST}:{ports['datanode']}",
        "dfs.datanode.http.address": f"{HOST}:{ports['datanode-http']}",
        "dfs.datanode.ipc.address": f"{HOST}:{ports['datanode-ipc']}",
        "dfs.datanode.hostname": HOST,
        # A restarted DataNode is noticed at once.
        "dfs.heartbeat.interval": "1",
        # The first look at a new file's block comes too early by microseconds: do not wait 400 ms.
        "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "10",
        # With one DataNode there is none to replace a failed one with.
        "dfs.client.block.write.replace-datanode-on-failure.enable": "false",
    }


def yarn_client(layout: Layout, saved: Saved, lib: Path) -> Properties:
    """What clients and application masters know of YARN."""
    ports = saved.ports
    return {
        "yarn.resourcemanager.hostname": HOST,
        "yarn.resourcemanager.address": f"{HOST}:{ports['rm']}",
        "yarn.resourcemanager.scheduler.address": f"{HOST}:{ports['rm-scheduler']}",
        "yarn.resourcemanager.resource-tracker.address": f"{HOST}:{ports['rm-tracker']}",
        "yarn.resourcemanager.admin.address": f"{HOST}:{ports['rm-admin']}",
        "yarn.resourcemanager.webapp.address": f"{HOST}:{ports['rm-http']}",
        # Configuration last: a Java class archive (AppCDS) admits jars only at the front.
        "yarn.application.classpath": f"{lib}/*,{layout.client_conf}",
        # By default a client sleeps 30 s between attempts at a ResourceManager that is down. It
        # still waits long enough for one that restarts, since masters use this file too.
        "yarn.resourcemanager.connect.retry-interval.ms": "500",
        "yarn.resourcemanager.connect.max-wait.ms": "120000",
        "yarn.client.nodemanager-connect.max-wait-ms": "20000",
        "yarn.client.nodemanager-connect.retry-interval-ms": "500",
        "yarn.client.app-submission.poll-interval": "20",
        "yarn.log-aggregation-enable": "true",
        "yarn.log-aggregation.retain-seconds": str(7 * 24 * 3600),
        "yarn.nodemanager.remote-app-log-dir": HDFS_LOGS,
        "yarn.log.server.url": f"http://{HOST}:{ports['history-http']}/jobhistory/logs",
        "yarn.log.server.web-service.url": f"http://{HOST}:{ports['history-http']}/ws/v1/history",
        "yarn.scheduler.minimum-allocation-mb": "64",
        "yarn.scheduler.maximum-allocation-mb": str(saved.settings.memory_mb),
        "yarn.scheduler.maximum-allocation-vcores": str(saved.settings.vcores),
    }


def resourcemanager(layout: Layout, settings: Settings) -> Properties:
    """Only the ResourceManager reads these."""
    return {
        **(PREEMPTION if settings.preemption else {}),
        **(labelling(layout) if settings.labels else {}),
        # Clients submit by RPC, which names of other users cannot use; REST does not ask.
        "yarn.webapp.enable-rest-app-submissions": "false",
        # Jobs may ask for a priority; Hadoop's default allows none but 0.
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
        # Nothing is scheduled between two heartbeats of a node; the default is one a second.
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "100",
        # A node that is gone is told lost after half a minute instead of ten.
        "yarn.nm.liveness-monitor.expiry-interval-ms": str(settings.node_expiry * 1000),
    }


def labelling(layout: Layout) -> Properties:
    """Node labels that an administrator gives over REST, kept from start to start."""
    return {
        "yarn.node-labels.enabled": "true",
        "yarn.node-labels.fs-store.root-dir": f"file://{layout.data('resourcemanager')}/labels",
    }


def nodemanager(layout: Layout, saved: Saved, node: str) -> Properties:
    """Only this NodeManager reads these."""
    ports, data = saved.ports, layout.data(node)
    return {
        "yarn.nodemanager.hostname": HOST,
        "yarn.nodemanager.address": f"{HOST}:{ports[node]}",
        "yarn.nodemanager.localizer.address": f"{HOST}:{ports[f'{node}-localizer']}",
        "yarn.nodemanager.webapp.address": f"{HOST}:{ports[f'{node}-http']}",
        "yarn.nodemanager.local-dirs": str(data / "local"),
        "yarn.nodemanager.log-dirs": str(data / "logs"),
        "yarn.nodemanager.resource.memory-mb": str(saved.settings.memory_mb),
        "yarn.nodemanager.resource.cpu-vcores": str(saved.settings.vcores),
        "yarn.nodemanager.recovery.enabled": "true",
        "yarn.nodemanager.recovery.supervised": "true",
        "yarn.nodemanager.recovery.dir": str(data / "recovery"),
        # Memory really held is limited; a JVM's address space is not.
        "yarn.nodemanager.pmem-check-enabled": "true",
        "yarn.nodemanager.vmem-check-enabled": "false",
        # Else the check above is left to cgroups, which are not used here.
        "yarn.nodemanager.resource.memory.enforced": "false",
        "yarn.nodemanager.container-monitor.interval-ms": "3000",
        # A nearly full disk is a person's machine in its usual state.
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
        "yarn.nodemanager.disk-health-checker.min-free-space-per-disk-mb": "0",
        "yarn.nodemanager.env-whitelist": f"JAVA_HOME,HADOOP_CONF_DIR,PATH,LANG,TZ,{MARK}",
        "yarn.nodemanager.localizer.cache.target-size-mb": "4096",
    }


def mapred_site(ports: Mapping[str, int]) -> Properties:
    """The history server, which serves the logs of finished applications."""
    return {
        "mapreduce.jobhistory.address": f"{HOST}:{ports['history']}",
        "mapreduce.jobhistory.webapp.address": f"{HOST}:{ports['history-http']}",
        "mapreduce.jobhistory.admin.address": f"{HOST}:{ports['history-admin']}",
        # It keeps MapReduce's own history there, of which there is none.
        "mapreduce.jobhistory.done-dir": "/mr-history/done",
        "mapreduce.jobhistory.intermediate-done-dir": "/mr-history/intermediate",
    }


def capacity_scheduler(settings: Settings) -> Properties:
    """Three queues, each of which may fill an idle cluster and its labelled nodes."""
    prefix = "yarn.scheduler.capacity"
    values = {
        f"{prefix}.resource-calculator": (
            "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
        ),
        f"{prefix}.maximum-applications": "1000",
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
            mine = f"{prefix}.root.{queue}.accessible-node-labels"
            values[mine] = "*"
            values[f"{mine}.{label}.capacity"] = str(capacity)
            values[f"{mine}.{label}.maximum-capacity"] = "100"
    return values
