"""The three command lines that users of Apache Submarine know, on a real YARN.

Only launcher, commands and paths are filled in, sizes are those of a minicluster, and there is no
Docker image.
"""

from __future__ import annotations

import http.client
import json
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.client import Job
from submarine_jobs.commands import execute
from submarine_runtime.protocol import State
from tests.cluster.conftest import Shell
from tests.waiting import until

pytestmark = pytest.mark.cluster
#: The tests' own Python has TensorBoard.
PYTHON = sys.prefix
WORKER = (
    "cat %input_path% && echo worker $SUBMARINE_INDEX of $SUBMARINE_TASK_COUNT "
    "$TF_ROLE $JOB_NAME; touch $SUBMARINE_CHECKPOINT_DIR/step-$SUBMARINE_INDEX"
)
EVENTS = """
import os, time
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
writer = EventFileWriter(os.environ["SUBMARINE_TENSORBOARD_DIR"])
value = Summary.Value(tag="loss", simple_value=0.5)
writer.add_event(Event(step=1, wall_time=time.time(), summary=Summary(value=[value])))
writer.close()
"""


@pytest.fixture
def jobs() -> Iterator[list[Job]]:
    started: list[Job] = []
    yield started
    for job in started:
        if not job.state.ended:
            job.cancel("the test is over")
            job.wait(timeout=60)


def submarine_run(shell: Shell, jobs: list[Job], *words: str) -> Job:
    job = execute(["run", *words], shell).job
    assert job is not None
    jobs.append(job)
    return job


def link(job: Job, label: str, seconds: float = 180.0) -> str:
    """The link of that name, once it is there."""
    deadline = time.monotonic() + seconds
    while True:
        record = job.view().record
        assert not record.state.ended, record.detail
        if record.state is State.RUNNING and label in record.links:
            return record.links[label]
        assert time.monotonic() < deadline, f"no link {label}: {record.links}"
        time.sleep(0.5)


def page(url: str, seconds: float = 120.0) -> Any:
    deadline = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=10) as reply:
                return reply.read().decode()
        except (OSError, http.client.HTTPException):
            assert time.monotonic() < deadline, f"{url} does not answer"
            time.sleep(0.5)


def test_the_distributed_job(shell: Shell, jobs: list[Job]) -> None:
    session = shell.session(shell.config({}))
    storage, root = session.backend().job_root()
    data, checkpoints = f"{root}/lines/cifar-10-data", f"{root}/lines/cifar-10-jobdir"
    storage.make_directory(f"{root}/lines")
    storage.publish(data, b"pictures of cats\n")
    job = submarine_run(
        shell,
        jobs,
        *("--name", "tf-job-001", "--input", f"train={storage.url(data)}"),
        *("--input_path", storage.url(data), "--checkpoint_path", storage.url(checkpoints)),
        *("--num_workers", "2", "--worker_resources", "memory=256M,vcores=1,gpu=1"),
        *("--worker_launch_cmd", WORKER, "--num_ps", "2"),
        *("--ps_resources", "memory=128M,vcores=1", "--ps_launch_cmd", "echo ps; exec sleep 600"),
    )
    record = job.wait(timeout=180)
    assert record.state is State.SUCCEEDED, record.detail
    assert {task.task for task in record.tasks} == {"worker:0", "worker:1", "ps:0", "ps:1"}
    for index in (0, 1):
        log = b"".join(c.data for c in job.read_log("stdout", task=f"worker:{index}")).decode()
        assert log == f"pictures of cats\nworker {index} of 2 worker worker\n"
    # The chief's checkpoints are where the job was told to keep them.
    assert storage.stat(checkpoints) is not None


DESCRIPTION = """
spec: {name: tf-job-002, framework: any}
configs:
  input_path: hdfs://default/data
  wait_job_finish: true
  envs: {GREETING: "hello, %input_path%"}
roles:
  worker:
    replicas: 2
    resources: memory=256M,vcores=1
    launch_cmd: echo $GREETING $EXTRA $SUBMARINE_INDEX of $SUBMARINE_TASK_COUNT
  ps: {replicas: 1, resources: "memory=128M,vcores=1", launch_cmd: exec sleep 600}
"""


def test_a_job_described_by_a_file(shell: Shell, jobs: list[Job], tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(DESCRIPTION, encoding="utf-8")
    outcome = execute(["job", "run", "-f", str(file), "--env", "EXTRA=again"], shell)
    assert (outcome.exit_code, outcome.job is not None) == (0, True), outcome.text
    job = outcome.job
    assert job is not None
    jobs.append(job)
    record = job.view().record
    assert (record.state, record.name) == (State.SUCCEEDED, "tf-job-002"), record.detail
    assert {task.task for task in record.tasks} == {"worker:0", "worker:1", "ps:0"}
    log = b"".join(c.data for c in job.read_log("stdout", task="worker:1")).decode()
    assert log == "hello, hdfs://default/data again 1 of 2\n"


@pytest.mark.full
def test_tensorboard_alone_shows_all_of_a_users_jobs(shell: Shell, jobs: list[Job]) -> None:
    python = ("--python-env", f"path:{PYTHON}", "--memory", "1G")
    Path("curves.py").write_text(EVENTS, encoding="utf-8")
    trained = submarine_run(shell, jobs, "curves.py", *python)
    assert trained.wait(timeout=180).state is State.SUCCEEDED
    service = submarine_run(
        shell, jobs, "--name", "tensorboard-service-001", "--tensorboard", *python
    )
    url = link(service, "TensorBoard")
    until(
        lambda: trained.id in json.loads(page(f"{url}data/runs")),
        "the job's curves are not shown",
        120,
    )
    points = json.loads(page(f"{url}data/plugin/scalars/scalars?run={trained.id}&tag=loss"))
    assert [point[1:] for point in points] == [[1, 0.5]]


def test_a_service_of_one_worker_with_its_quicklink(shell: Shell, jobs: list[Job]) -> None:
    job = submarine_run(
        shell,
        jobs,
        *("--name", "zeppelin-note-book-001", "--num_workers", "1"),
        *("--worker_resources", "memory=256M,vcores=1,gpu=1"),
        *("--worker_launch_cmd", "exec python3 -m http.server $SUBMARINE_PORT"),
        *("--quicklink", "Zeppelin_Notebook=http://master-0:0"),
    )
    assert "Directory listing" in page(link(job, "Zeppelin_Notebook"))
