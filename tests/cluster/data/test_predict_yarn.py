"""``submarine predict`` on YARN: input, model and output on HDFS, and a killed container."""

from __future__ import annotations

import io
import json
import os
import secrets
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.client import Job, Session
from submarine_jobs.commands import execute
from submarine_jobs.python_api import PythonFrontend
from submarine_minicluster import Minicluster
from submarine_runtime.storage import Store
from tests.submission import cancel_unfinished
from tests.waiting import PATIENCE, until

pytestmark = [pytest.mark.cluster, pytest.mark.full]

FUNCTIONS = """\
import json, os, time

def load_model(path):
    with open(os.path.join(path, "weights.json")) as file:
        return json.load(file)

def predict(batch, model):
    time.sleep(PAUSE)
    return {"y": batch["x"] * model["factor"]}

def evaluate(batch, result):
    return {"mean_y": result["y"]}
"""


@pytest.fixture
def place(
    session: Session, minicluster: Minicluster, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Store, str, str]]:
    """The store, a directory with data and a model, and the prefix of its URIs."""
    monkeypatch.setenv("HADOOP_CONF_DIR", minicluster.environ()["HADOOP_CONF_DIR"])
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    backend = session.backend()
    assert isinstance(backend, YarnBackend)
    storage, root = backend.job_root()
    path = f"{root.rpartition('/')[0]}/predict {secrets.token_hex(4)}"
    store = storage.open_store("/")
    for number in range(4):
        stream = io.BytesIO()
        ids = list(range(number * 1000, (number + 1) * 1000))
        table = pyarrow.table({"id": ids, "x": [float(i) for i in ids]})
        parquet.write_table(table, stream, row_group_size=250)
        store.publish(f"{path}/in/é {number}.parquet", stream.getvalue())
    store.publish(f"{path}/model/weights.json", json.dumps({"factor": 2.0}).encode())
    yield store, path, storage.url(path)
    cancel_unfinished(session)
    storage.delete(path, recursive=True)


def predict(session: Session, tmp_path: Path, uri: str, output: str, pause: float) -> Job:
    program = tmp_path / "score.py"
    program.write_text(FUNCTIONS.replace("PAUSE", str(pause)))
    words = ["predict", f"{uri}/model", "--input", f"x={uri}/in", "--output", f"{uri}/{output}"]
    words += ["--program", str(program), "--keys", "id", "--worker", "2", "--memory", "512M"]
    if session.profile.name not in ("default", ""):
        words += ["--profile", session.profile.name]
    job = execute([*words, "--part-size", "1k"], PythonFrontend(session, {})).job
    assert job is not None
    return job


def test_a_killed_container_changes_nothing(
    session: Session, place: tuple[Store, str, str], tmp_path: Path
) -> None:
    store, path, uri = place
    predict(session, tmp_path, uri, "plain", 0).wait_success(PATIENCE)
    job = predict(session, tmp_path, uri, "killed", 2)
    staged = f"{path}/.killed.{job.id}.new"
    until(lambda: any("part-00008" in entry.name for entry in store.entries(staged)))
    pid = next(task.pid for task in job.record().tasks if task.task == "worker:1")
    assert pid
    os.kill(pid, signal.SIGKILL)
    assert not store.exists(f"{path}/killed")
    record = job.wait_success(PATIENCE)
    assert max(task.attempt for task in record.tasks) == 2
    files = {
        name: {entry.name: store.read(f"{path}/{name}/{entry.name}") for entry in entries}
        for name in ("plain", "killed")
        if (entries := [e for e in store.entries(f"{path}/{name}") if e.name[:4] == "part"])
    }
    assert len(files["plain"]) == 16
    assert files["plain"] == files["killed"]
    manifest = json.loads(store.read(f"{path}/killed/_predictions.json") or b"")
    assert (manifest["rows"], manifest["metrics"]) == (4000, {"mean_y": 3999.0})
    assert job.result["predictions"]["digest"] == manifest["digest"]
