"""The list of all checks, in the order in which they are shown."""

from __future__ import annotations

from submarine_jobs.doctor import cluster, gpu, hadoop, machine, node
from submarine_jobs.doctor.result import Check
from submarine_jobs.doctor.room import room

CHECKS: tuple[Check, ...] = (
    Check("profile", hadoop.configured),
    Check("java", machine.java, node=True),
    Check("hadoop configuration", hadoop.configuration, node=True),
    Check("hadoop client", hadoop.client, seconds=45.0),
    Check("resource manager", cluster.resourcemanager, node=True),
    Check("ports", cluster.ports, seconds=45.0, node=True),
    Check("queues", cluster.queues),
    Check("room", room),
    Check("resource types", hadoop.resource_types),
    Check("hdfs", cluster.hdfs, seconds=30.0),
    Check("webhdfs", cluster.webhdfs, node=True),
    Check("names", machine.names, node=True),
    Check("clock", cluster.clock, node=True),
    Check("python", machine.job_python, node=True),
    Check("python on the nodes", machine.python_reach),
    Check("gpu driver", gpu.driver, seconds=40.0, node=True),
    Check("proxies", machine.proxies),
    Check("state directory", machine.state_directory),
    Check("container executor", node.container_executor, node=True, client=False),
    Check("cgroups", node.cgroups, node=True, client=False),
    Check("memory checks", node.memory_checks, node=True, client=False),
    Check("docker", node.docker, node=True, client=False),
    Check("node directories", node.local_directories, node=True, client=False),
)
