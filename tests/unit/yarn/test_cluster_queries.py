"""Requests for lists of the whole cluster: how often, which fields, and how many bytes at most."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from submarine_jobs.backends.yarn.cluster import APPS, NODES, ResourceManager, Survey, Waits
from submarine_jobs.errors import ClusterError
from submarine_runtime.cluster_http import simple_access
from submarine_runtime.coordinator.placement import pending_reason
from submarine_runtime.yarn import ContainerRequest, cluster_queries, max_bytes, rest
from tests.unit.coordinator.helpers import config

GPU = {"resourceInformation": [{"name": "yarn.io/gpu", "value": 1}]}


class Recorder:
    """A ResourceManager by HTTP that records each request.

    Attributes
    ----------
    requests
        Path and query of each.
    bodies
        Path -> JSON of the response.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.bodies: dict[str, Any] = {}
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                path = parts.path.removeprefix("/ws/v1/cluster")
                recorder.requests.append((path, dict(parse_qsl(parts.query))))
                body = json.dumps(recorder.bodies.get(path, {})).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words: Any) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def cluster(self, nodes: int, applications: int) -> None:
        """Serve a cluster of this size."""
        queue = {"queueName": "default", "numActiveApplications": applications}
        info = {"type": "capacityScheduler", "queues": {"queue": [queue]}}
        self.bodies["/scheduler"] = {"scheduler": {"schedulerInfo": info}}
        size = {"memory": 1024, "vCores": 1, "resourceInformations": GPU}
        node = {"state": "RUNNING", "totalResource": size, "usedResource": size}
        self.bodies["/nodes"] = {
            "nodes": {
                "node": [{**node, "id": f"n{n}:1", "nodeHostName": f"n{n}"} for n in range(nodes)]
            }
        }
        apps = [
            {"id": f"application_1_{n:04}", "state": "RUNNING", "user": "bob", "queue": "default"}
            for n in range(min(applications, cluster_queries.MAX_APPLICATIONS))
        ]
        self.bodies["/apps"] = {"apps": {"app": apps}}

    def count(self, path: str) -> int:
        return sum(each == path for each, _ in self.requests)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    made = Recorder()
    yield made
    made.close()


@pytest.fixture
def rm(recorder: Recorder) -> ResourceManager:
    return ResourceManager([recorder.url], timeout=20.0, access=simple_access("ada"))


class Clock:
    """Replaces ``time.monotonic`` in a module."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (
        "submarine_jobs.backends.yarn.cluster.cache",
        "submarine_runtime.coordinator.placement.pending_reason",
    ):
        monkeypatch.setattr(f"{module}.time", made)
    return made


@pytest.mark.parametrize(("nodes", "requests"), [(3, 30), (500, 5), (4000, 1)])
def test_a_long_list_of_nodes_is_requested_rarely(
    recorder: Recorder, rm: ResourceManager, clock: Clock, nodes: int, requests: int
) -> None:
    recorder.cluster(nodes, 1)
    cache = Waits(rm, "ada").cache
    for _ in range(300):  # Each second of five minutes, as with a cluster on display.
        assert len(cache.get(NODES)) == nodes
        clock.now += 1
    assert recorder.count("/nodes") == requests


def test_the_applications_of_a_large_cluster_are_those_of_submarine(
    recorder: Recorder, rm: ResourceManager
) -> None:
    cache = Waits(rm, "ada").cache
    for applications in (300, 301):
        recorder.cluster(1, applications)
        cache.refresh("scheduler")
        cache.refresh(APPS)
    small, large = (query for path, query in recorder.requests if path == "/apps")
    assert small["limit"] == large["limit"] == "300"
    assert small["deSelects"] == "resourceRequests,timeouts"
    assert "applicationTags" not in small
    assert large["applicationTags"] == "submarine"


@pytest.mark.parametrize("shown", [(), ("j-20261129-0001",)])
def test_no_poll_requests_all_applications(
    recorder: Recorder, rm: ResourceManager, clock: Clock, shown: tuple[str, ...]
) -> None:
    recorder.cluster(4000, 1000)
    waits = Waits(rm, "ada")
    survey = Survey(rm, waits, "ada")
    own = {
        "id": "application_1_0001",
        "state": "ACCEPTED",
        "user": "ada",
        "queue": "default",
        "applicationTags": "submarine,submarine_job:j-20261129-0001",
    }
    recorder.bodies["/apps"] = {"apps": {"app": [own]}}
    for _ in range(100):
        waits.cache.mark_viewed()
        survey.poll({"j-20261129-0001": {"application_id": own["id"]}}, shown)
        clock.now += 3
    lists = [query for path, query in recorder.requests if path == "/apps"]
    assert len(lists) >= 100
    assert all({"user", "limit"} & query.keys() for query in lists)
    # Only the first poll does not know yet how many there are.
    assert all(query["applicationTags"] == "submarine" for query in lists[1:])
    assert recorder.count("/nodes") <= 1
    if not shown:
        assert all("resourceInfo" in query["deSelects"] for query in lists if "user" in query)


def test_a_waiting_gang_requests_long_lists_rarely(
    recorder: Recorder, clock: Clock, tmp_path: Path
) -> None:
    recorder.cluster(4000, 1000)
    asked = replace(config(tmp_path), resourcemanagers=[recorder.url])
    thread = pending_reason.PendingReasonThread(asked, "application_1_0001", list, print)
    for _ in range(30):  # Every 10 s of five minutes.
        sentence = thread.query([ContainerRequest(2, 512, 1, 1)])
        assert sentence == "the cluster has 0 of 4000 GPUs free"
        clock.now += 10
    assert recorder.count("/scheduler") == 30
    assert recorder.count("/nodes") == 1
    lists = [query for path, query in recorder.requests if path == "/apps"]
    assert len(lists) == 5
    assert {(query["applicationTags"], query["limit"]) for query in lists} == {("submarine", "300")}


@pytest.mark.parametrize(
    ("path", "size"),
    [
        ("/nodes", 32),
        ("/apps", 32),
        ("/scheduler", 16),
        ("/apps/application_1_0001", 4),
        ("/apps/application_1_0001/appattempts", 4),
        ("/info", 4),
    ],
)
def test_each_response_has_a_limit_in_bytes(path: str, size: int) -> None:
    assert max_bytes(path) == size << 20


def test_a_response_above_its_limit_is_one_sentence_and_is_not_requested_again(
    recorder: Recorder, rm: ResourceManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder.bodies["/nodes"] = {"nodes": {"node": ["x" * (2 << 20)]}}
    monkeypatch.setattr(rest, "max_bytes", lambda path: 1 << 20)
    with pytest.raises(ClusterError) as raised:
        rm.get("/nodes")
    assert raised.value.message == (
        f"/nodes of the ResourceManager at {recorder.url} is not read: the answer is longer than "
        "1 MB."
    )
    assert recorder.count("/nodes") == 1
    recorder.bodies["/info"] = {"clusterInfo": {}}
    assert rm.get("/info") == {"clusterInfo": {}}
