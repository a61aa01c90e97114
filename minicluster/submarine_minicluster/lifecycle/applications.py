"""Ending every YARN application before the cluster stops, through the ResourceManager's REST."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from submarine_minicluster.hadoop import rest

_ACTIVE = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"


def kill_all(rm_url: str) -> int:
    """Ask the ResourceManager to kill every active application; how many there were."""
    try:
        answer = rest.get(f"{rm_url}/ws/v1/cluster/apps?states={_ACTIVE}")
        active = (answer.get("apps") or {}).get("app") or []
        for application in active:
            rest.request(
                "PUT",
                f"{rm_url}/ws/v1/cluster/apps/{application['id']}/state?user.name=yarn",
                body=json.dumps({"state": "KILLED"}).encode(),
            )
    except rest.RestError:  # stop goes on: the processes are found by other means
        return 0
    return len(active)


def wait_for_containers(node_urls: Sequence[str], timeout: float = 10.0) -> None:
    """Wait until no NodeManager has a container left, or time is up."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        try:
            if not any(_containers(url) for url in node_urls):
                return
        except rest.RestError:
            return
        time.sleep(0.2)


def _containers(url: str) -> int:
    answer = rest.get(f"{url}/ws/v1/node/containers")
    listed = (answer.get("containers") or {}).get("container") or []
    return sum(one.get("state") not in ("DONE", "EXITED_WITH_SUCCESS") for one in listed)
