"""Capabilities of jobs that other tests check without Kerberos: one test of each.

Ports in a range, Apache Submarine's command lines, GPUs, the text at the tracking URL after the
end, and the reason of a container that does not reach its agent.
"""

from __future__ import annotations

import json
import random
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from submarine_minicluster import Minicluster
from submarine_minicluster.hadoop import RestError, SecureWebHdfs, get_json, http_request
from tests.kerberos.helpers import User
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]

PORTS = 20
LIMIT = 180.0
HOLD = "echo port $SUBMARINE_PORT; while ! test -e '{go}'; do sleep 0.1; done"
WORKER = "cat %input_path% && echo worker $SUBMARINE_INDEX of $SUBMARINE_TASK_COUNT $JOB_NAME"
DESCRIPTION = """
spec: {name: tf-job-002, framework: any}
configs:
  input_path: hdfs://default/data
  wait_job_finish: true
  envs: {GREETING: "hello, %input_path%"}
roles:
  worker:
    replicas: 1
    resources: memory=256M,vcores=1
    launch_cmd: echo $GREETING $EXTRA
"""


@pytest.fixture(scope="module")
def alice(kerberos_minicluster: Minicluster, tmp_path_factory: pytest.TempPathFactory) -> User:
    return User(kerberos_minicluster, "alice", tmp_path_factory.mktemp("alice"))


@pytest.fixture(scope="module")
def jobs(alice: User, kerberos_minicluster: Minicluster) -> dict[str, dict[str, Any]]:
    """What ``show`` tells of jobs that were run by the command lines of Apache Submarine."""
    home = SecureWebHdfs(kerberos_minicluster.url("namenode"), kerberos_minicluster.access("alice"))
    home.write("/user/alice/lines/data.txt", b"pictures of cats\n")
    description = alice.file("job.yaml", DESCRIPTION)
    options = (
        *("--name", "tf-job-001", "--input_path", "/user/alice/lines/data.txt"),
        *("--checkpoint_path", "/user/alice/lines/checkpoints", "--wait"),
        *("--num_workers", "2", "--worker_resources", "memory=256M,vcores=1,gpu=1"),
        *("--worker_launch_cmd", WORKER, "--num_ps", "1"),
        *("--ps_resources", "memory=128M,vcores=1", "--ps_launch_cmd", "exec sleep 600"),
    )
    with ThreadPoolExecutor() as pool:
        runs = {
            "options": pool.submit(alice.run, "job", "run", *options, "--json"),
            "file": pool.submit(
                alice.run, "job", "run", "-f", description, "--env", "EXTRA=again", "--json"
            ),
        }
    ended = {}
    for name, run in runs.items():
        done = run.result()
        assert done.returncode == 0, done.stdout + done.stderr
        ended[name] = alice.json("show", json.loads(done.stdout)["job_id"])
    return ended


def test_the_options_of_the_article(alice: User, jobs: dict[str, dict[str, Any]]) -> None:
    job = jobs["options"]
    assert (job["state"], job["name"], job["user"]) == ("SUCCEEDED", "tf-job-001", "alice")
    tasks = {task["task"]: task for task in job["tasks"]}
    assert tasks.keys() == {"worker:0", "worker:1", "ps:0"}
    # Each on a device of its own: the nodes of the cluster count devices of yarn.io/gpu.
    devices = [tasks[name]["gpus"] for name in ("worker:0", "worker:1")]
    assert [len(one) for one in devices] == [1, 1]
    assert devices[0] != devices[1]
    for index in (0, 1):
        log = alice.run("logs", job["job_id"], "--task", f"worker:{index}").stdout
        assert log == f"pictures of cats\nworker {index} of 2 tf-job-001\n"


def test_a_job_described_by_a_file(alice: User, jobs: dict[str, dict[str, Any]]) -> None:
    job = jobs["file"]
    assert (job["state"], job["name"], job["user"]) == ("SUCCEEDED", "tf-job-002", "alice")
    log = alice.run("logs", job["job_id"]).stdout
    assert log == "hello, hdfs://default/data again\n"


