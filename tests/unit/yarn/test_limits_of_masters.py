"""Limits of a queue for application masters."""

from __future__ import annotations

from submarine_runtime.yarn import Size, queues_of


def test_the_limits_of_the_queue_precede_those_of_its_partition() -> None:
    own, partition = {"memory": 8192, "vCores": 8}, {"memory": 0, "vCores": 0}
    usage = {"partitionName": "", "amLimit": partition, "userAmLimit": partition}
    gpu = {
        "queueName": "gpu",
        "AMResourceLimit": own,
        "userAMResourceLimit": own,
        "resources": {"resourceUsagesByPartition": [usage]},
    }
    root = {"type": "capacityScheduler", "queueName": "root", "queues": {"queue": [gpu]}}
    [queue] = queues_of({"scheduler": {"schedulerInfo": root}})
    assert queue.masters == queue.user_masters == Size(8192, 8, 0)
