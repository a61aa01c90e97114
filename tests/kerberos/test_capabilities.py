"""Capabilities of jobs that other tests check without Kerberos: one test of each.

Ports in a range, Apache Submarine's command lines, GPUs, the text at the tracking URL after the
end, and the reason of a container that does not reach its agent.
"""

from __future__ import annotations

import json
import random
import socket
import ssl
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from submarine_minicluster import Minicluster
from submarine_minicluster.hadoop import SecureWebHdfs
from tests.kerberos.helpers import User, allocated, page, until_kept
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
    lines = f"{kerberos_minicluster.default_fs}/user/alice/lines"
    description = alice.file("job.yaml", DESCRIPTION)
    options = (
        *("--name", "tf-job-001", "--input", f"train={lines}/data.txt"),
        *("--input_path", f"{lines}/data.txt", "--checkpoint_path", f"{lines}/checkpoints"),
        *("--num_workers", "2", "--worker_resources", "memory=256M,vcores=1,gpu=1", "--wait"),
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
        assert log == f"pictures of cats\nworker {index} of 2 worker\n"


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
    url = until_kept(cluster, job)
    assert url.startswith("https://localhost:")
    assert job["job_id"] not in page(cluster, url, "bob")
    # Without a ticket there is no page.
    context = ssl.create_default_context(cafile=str(cluster.ca))
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(url, timeout=30, context=context)


def free_ports() -> range:
    """Ports in a row that were free just now."""
    chance = random.Random()
    for _ in range(100):
        ports = range(first := chance.randrange(40000, 60000), first + PORTS)
        with ExitStack() as held, suppress(OSError):
            for port in ports:
                held.enter_context(socket.socket()).bind(("", port))
            return ports
    raise AssertionError("there are no free ports in a row")


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
    ports = free_ports()
    config.write_text(f'[settings]\nport_range = "{ports[0]}-{ports[-1]}"\n')
    started = alice.json(
        *("run", "--num_workers", "2", "--worker_resources", "memory=256M,vcores=1,gpu=2"),
        *("--worker_launch_cmd", HOLD.format(go=go)),
        env={"SUBMARINE_CONFIG": str(config)},
    )

    def of_three_containers() -> dict[int, str] | None:
        """Of the coordinator in the master's container, and of an agent in each other one."""
        found = listening(job["application_id"])
        return found if len(set(found.values())) == 3 else None

    try:
        job = until(lambda: running(alice, started["job_id"]), "a running gang", LIMIT)
        found = until(of_three_containers, "the ports of three containers", 60)
        assert set(found) <= set(ports), found
        for task in ("worker:0", "worker:1"):
            log = alice.run("logs", job["job_id"], "--task", task).stdout
            assert int(log.removeprefix("port ")) in ports
        assert allocated(kerberos_minicluster, job)["yarn.io/gpu"] == 4
    finally:
        go.touch()
        alice.run("wait", started["job_id"])
    assert alice.json("show", started["job_id"])["state"] == "SUCCEEDED"


def running(user: User, job_id: str) -> Any:
    """The job while it runs; None before."""
    shown = user.json("show", job_id)
    assert shown["state"] not in ("SUCCEEDED", "FAILED", "CANCELLED"), shown
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
