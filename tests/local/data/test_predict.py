"""``submarine predict`` on the local backend: whole jobs, with killed workers and faults."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pandas  # type: ignore[import-untyped]
import pyarrow
import pyarrow.parquet
import pytest

import submarine_jobs
from submarine_jobs.client import Job
from submarine_jobs.commands import CellBody, execute
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend
from submarine_jobs.outputs import read_metrics
from submarine_runtime.protocol import EndReason, JobRecord, State
from tests.submission import cancel_unfinished
from tests.waiting import PATIENCE, until


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("SUBMARINE_BACKEND", "local")
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.setattr(submarine_jobs, "_sessions", {})
    monkeypatch.chdir(tmp_path)
    yield
    cancel_unfinished(submarine_jobs.open_session())


FUNCTIONS = """\
import numpy as np

def predict(batch):
    x = batch["x"]
    return {"double": 2 * x, "pair": np.stack([x, x + 1], axis=1)}

def evaluate(batch, result):
    return {"mean_x": float(batch["x"].mean()), "odd": batch["id"] % 2}
"""
#: The same; worker 1 waits in its third part until a file exists, and then is slow no more.
WAITS = FUNCTIONS.replace(
    '    x = batch["x"]\n',
    """\
    import os, pathlib, time
    global seen
    seen = globals().get("seen", 0) + 1
    if os.environ["SUBMARINE_INDEX"] == "1" and seen == 3:
        while not pathlib.Path("FLAG").exists():
            time.sleep(0.05)
    x = batch["x"]
""",
)
ROWS = 1000


def write_input(folder: Path, files: int = 4, rows: int = ROWS, groups: int = 2) -> Path:
    folder.mkdir(parents=True)
    for number in range(files):
        ids = numpy.arange(number * rows, (number + 1) * rows)
        table = pyarrow.table({"id": ids, "x": numpy.random.default_rng(number).random(rows)})
        path = folder / f"f {number} ü.parquet"
        pyarrow.parquet.write_table(table, path, row_group_size=rows // groups)
    return folder


def predict(
    program: str | CellBody, data: Path, output: str, *words: str, model: str | None = None
) -> Job:
    """Submit a prediction with parts of one row group."""
    if isinstance(program, CellBody):
        source: list[str] = []
    else:
        Path("score.py").write_text(program)
        source = ["--program", "score.py"]
    command = ["predict", *([model] if model else []), "--input", f"x={data}", "--output", output]
    command += ["--part-size", "1k", "--memory", "256M", *source, *words]
    outcome = execute(command, Frontend(), program if isinstance(program, CellBody) else None)
    assert outcome.job is not None
    return outcome.job


def parts(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("part-*.parquet"))}


def manifest(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "_predictions.json").read_text())
    return content


def failed(job: Job) -> JobRecord:
    record = job.wait(PATIENCE)
    assert record.state is State.FAILED
    return record


def test_the_output_after_a_killed_worker_is_that_of_an_undisturbed_run(tmp_path: Path) -> None:
    data = write_input(tmp_path / "in put")
    undisturbed = predict(FUNCTIONS, data, "out/plain", "--keys", "id", "--worker", "1")
    flag = tmp_path / "flag"
    program = WAITS.replace("FLAG", str(flag))
    job = predict(program, data, "out/a ü", "--keys", "id", "--worker", "2")
    hidden = tmp_path / "out" / f".a ü.{job.id}.new"
    # Worker 1 has parts 4 to 7, and waits in part 6.
    until(lambda: {"part-00004.parquet", "part-00005.parquet"} <= parts(hidden).keys())
    stored = {name: (hidden / name).stat().st_ino for name in parts(hidden)}
    pid = next(task.pid for task in job.record().tasks if task.task == "worker:1")
    assert pid
    os.kill(pid, signal.SIGKILL)
    assert not (tmp_path / "out" / "a ü").exists()
    flag.touch()
    undisturbed.wait_success(PATIENCE)
    record = job.wait_success(PATIENCE)
    assert [task.attempt for task in record.tasks] == [1, 2]
    plain, restarted = tmp_path / "out" / "plain", tmp_path / "out" / "a ü"
    assert parts(plain) == parts(restarted)
    assert len(parts(plain)) == 8
    # The second attempt has not written the parts of the first one again.
    assert {name: (restarted / name).stat().st_ino for name in stored} == stored
    log = job.log(task="worker:1").data.decode()
    assert "report:progress:0.5000 (part-00005.parquet: 500 rows)" in log
    assert manifest(plain) == manifest(restarted)
    table = pyarrow.parquet.read_table(plain)
    assert table.column_names == ["id", "double", "pair"]
    assert table.column("id").to_pylist() == list(range(4 * ROWS))
    expected = pyarrow.parquet.read_table(data).column("x").to_numpy()
    assert (table.column("double").to_numpy() == 2 * expected).all()
    assert manifest(plain)["metrics"]["odd"] == 0.5
    assert manifest(plain)["metrics"]["mean_x"] == pytest.approx(expected.mean())
    # Metrics are in the record, and among those of the job.
    assert job.result["predictions"]["metrics"] == manifest(plain)["metrics"]
    assert job.result["predictions"]["digest"] == manifest(plain)["digest"]
    rows = read_metrics(job.directory, "worker:0")
    assert rows[-1].scalars["odd"] == 0.5
    assert rows[-1].scalars["rows"] == 4 * ROWS


@pytest.mark.full
@pytest.mark.timeout(900)
def test_a_million_rows_with_a_killed_worker(tmp_path: Path) -> None:
    data = write_input(tmp_path / "in", files=5, rows=200_000, groups=10)
    more = ("--worker", "4", "--part-size", "300k", "--keys", "id")
    predict(FUNCTIONS, data, "plain", *more).wait_success(600)
    flag = tmp_path / "flag"
    slow = WAITS.replace("FLAG", str(flag)).replace("seen == 3", "seen == 60")
    job = predict(slow, data, "killed", *more)
    hidden = tmp_path / f".killed.{job.id}.new"
    until(lambda: hidden.is_dir() and len(parts(hidden)) >= 38, seconds=600)
    pid = next(task.pid for task in job.record().tasks if task.task == "worker:1")
    assert pid
    os.kill(pid, signal.SIGKILL)
    flag.touch()
    record = job.wait_success(600)
    assert sorted(task.attempt for task in record.tasks) == [1, 1, 1, 2]
    assert manifest(tmp_path / "plain") == manifest(tmp_path / "killed")
    assert manifest(tmp_path / "killed")["rows"] == 1_000_000
    assert parts(tmp_path / "plain") == parts(tmp_path / "killed")
    ids = pyarrow.parquet.read_table(tmp_path / "killed", columns=["id"]).column("id").to_numpy()
    assert (ids == numpy.arange(1_000_000)).all()


MODEL = """\
import json, os, pathlib
pathlib.Path(os.environ["SUBMARINE_MODEL_DIR"], "weights.json").write_text(json.dumps([3.0]))
"""
WITH_MODEL = """\
import json, os
loaded = []

