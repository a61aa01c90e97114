"""A cluster that takes connections and never answers: what this machine knows comes at once."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs.tracking import IndexEntry, JobStore
from submarine_runtime.protocol import JobRecord, State
from tests.local.server.jupyter_server import Server

DONE, GOING = "done-20261120-0001", "going-20261120-0002"
#: The server's limit in seconds for one call to the cluster.
LIMIT = 3.0


class Mute:
    """Listens, accepts, and says nothing."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = self._socket.getsockname()[1]
        self._held: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                self._held.append(self._socket.accept()[0])
            except OSError:
                return

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()
        for connection in self._held:
            connection.close()


def _site(path: Path, **values: str) -> None:
    properties = "".join(
        f"<property><name>{name.replace('_', '.')}</name><value>{value}</value></property>"
        for name, value in values.items()
    )
    path.write_text(f"<configuration>{properties}</configuration>")


@pytest.fixture(scope="module")
def mute() -> Iterator[Mute]:
    made = Mute()
    yield made
    made.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, mute: Mute) -> Iterator[Server]:
    scratch = tmp_path_factory.mktemp("hung")
    conf = scratch / "conf"
    conf.mkdir()
    _site(conf / "core-site.xml", fs_defaultFS=f"hdfs://127.0.0.1:{mute.port}")
    address = f"127.0.0.1:{mute.port}"
    _site(conf / "yarn-site.xml", yarn_resourcemanager_webapp_address=address)
    _site(conf / "hdfs-site.xml", **{"dfs_namenode_http-address": address})
    made = Server(
        scratch,
        SUBMARINE_HADOOP_CONF_DIR=str(conf),
        SUBMARINE_TIMEOUT=str(LIMIT),
        HADOOP_USER_NAME="ada",
    )
    store = JobStore(scratch / "state" / "jobs.sqlite")
    for job_id, state in ((DONE, State.SUCCEEDED), (GOING, State.RUNNING)):
        record = JobRecord(job_id, job_id.split("-")[0], state, user="ada")
        url = f"hdfs://127.0.0.1:{mute.port}/user/ada/submarine/202611/{job_id}"
        handle = {"application_id": "application_1_0001"}
        store.put(
            IndexEntry(job_id, record.name, "yarn", "default", url, 1.0, state, handle, record)
        )
    made.start()
    yield made
    assert made.stop(), "a cluster that hangs held up the server's end"


def test_health_and_the_list_come_though_the_cluster_does_not_answer(server: Server) -> None:
    for _ in range(3):
        health = server.call("GET", "health").json
        assert (health["backend"], health["reachable"]) == ("yarn", False)
        assert health["problem"]
        page = server.call("GET", "jobs").json
        assert [row["job_id"] for row in page["jobs"]] == [GOING, DONE]
        assert page["problem"]


def test_what_needs_the_cluster_fails_in_time_with_a_sentence(server: Server) -> None:
    for path in (f"jobs/{GOING}/models", f"jobs/{GOING}/metrics", f"jobs/{GOING}/script"):
        answer = server.call("GET", path, timeout=120)
        assert answer.status in (502, 504), path
        assert answer.json["error"].endswith(".")
    cluster = server.call("GET", "cluster")
    assert cluster.status == 200
    assert cluster.json["problem"]
    assert cluster.json["nodes"] == []


def test_many_waiting_requests_do_not_block_the_others(server: Server) -> None:
    answers: list[int] = []
    begun = threading.Semaphore(0)

    def ask(number: int) -> None:
        path = f"jobs/none-20261120-{number:04x}/models"
        begun.release()
        answers.append(server.call("GET", path, timeout=120).status)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(60)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert begun.acquire(timeout=60)
    assert server.call("GET", "health").status == 200
    page = server.call("GET", "jobs?text=done").json
    assert len(answers) < 60, "whoever needs no cluster came after those who do"
    assert [row["job_id"] for row in page["jobs"]] == [DONE]
    for thread in threads:
        thread.join()
    assert set(answers) <= {404, 502, 504}
    assert len(answers) == 60


def test_nothing_has_failed_inside(server: Server) -> None:
    assert "Traceback" not in server.log.read_text()
