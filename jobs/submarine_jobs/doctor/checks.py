"""The list of all checks in display order; a check follows the checks that it needs."""

from __future__ import annotations

from functools import partial

from submarine_jobs.doctor import authorization, cluster, gpu, hadoop, kerberos, machine, node
from submarine_jobs.doctor.capacity import capacity
from submarine_jobs.doctor.result import Check
from submarine_jobs.doctor.site import site

#: Required: a configuration; open ports; a ticket; permission to act for the user; a
#: ResourceManager that answers.
_CONFIGURED = ("hadoop configuration",)
_PORTS = (*_CONFIGURED, "ports")
_SIGNED_IN = (*_PORTS, "kerberos ticket")
_REACHED = (*_SIGNED_IN, "proxy user")
_ANSWERS = (*_REACHED, "resource manager")

_of_node = partial(Check, node=True, client=False, cluster=True, needs=_CONFIGURED)

CHECKS: tuple[Check, ...] = (
    Check("site file", site, node=True),
    Check("profile", hadoop.configured, node=True),
    Check("java", machine.java, node=True, cluster=True),
    Check("hadoop configuration", hadoop.configuration, node=True, cluster=True),
    Check("hadoop client", hadoop.client, cluster=True, needs=(*_CONFIGURED, "java"), seconds=45.0),
    Check("ports", cluster.ports, cluster=True, needs=_CONFIGURED, seconds=45.0, node=True),
    Check("kerberos ticket", kerberos.ticket, cluster=True, needs=_CONFIGURED, seconds=45.0),
    Check("certificates", kerberos.certificates, cluster=True, needs=_CONFIGURED, seconds=45.0),
    Check("kerberos names", kerberos.service_names, cluster=True, needs=_CONFIGURED),
    Check("proxy user", authorization.proxy_user, cluster=True, needs=_SIGNED_IN),
    Check("resource manager", cluster.resourcemanager, cluster=True, needs=_REACHED, node=True),
    Check("token renewal", kerberos.token_renewal, cluster=True, needs=_ANSWERS),
    Check("queues", cluster.queues, cluster=True, needs=_ANSWERS),
    Check("yarn acls", authorization.yarn_acls, cluster=True, needs=_ANSWERS),
    Check("queue access", authorization.queue_access, cluster=True, needs=_ANSWERS),
    Check("capacity", capacity, cluster=True, needs=(*_ANSWERS, "queue access")),
    Check("resource types", hadoop.resource_types, cluster=True, needs=_ANSWERS),
    Check(
        "encryption zones", kerberos.encryption_zones, cluster=True, needs=_REACHED, seconds=30.0
    ),
    Check("hdfs", cluster.hdfs, cluster=True, needs=_REACHED, seconds=30.0),
    Check("hdfs acls", authorization.hdfs_acls, cluster=True, needs=(*_REACHED, "hdfs")),
    Check("webhdfs", cluster.webhdfs, cluster=True, needs=_REACHED, node=True),
    Check("names", machine.names, node=True),
    Check("clock", cluster.clock, cluster=True, needs=_PORTS, node=True),
    Check("python", machine.job_python, node=True),
    Check("python on the nodes", machine.python_reach, cluster=True, needs=_CONFIGURED),
    Check("gpu driver", gpu.driver, seconds=40.0, node=True),
    Check("proxies", machine.proxies),
    Check("state directory", machine.state_directory),
    _of_node("container executor", node.container_executor),
    _of_node("cgroups", node.cgroups),
    _of_node("memory checks", node.memory_checks),
    _of_node("docker", node.docker),
    _of_node("node directories", node.local_directories),
)
