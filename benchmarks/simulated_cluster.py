"""Simulated cluster of the server's benchmarks, and rows of jobs for an index.

The ResourceManager sends recorded answers of a cluster without free GPUs, and counts requests.
There is no HDFS.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from submarine_jobs.tracking import IndexEntry
from submarine_runtime.protocol import JobRecord, Phase, State, TaskRecord

RECORDED = Path(__file__).parent.parent / "tests/unit/yarn/recorded/waits.json.gz"
USER = "ada"


class ResourceManager:
    """HTTP server that simulates applications and counts requests.

    Attributes
    ----------
    apps, waiting
        Application -> job, of running ones and of those that wait for their first container.
    others, singles
        Applications of all users; and those that are found by their id.
    asked
        Path below ``/ws/v1/cluster`` -> number of requests.
    """

    def __init__(self) -> None:
        recorded = json.loads(gzip.decompress(RECORDED.read_bytes()))["gpu-all-held"]
        self.others: list[dict[str, Any]] = recorded["apps"]["apps"]["app"]
        self.template = self.others[0]
        self.scheduler = json.dumps(recorded["scheduler"]).encode()
        self.nodes = json.dumps(recorded["nodes"]).encode()
        self.asked: Counter[str] = Counter()
        self.apps: dict[str, str] = {}
        self.waiting: dict[str, str] = {}
        self.singles: dict[str, dict[str, Any]] = {}
        self._answers: dict[tuple[bool, bool, bool], tuple[int, bytes]] = {}
        simulated = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                body = simulated.answer(parts.path, parse_qs(parts.query))
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                self.wfile.flush()

            def log_message(self, *words: Any) -> None:
                """Log nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port: int = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, path: str, query: dict[str, list[str]]) -> bytes:
        """Return the body of an answer."""
        name = path.removeprefix("/ws/v1/cluster")
        self.asked[name] += 1
        if name == "/scheduler":
            return self.scheduler
        if name == "/nodes":
            return self.nodes
        if name.removeprefix("/apps/") in self.singles:
            return json.dumps({"app": self.singles[name.removeprefix("/apps/")]}).encode()
        if name != "/apps" or "states" not in query:
            return b"{}"
        everybody, tagged = "user" not in query, "applicationTags" in query
        requests = "resourceRequests" not in query.get("deSelects", [""])[0].split(",")
        number = len(self.apps) + len(self.waiting)
        if self._answers.get((everybody, tagged, requests), (-1, b""))[0] != number:
            apps = [self.app(*item, "RUNNING") for item in list(self.apps.items())]
            apps += [self.app(*item, "ACCEPTED") for item in list(self.waiting.items())]
            if not tagged:
                apps += [app for app in self.others if everybody or app["user"] == USER]
            if not requests:
                apps = [{k: v for k, v in app.items() if k != "resourceRequests"} for app in apps]
            body = json.dumps({"apps": {"app": apps}}).encode()
            self._answers[(everybody, tagged, requests)] = (number, body)
        return self._answers[(everybody, tagged, requests)][1]

    def app(self, identity: str, job_id: str, state: str) -> dict[str, Any]:
        """Return an application of Submarine; a waiting one has no container and requests a GPU."""
        ours = {
            **self.template,
            "id": identity,
            "user": USER,
            "state": state,
            "applicationTags": f"submarine,submarine_job:{job_id}",
        }
        if state == "RUNNING":
            return {**ours, "resourceRequests": []}
        nothing = {"allocatedMB": 0, "allocatedVCores": 0, "resourceInfo": None}
        return {**ours, **nothing, "resourceRequests": [_one_gpu()]}

    def close(self) -> None:
        """Stop the server."""
        self.server.shutdown()
        self.server.server_close()


def _one_gpu() -> dict[str, Any]:
    gpu = {"resourceInformation": [{"name": "yarn.io/gpu", "value": 1}]}
    size = {"memory": 1024, "vCores": 1, "resourceInformations": gpu}
    return {"resourceName": "*", "numContainers": 1, "capability": size}


def known(number: int, state: State) -> IndexEntry:
    """Return the index row of a job of one task."""
    job_id, created = f"digits-20261122-{number:04x}", time.time() - 30 * number
    identity = f"application_1795240772280_{number:06}"
    task = TaskRecord("worker:0", "worker", 0, state=state, started=created, memory_peak=512.0)
    record = JobRecord(
        job_id,
        "digits",
        state,
        user=USER,
        backend="yarn",
        queue="default",
        application_id=identity,
        created=created,
        finished=created + 20 if state.ended else None,
        phases=[Phase("queue", created, created + 3), Phase("run", created + 3, created + 20)],
        tasks=[task],
        resources={"requested": {"worker": {"memory": 1024, "vcores": 1, "gpus": 1}}},
        links={"YARN application": f"http://127.0.0.1/cluster/app/{identity}"},
    )
    handle = {"kind": "yarn", "application_id": identity, "submitted": created, "user": USER}
    where = f"hdfs://127.0.0.1:1/user/{USER}/submarine/202611/{job_id}"
    return IndexEntry(job_id, "digits", "yarn", "default", where, created, state, handle, record)


def fill(path: Path, rows: list[IndexEntry]) -> None:
    """Insert all rows at once, which ``JobStore`` does not support."""
    with sqlite3.connect(path) as connection:
        connection.executemany(
            "INSERT OR REPLACE INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (
                    *(row.job_id, row.name, row.backend, row.profile, row.job_dir, row.created),
                    *(row.state.value, json.dumps(row.handle)),
                    *(json.dumps(row.record.to_json() if row.record else None), row.created),
                )
                for row in rows
            ),
        )
    connection.close()
