"""Configuration of the driver that precedes that of the cluster: short timeouts, frequent polls.

Hadoop clients wait up to fifteen minutes for a ResourceManager that is down; in a notebook the
error must appear within seconds. Application masters do not use these files.
"""

from __future__ import annotations

from pathlib import Path

from submarine_jobs.backends.yarn.cluster import HadoopConf, read_properties, write_properties


def write_overlay(conf: HadoopConf, directory: Path, timeout: float) -> Path:
    """Write the cluster's files with the changed values to ``directory``, and return it."""
    directory.mkdir(exist_ok=True, mode=0o700)
    give_up = str(int(max(timeout - 5.0, 3.0) * 1000))
    changes = {
        "core-site.xml": {
            "ipc.client.connect.max.retries": "3",
            "ipc.client.connect.retry.interval": "300",
            "ipc.client.connect.max.retries.on.timeouts": "1",
            "ipc.client.connect.timeout": "5000",
        },
        "hdfs-site.xml": {
            # Complete the last block of a new file within a few ms instead of 400 ms.
            "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "10",
            "dfs.client.retry.policy.enabled": "false",
            "dfs.client.failover.max.attempts": "4",
        },
        "yarn-site.xml": {
            "yarn.resourcemanager.connect.max-wait.ms": give_up,
            "yarn.resourcemanager.connect.retry-interval.ms": "500",
            "yarn.client.failover-max-attempts": "4",
            "yarn.client.failover-sleep-base-ms": "300",
            # After a submit the client polls until the application is accepted: 200 ms by default.
            "yarn.client.app-submission.poll-interval": "20",
            "yarn.client.application-client-protocol.poll-interval-ms": "20",
            "yarn.client.application-client-protocol.poll-timeout-ms": give_up,
        },
    }
    for name, values in changes.items():
        merged = {**read_properties(conf.directory / name), **values}
        (directory / name).write_bytes(write_properties(merged))
    return directory
