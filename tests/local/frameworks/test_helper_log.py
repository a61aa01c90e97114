"""What XGBoost prints through its tracker is a log of the chief: live, stored and measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from submarine_jobs import display
from submarine_jobs.client import Job, Session
from submarine_jobs.commands import execute
from submarine_jobs.outputs import read_metrics
from submarine_runtime.protocol import State
from tests.frameworks.gang import FRAMEWORKS
from tests.frontends import RecordingFrontend
from tests.local.server.jupyter_server import Server
from tests.submission import Submit
from tests.waiting import until

#: The second worker leaves the communicator when a file exists; the first one has ended then.
PROGRAM = """\
import os, time
import numpy, xgboost
from xgboost import collective
random = numpy.random.default_rng(0)
x = random.random((400, 8))
y = (x[:, 0] + x[:, 1] > 1).astype(int)
settings = {"objective": "binary:logistic", "eval_metric": "auc", "nthread": 1}
with collective.CommunicatorContext():
    rank, size = collective.get_rank(), collective.get_world_size()
    train = xgboost.DMatrix(x[rank:300:size], y[rank:300:size])
    test = xgboost.DMatrix(x[300 + rank :: size], y[300 + rank :: size])
    xgboost.train(settings, train, 3, evals=[(test, "eval")])
    while rank and not os.path.exists(PLACE):
        time.sleep(0.05)
    collective.communicator_print(f"the last words of {rank}")
print("trained", rank, "of", size)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("go") / "go"


@pytest.fixture(scope="module")
def job(submit: Submit, place: Path) -> Job:
    source = PROGRAM.replace("PLACE", repr(str(place)))
    return submit(source, instances=2, memory=500, python=str(FRAMEWORKS), framework="xgboost")


def listed(server: Server, job: Job) -> set[tuple[str, str]]:
    logs = server.call("GET", f"jobs/{job.id}/logs").json["logs"]
    return {(log["task"], log["stream"]) for log in logs if log["length"]}


def test_the_log_of_the_tracker_is_read_while_the_job_runs(
    job: Job, server: Server, place: Path
) -> None:
    until(lambda: b"the last words of 0" in job.log("helper").data, "the chief's words")
    until(lambda: any(task.exit_code == 0 for task in job.tasks()), "the end of the chief")
    assert job.log("helper").data.count(b"eval-auc:") == 3
    assert "the last words of 0" in display.text(job.view())
    assert ("worker:0", "helper") in listed(server, job)
    path = f"jobs/{job.id}/log?task=worker:0&stream=helper"
    assert b"[2]\teval-auc:" in server.call("GET", path).data
    place.touch()
    record = job.wait(60)
    # The tracker serves a worker that ends after the chief.
    assert record.state is State.SUCCEEDED, record.detail


def test_the_log_of_the_tracker_remains_after_the_job(
    job: Job, session: Session, server: Server, place: Path
) -> None:
    until(lambda: any(task.exit_code == 0 for task in job.tasks()), "the end of the chief")
    place.touch()
    record = job.wait(60)
    assert [key for key in record.logs if key.endswith("/helper")] == ["worker:0/e1-a1/helper"]
    data = job.log("helper").data
    assert len(data) == record.logs["worker:0/e1-a1/helper"]
    assert data.endswith(b"the last words of 1\n")
    assert b"tracker ready" not in data
    assert listed(server, job) == {
        *(("worker:0", name) for name in ("stdout", "helper")),
        ("worker:1", "stdout"),
    }
    assert b"".join(piece.data for piece in job.follow() if piece.stream == "helper") == data
    shown = {}
    for stream in ("helper", "both", "all"):
        frontend = RecordingFrontend("cli", session=session)
        execute(["logs", job.id, "--stream", stream], frontend)
        shown[stream] = frontend.written
    assert shown["helper"] == data
    assert b"eval-auc" not in shown["both"]
    assert sorted(shown["all"].splitlines()) == sorted((data + shown["both"]).splitlines())
    values = json.loads(
        execute(["logs", job.id, "--json"], RecordingFrontend("cli", session=session)).rendered()
    )
    assert values["helper"]["text"] == data.decode()
    rows = [row for row in read_metrics(job.directory) if row.task == "worker:0"]
    scalars = {name for row in rows for name in row.scalars}
    assert "eval-auc" in scalars