@pytest.mark.parametrize("kind", ["options", "file"])
def test_the_tracking_url_opens_the_text_of_an_ended_job(
    kind: str, jobs: dict[str, dict[str, Any]], kerberos_minicluster: Minicluster
) -> None:
    """The job unregisters by its master's token; the history server requires a ticket."""
    job, cluster = jobs[kind], kerberos_minicluster
    url = f"{cluster.url('resourcemanager')}/ws/v1/cluster/apps/{job['application_id']}"
    app = get_json(url, cluster.access("alice"))["app"]
    assert (app["state"], app["finalStatus"]) == ("FINISHED", "SUCCEEDED")
    assert app["trackingUrl"].startswith(f"{cluster.url('historyserver')}/jobhistory/logs/")
    assert app["trackingUrl"].startswith("https://localhost:")

    def shown(user: str) -> str:
        with suppress(RestError):
            access = cluster.access(user)
            _status, body, _place = http_request(
                "GET", app["trackingUrl"], accept="text/html", access=access
            )
            return body.decode()
        return ""

    until(lambda: f"job_id: {job['job_id']}" in shown("alice"), "the text of the job", LIMIT)
    assert "state: SUCCEEDED" in shown("alice")
    assert job["job_id"] not in shown("bob")
    assert http_request("GET", app["trackingUrl"], access=None, signed=True)[0] == 401


@contextmanager
def free_range() -> Iterator[range]:
    """Ports in a row that were free just now."""
    chance = random.Random()
    for _ in range(100):
        first = chance.randrange(40000, 60000)
        with ExitStack() as held, suppress(OSError):
            for port in range(first, first + PORTS):
                held.enter_context(socket.socket()).bind(("", port))
            break
    else:
        raise AssertionError("there are no free ports in a row")
    yield range(first, first + PORTS)


def listening(application: str) -> dict[int, str]:
    """The ports of the Python processes in the containers of an application."""
    number = application.removeprefix("application_")
    found = {}
    for process in psutil.process_iter(["name"]):
        with suppress(psutil.Error):
            container = process.environ().get("CONTAINER_ID", "")
            if number in container and process.name() != "java":
                for one in process.net_connections("tcp"):
                    if one.status == psutil.CONN_LISTEN:
                        found[one.laddr.port] = container
    return found


def test_every_port_of_a_gang_lies_in_the_range(
    alice: User, kerberos_minicluster: Minicluster, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    config = tmp_path / "submarine.toml"
    with free_range() as ports:
        config.write_text(f'[settings]\nport_range = "{ports[0]}-{ports[-1]}"\n')
        started = alice.json(
            *("run", "--num_workers", "2", "--worker_resources", "memory=256M,vcores=1,gpu=2"),
            *("--worker_launch_cmd", HOLD.format(go=go)),
            env={"SUBMARINE_CONFIG": str(config)},
        )
        try:
            job = until(lambda: running(alice, started["job_id"]), "a running gang", LIMIT)
            # The coordinator in the master's container, and an agent in each of two others.
            found = until(
                lambda: (
                    seen
                    if len(set((seen := listening(job["application_id"])).values())) >= 3
                    else None
                ),
                "the ports of three containers",
                60,
            )
            assert set(found) <= set(ports), found
            for task in ("worker:0", "worker:1"):
                log = alice.run("logs", job["job_id"], "--task", task).stdout
                assert int(log.removeprefix("port ")) in ports
            url = kerberos_minicluster.url("resourcemanager")
            url += f"/ws/v1/cluster/apps/{job['application_id']}"
            app = get_json(url, kerberos_minicluster.access("alice"))["app"]
            used = app["resourceInfo"]["resourceUsagesByPartition"][0]["used"]
            gpus = {
                one["name"]: int(one["value"])
                for one in used["resourceInformations"]["resourceInformation"]
            }
            assert gpus["yarn.io/gpu"] == 4
        finally:
            go.touch()
            alice.run("wait", started["job_id"])
    assert alice.json("show", started["job_id"])["state"] == "SUCCEEDED"


def running(user: User, job_id: str) -> Any:
    shown = user.json("show", job_id)
    assert not shown["ended"] if "ended" in shown else True, shown
    return shown if shown["state"] == "RUNNING" else None


def test_a_container_that_does_not_reach_its_agent_ends_the_job_with_the_reason(
    alice: User, tmp_path: Path
) -> None:
    """The NodeManager accepts no tokens, and serves HTTPS only: its text comes through YARN."""
    config = tmp_path / "submarine.toml"
    config.write_text(
        f'[settings]\nagent_python = "/nowhere/python3"\ncoordinator_python = "{sys.executable}"\n'
    )
    program = alice.file("never.py", "print('never printed')")
    done = alice.run(
        *("run", program, "--memory", "256M", "--docker_image", "local/bare:1"),
        *("--worker", "2", "--wait", "--json"),
        env={"SUBMARINE_CONFIG": str(config)},
    )
    assert done.returncode
    job = alice.json("show", json.loads(done.stdout)["job_id"])
    assert job["reason"] == "launch_failed", job
    assert "The image local/bare:1 has no python3 for the agent" in job["detail"]
    assert [task["restarts"] for task in job["tasks"]] == [0, 0]
    assert "never printed" not in done.stdout + done.stderr
