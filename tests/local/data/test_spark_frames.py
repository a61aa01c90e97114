"""DataFrames of a real Spark session: datasets, inputs of jobs, and predictions.

They need Spark: ``scripts/setup.sh spark``, or ``SPARK_HOME``. Its session runs on this machine.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import submarine_jobs
from submarine_jobs.commands.grammar import execute
from submarine_jobs.errors import SubmarineError, UsageError
from tests.frontends import RecordingFrontend
from tests.spark import spark_home
from tests.submission import cancel_unfinished

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]
pytest.importorskip("pyarrow")

ROWS = 1000
READ = """\
import os
import pyarrow.dataset

table = pyarrow.dataset.dataset(os.environ["SUBMARINE_INPUT_TRAIN"], format="parquet").to_table()
rows, total = table.num_rows, sum(table["id"].to_pylist())
"""
PREDICT = """\
import numpy as np

def predict(batch):
    return {"double": 2 * batch["x"], "pair": np.stack([batch["x"], -batch["x"]], axis=1)}
"""


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """A session on this machine, in the Python of the tests."""
    home = spark_home()
    patch = pytest.MonkeyPatch()
    patch.setenv("SPARK_HOME", str(home))
    patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    patch.setenv("PYSPARK_PYTHON", sys.executable)
    patch.delenv("HADOOP_CONF_DIR", raising=False)
    # Last: the other packages are those of this Python.
    patch.setattr(sys, "path", [*sys.path, str(home.parent)])
    builder = importlib.import_module("pyspark.sql").SparkSession.builder.master("local[1]")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "512m",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    gateway = session.sparkContext._gateway
    try:
        yield session
    finally:
        session.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(60)
        patch.undo()


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


@pytest.fixture
def frame(spark: Any) -> Any:
    """1000 rows in three partitions."""
    return spark.range(0, ROWS, 1, 3).selectExpr("id", "id / 4 AS x", "cast(id AS string) AS `a.b`")


def put(frame: Any, *words: str) -> tuple[Any, str]:
    """``%submarine data put NAME df``; its dataset and its text."""
    frontend = RecordingFrontend("notebook")
    frontend.namespace = {"df": frame}
    outcome = execute(("data", "put", *words), frontend)
    return outcome.value, outcome.text


def content(dataset: dict[str, Any]) -> Path:
    return Path(dataset["uri"].removeprefix("file://"))


def test_a_dataframe_is_put_under_a_name_and_read_by_a_job(frame: Any, tmp_path: Path) -> None:
    stored, text = put(frame, "numbers", "df")
    assert (stored["source"], stored["files"], stored["rows"]) == ("spark", 3, ROWS)
    assert {one["name"]: one["type"] for one in stored["schema"]} == {
        "id": "bigint", "x": "double", "a.b": "string",
    }  # fmt: skip
    assert stored["sample"]["rows"][1] == ("1", "0.25", "1")
    assert text.startswith("numbers is stored: ")
    (tmp_path / "read.py").write_text(READ)
    job = submarine_jobs.run(
        "read",
        program="read.py",
        memory="512M",
        inputs={"TRAIN": "data:numbers"},
        returns=["rows", "total"],
        wait=True,
    )
    assert job.result == {"rows": ROWS, "total": ROWS * (ROWS - 1) // 2}


def test_the_same_content_is_stored_once(frame: Any) -> None:
    first, _text = put(frame, "numbers", "df")
    again, text = put(frame, "again", "df")
    assert again["uri"] == first["uri"]
    assert "had this content already" in text
    assert [path.name for path in content(first).parent.iterdir() if path.is_dir()] == [
        content(first).name
    ]
    with pytest.raises(UsageError, match="The name numbers belongs to other data"):
        put(frame.where("id < 10"), "numbers", "df")
    # What Spark wrote for the refused name is gone.
    assert sum(path.is_dir() for path in content(first).parent.iterdir()) == 1
    replaced, _text = put(frame.where("id < 10"), "numbers", "df", "--replace")
    assert replaced["uri"] != first["uri"]


def test_a_dataframe_is_an_input_without_a_name(frame: Any, tmp_path: Path) -> None:
    (tmp_path / "read.py").write_text(READ)
    job = submarine_jobs.run(
        "read",
        program="read.py",
        memory="512M",
        inputs={"TRAIN": frame.where("id % 2 = 0")},
        returns=["rows", "total"],
        wait=True,
    )
    assert job.result == {"rows": ROWS // 2, "total": sum(range(0, ROWS, 2))}


def test_predict_returns_a_dataframe_of_the_same_session(frame: Any, tmp_path: Path) -> None:
    (tmp_path / "score.py").write_text(PREDICT)
    scores = submarine_jobs.predict(
        None, frame, program="score.py", keys=["id"], worker=2, memory="512M"
    )
    assert type(scores) is type(frame)
    assert scores.sparkSession is frame.sparkSession
    assert scores.columns == ["id", "double", "pair"]
    joined = scores.join(frame, "id").where("double = 2 * x AND pair = array(x, -x)")
    assert (scores.count(), joined.count()) == (ROWS, ROWS)


def test_a_failed_query_of_a_dataframe_is_named_and_leaves_nothing(frame: Any) -> None:
    failing = frame.selectExpr("raise_error('no such day') AS x")
    with pytest.raises(SubmarineError, match=r"Spark could not write file:.*no such day"):
        put(failing, "broken", "df")
    root = submarine_jobs.open_session().backend().job_root()[1]
    assert not [path for path in Path(root, "data").rglob("*") if path.is_file()]