def load_model(path):
    loaded.append(path)
    with open(os.path.join(path, "weights.json")) as file:
        return json.load(file)

def predict(batch, model):
    assert len(loaded) == 1
    return batch["x"] * model[0]
"""


@pytest.mark.full
def test_the_model_of_a_job_a_version_or_a_published_one(tmp_path: Path) -> None:
    data = write_input(tmp_path / "in", files=1)
    Path("train.py").write_text(MODEL)
    trained = submarine_jobs.run("digits", program="train.py", memory="256M", wait=True)
    trained.save_model("best")
    trained.publish(str(tmp_path / "models/digits/7"), "best", aliases=("prod",))
    expected = 3.0 * pyarrow.parquet.read_table(data).column("x").to_numpy()
    models = {
        "job": trained.id,
        "version": f"{trained.id}@best",
        "published": (tmp_path / "models/digits/7").as_uri(),
        "alias": f"{(tmp_path / 'models/digits').as_uri()}@prod",
    }
    for name, model in models.items():
        job = predict(WITH_MODEL, data, f"out/{name}", "--keys", "", model=model)
        job.wait_success(PATIENCE)
        table = pyarrow.parquet.read_table(tmp_path / "out" / name)
        assert table.column_names == ["prediction"]
        assert (table.column("prediction").to_numpy() == expected).all()


FAULTS = {
    "raises": (
        FUNCTIONS.replace("    x =", "    assert batch['id'][0] < 2500, 'too large'\n    x ="),
        r"predict raised AssertionError for part-00005\.parquet "
        r"\(.*/f 2 ü\.parquet, row group 1\): too large",
    ),
    "rows": (
        "def predict(batch):\n    return {'y': batch['x'][1:]}\n",
        r"predict returned 499 values of y for 500 rows of part-00000\.parquet "
        r"\(.*/f 0 ü\.parquet, row group 0\)",
    ),
    "nothing": (
        "def predict(batch):\n    pass\n",
        r"predict returned None for part-00000\.parquet",
    ),
    "type": (
        "def predict(batch):\n    return object()\n",
        r"prediction, which predict returned for part-00000\.parquet",
    ),
    "name": (
        "def predict(batch):\n    return {'id': batch['x']}\n",
        r"predict returned a column id, which the input has too",
    ),
    "schema": (
        "def predict(batch):\n    return batch['x'] if batch['id'][0] else batch['id']\n",
        r"part-00001\.parquet has the columns .*prediction: double, and part-00000\.parquet has",
    ),
    "metric": (
        FUNCTIONS.replace('float(batch["x"].mean())', '"high"'),
        r"evaluate returned no number for the metric mean_x of part-00000\.parquet",
    ),
}


@pytest.mark.full
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_functions_names_the_part(tmp_path: Path, fault: str) -> None:
    program, sentence = FAULTS[fault]
    data = write_input(tmp_path / "in")
    record = failed(predict(program, data, "out"))
    assert record.reason is EndReason.PROGRAM_ERROR
    assert re.search(sentence, record.detail), record.detail
    assert not (tmp_path / "out").exists()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".out")]


@pytest.mark.full
def test_the_traceback_is_that_of_the_cell(tmp_path: Path) -> None:
    data = write_input(tmp_path / "in", files=1)
    body = CellBody("def predict(batch):\n    return 1 / 0\n", 2, "[7]")
    record = failed(predict(body, data, "out"))
    assert "ZeroDivisionError" in record.detail
    assert "[7]" in str(record)


def damage(data: Path) -> None:
    path = sorted(data.iterdir())[2]
    content = bytearray(path.read_bytes())
    offset = pyarrow.parquet.read_metadata(path).row_group(1).column(1).data_page_offset
    content[offset : offset + 40] = bytes(40)
    path.write_bytes(content)


def other_schema(data: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"id": ["a"], "x": [1.0]}), data / "g.parquet")


def text(data: Path) -> None:
    (data / "g.csv").write_text("id,x\n1,2\n")


INPUTS = {
    damage: r"part-00005\.parquet cannot be made: .*/f 2 ü\.parquet is damaged at row group 1",
    other_schema: r"The column id is int64 in .*/f 0 ü\.parquet and string in .*/g\.parquet",
    text: r"f 0 ü\.parquet is parquet, .*g\.csv is csv",
}


@pytest.mark.full
@pytest.mark.parametrize("change", INPUTS)
def test_a_fault_of_the_input_names_the_file(tmp_path: Path, change: Any) -> None:
    data = write_input(tmp_path / "in")
    change(data)
    record = failed(predict(FUNCTIONS, data, "out"))
    assert re.search(INPUTS[change], record.detail), record.detail


@pytest.mark.full
def test_frames_go_in_and_come_back(tmp_path: Path) -> None:
    Path("score.py").write_text("def predict(batch):\n    return {'y': batch['x'] + 1}\n")
    frame = pandas.DataFrame({"x": [1.0, 2.0, 3.0], "who": ["a", "ü", None]}, index=[7, 5, 9])
    found = submarine_jobs.predict(None, frame, program="score.py", memory="256M")
    expected = frame.assign(y=frame["x"] + 1)
    pandas.testing.assert_frame_equal(found, expected)
    table = pyarrow.table({"x": [1, 2]})
    assert submarine_jobs.predict(None, table, program="score.py", memory="256M").to_pydict() == {
        "x": [1, 2],
        "y": [2, 3],
    }
    storage, root = submarine_jobs.open_session().backend().job_root()
    assert not storage.list_directory(f"{root}/predictions")


@pytest.mark.full
def test_formats_and_modes(tmp_path: Path) -> None:
    data = tmp_path / "in"
    data.mkdir()
    (data / "a.csv").write_text("id,text\n1,one\n2,two\n")
    program = "def predict(batch):\n    return batch.assign(n=batch['text'].str.len())[['n']]\n"
    words = ("--batch-format", "pandas", "--columns", "text", "--keys", "id")
    first = predict(program, data, "out:append-run", *words)
    first.wait_success(PATIENCE)
    second = predict(program, data, "out:append-run:stream", *words)
    second.wait_success(PATIENCE)
    for job in (first, second):
        table = pyarrow.parquet.read_table(tmp_path / "out" / job.id)
        assert table.to_pydict() == {"id": [1, 2], "n": [3, 3]}
    with pytest.raises(UsageError, match=r"--output: .*/out exists and is not empty"):
        predict(program, data, "out", *words)
    third = predict(program, data, "out:overwrite", "--worker", "3", *words)
    third.wait_success(PATIENCE)
    assert parts(tmp_path / "out").keys() == {"part-00000.parquet"}
