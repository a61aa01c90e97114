"""The example of Spark, a gang, ``predict`` and Spark again: its notebook on the minicluster.

It needs Spark: ``scripts/setup.sh spark``, or ``SPARK_HOME``; and in this Python NumPy, pyarrow,
pandas and fsspec.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs.client import Session
from submarine_jobs.display import MIME_TYPE
from submarine_jobs.model import Profile
from submarine_minicluster.cluster import Minicluster
from tests.headless.notebook_runs import NotebookRuns, cell, read
from tests.headless.test_runs import card

pytestmark = [pytest.mark.cluster, pytest.mark.full, pytest.mark.timeout(1800)]

NOTEBOOK = Path(__file__).resolve().parents[3] / "examples/spark_handover.ipynb"
#: Cells that run a job.
JOBS = ("etl", "train", "predict", "logistic")
SECONDS = 1700


@pytest.fixture
def data(session: Session, minicluster_env: Minicluster) -> Iterator[str]:
    """A directory on HDFS for one test."""
    path = f"/tmp/handover-{uuid.uuid4().hex[:8]}"
    yield f"hdfs://{path}"
    storage, _ = session.backend().job_root()
    with contextlib.suppress(FileNotFoundError):
        storage.delete(path, recursive=True)


def test_a_model_goes_from_spark_to_a_gang_and_back(
    data: str,
    session: Session,
    minicluster: Minicluster,
    yarn_profile: Profile,
    tmp_path: Path,
) -> None:
    pytest.importorskip("pyarrow")
    environment = {**minicluster.environ(), "SUBMARINE_BACKEND": "yarn"}
    environment["SUBMARINE_STATE_DIR"] = str(yarn_profile.state_dir)
    runs = NotebookRuns(tmp_path, **environment)
    process = runs.start(
        *("submarine", "run", NOTEBOOK, "-p", "data", data, "-o", "out.ipynb"),
        *("--return", "auc", "--json"),
    )
    try:
        out, err = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    assert process.returncode == 0, out[-4000:] + err[-4000:]
    assert json.loads(out)["returned"]["auc"] > 0.9
    document = read(tmp_path / "out.ipynb")
    cards = {name: card(document, name)[MIME_TYPE] for name in JOBS}
    assert {name: shown["state"] for name, shown in cards.items()} == dict.fromkeys(
        JOBS, "SUCCEEDED"
    )
    for name in ("train", "predict"):
        assert cards[name]["roles"] == {"worker": {"SUCCEEDED": 2}}
    # 20,000 rows without the 400 that lack values; the repeated ones are dropped.
    assert "19,600 rows are left" in str(cell(document, "wait-etl").outputs)
    # The tables of the cleaned rows and of the features.
    for name, column in (("wait-etl", "x3"), ("wait-predict", "features")):
        assert f"<th>{column}</th>" in cell(document, name).outputs[-1].data["text/html"]
    storage, _ = session.backend().job_root()
    path = data.removeprefix("hdfs://")
    [part] = [name for name, _size in storage.walk(f"{path}/logistic/metadata") if "part-" in name]
    saved = json.loads(storage.read(f"{path}/logistic/metadata/{part}"))
    assert saved["class"] == "org.apache.spark.ml.classification.LogisticRegressionModel"
    predictions = json.loads(storage.read(f"{path}/features/_predictions.json"))
    assert predictions["rows"] == 19_600
    assert len(predictions["parts"]) >= 2
