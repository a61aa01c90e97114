"""``submarine predict`` on YARN: input, model and output on HDFS, and a killed container."""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

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


class Size(NamedTuple):
    """What is read: rows of a file, of a row group, which is a part, and of a batch."""

    rows: int
    group: int
    batch: int
    #: Seconds that a batch takes in the run with a killed container.
    pause: float


FILES = 4
SMALL, MILLION = Size(1000, 250, 250, 2.0), Size(250_000, 12_500, 12_500, 0.5)
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


@pytest.fixture(params=[SMALL, MILLION], ids=["4000 rows", "1 million rows"])
def size(request: pytest.FixtureRequest) -> Size:
    found: Size = request.param
    return found


@pytest.fixture
def place(
    session: Session, minicluster: Minicluster, monkeypatch: pytest.MonkeyPatch, size: Size
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
    for number in range(FILES):
        stream = io.BytesIO()
        ids = list(range(number * size.rows, (number + 1) * size.rows))
        table = pyarrow.table({"id": ids, "x": [float(i) for i in ids]})
        parquet.write_table(table, stream, row_group_size=size.group)
        store.publish(f"{path}/in/é {number}.parquet", stream.getvalue())
    store.publish(f"{path}/model/weights.json", json.dumps({"factor": 2.0}).encode())
    yield store, path, storage.url(path)
    cancel_unfinished(session)
    storage.delete(path, recursive=True)


def predict(
    session: Session, tmp_path: Path, uri: str, output: str, batch: int, pause: float
) -> Job:
    program = tmp_path / "score.py"
    program.write_text(FUNCTIONS.replace("PAUSE", str(pause)))
    words = ["predict", f"{uri}/model", "--input", f"x={uri}/in", "--output", f"{uri}/{output}"]
    words += ["--program", str(program), "--keys", "id", "--worker", "2", "--memory", "512M"]
    words += ["--batch-size", str(batch)]
    if session.profile.name not in ("default", ""):
        words += ["--profile", session.profile.name]
    job = execute([*words, "--part-size", "1k"], PythonFrontend(session, {})).job
    assert job is not None
    return job


def digest_of_rows(files: dict[str, bytes], count: int) -> str:
    """Digest of keys and values, whatever the order of the rows and their files is."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    tables = [parquet.read_table(io.BytesIO(data)) for data in files.values()]
    table = pyarrow.concat_tables(tables).sort_by("id")
    ids, values = (table[name].to_numpy() for name in ("id", "y"))
    assert len(ids) == count
    assert (ids == range(count)).all()
    return hashlib.sha256(ids.tobytes() + values.tobytes()).hexdigest()


def test_a_killed_container_changes_nothing(
    session: Session, place: tuple[Store, str, str], tmp_path: Path, size: Size
) -> None:
    store, path, uri = place
    count, parts = FILES * size.rows, FILES * size.rows // size.group
    began = time.monotonic()
    predict(session, tmp_path, uri, "plain", size.batch, 0).wait_success(PATIENCE)
    print(f"undisturbed: {time.monotonic() - began:.0f} s")
    began = time.monotonic()
    job = predict(session, tmp_path, uri, "killed", size.batch, size.pause)
    staged = f"{path}/.killed.{job.id}.new"
    # The second worker has parts from the middle on.
    last = f"part-{parts // 2:05}"
    until(lambda: any(last in entry.name for entry in store.entries(staged)))
    pid = next(task.pid for task in job.record().tasks if task.task == "worker:1")
    assert pid
    os.kill(pid, signal.SIGKILL)
    assert not store.exists(f"{path}/killed")
    record = job.wait_success(PATIENCE)
    print(f"with a killed worker: {time.monotonic() - began:.0f} s")
    assert max(task.attempt for task in record.tasks) == 2
    files = {
        name: {entry.name: store.read(f"{path}/{name}/{entry.name}") or b"" for entry in entries}
        for name in ("plain", "killed")
        if (entries := [e for e in store.entries(f"{path}/{name}") if e.name[:4] == "part"])
    }
    assert len(files["plain"]) == parts
    assert files["plain"] == files["killed"]
    digests = [digest_of_rows(found, count) for found in files.values()]
    assert digests[0] == digests[1]
    expected = {"mean_y": float(count - 1)}
    manifest = json.loads(store.read(f"{path}/killed/_predictions.json") or b"")
    assert (manifest["rows"], manifest["metrics"]) == (count, expected)
    assert job.result["predictions"]["digest"] == manifest["digest"]
