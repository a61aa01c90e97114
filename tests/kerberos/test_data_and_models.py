"""Data and models on a cluster that requires Kerberos: datasets, inputs, outputs, publication."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from pyarrow import parquet

from submarine_minicluster import Minicluster
from submarine_minicluster.hadoop import RestError, SecureWebHdfs
from tests.kerberos.helpers import User

pytestmark = pytest.mark.cluster

#: Adds the number of weights of the model to each id.
PREDICTS = """\
import json, os
def load_model(path):
    with open(os.path.join(path, "weights.json")) as file:
        return json.load(file)
def predict(batch, model):
    return {"score": batch["id"] + len(model)}
"""
#: Reads its share of a dataset and of a directory in HDFS; writes an output and a model.
TRAINS = """\
import json, os, pathlib
import submarine_data
from submarine_data import open_dataset
put = open_dataset(os.environ["SUBMARINE_INPUT_PUT"])
read = [record["x"] for record in put.records()]
mounted = open_dataset(os.environ["SUBMARINE_INPUT_MOUNTED"], batch_size=7)
ids = [record["id"] for record in mounted.records()]
with open(os.environ["SUBMARINE_INPUT_LINES"], "rb", buffering=1 << 20) as lines:
    assert sorted(json.loads(line)["id"] for line in lines) == sorted(ids)
base = os.environ["SUBMARINE_INPUT_MOUNTED"].rpartition("/")[0]
with submarine_data.open_file(base + "/written.txt", "wb") as f:
    f.write(b"by the program")
for name in ("PRED", "DIR"):
    folder = pathlib.Path(os.environ["SUBMARINE_OUTPUT_" + name])
    (folder / f"part-{name}.json").write_text(json.dumps(sorted(ids)))
pathlib.Path(os.environ["SUBMARINE_MODEL_DIR"], "weights.json").write_text(json.dumps(read))
print(json.dumps([sorted(read), sorted(ids)]), flush=True)
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("users")


@pytest.fixture(scope="module")
def alice(kerberos_minicluster: Minicluster, directory: Path) -> User:
    return User(kerberos_minicluster, "alice", directory / "alice")


@pytest.fixture(scope="module")
def hdfs(kerberos_minicluster: Minicluster) -> SecureWebHdfs:
    return SecureWebHdfs(kerberos_minicluster.url("namenode"), kerberos_minicluster.access("alice"))


def words(alice: User, *command: str) -> str:
    """Return what a successful command prints."""
    done = alice.run(*command)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_data_in_and_models_out(
    alice: User, hdfs: SecureWebHdfs, kerberos_minicluster: Minicluster
) -> None:
    base = "/user/alice/data é"
    for number in range(3):
        rows = "".join(f"{number * 10 + i}\n" for i in range(10))
        hdfs.write(f"{base}/set/part {number}.csv", f"id\n{rows}".encode())
    put = alice.file("digits.csv", "x\n1\n2\n3\n")
    words(alice, "data", "put", "digits", put)
    assert "digits" in words(alice, "data", "list")
    assert "digits.csv" in words(alice, "data", "show", "digits")

    program = alice.file("trains.py", TRAINS)
    job = alice.json(
        *("run", program, "--memory", "512M", "--wait"),
        *("--input", "PUT=data:digits", "--input", f"MOUNTED={base}/set:mount"),
        *("--input", f"LINES={base}/set:stream"),
        *("--save-output", f"PRED={base}/predictions"),
    )["job_id"]
    expected = list(range(30))
    assert json.loads(words(alice, "logs", job)) == [[1, 2, 3], expected]
    assert json.loads(hdfs.read(f"{base}/predictions/part-PRED.json")) == expected
    assert hdfs.read(f"{base}/written.txt") == b"by the program"

    model = f"{base}/models/digits/7"
    words(alice, "publish", job, "--to", f"hdfs://{model}", "--alias", "prod")
    assert json.loads(hdfs.read(f"{model}/weights.json")) == [1, 2, 3]
    aliases = json.loads(hdfs.read(f"{base}/models/digits/_aliases/prod.json"))
    assert aliases["version"] == "7"

    alice.json(
        *("predict", f"hdfs://{base}/models/digits@prod", "--wait", "--memory", "512M"),
        *("--input", f"x={base}/set", "--output", f"{base}/scores", "--keys", "id"),
        *("--program", alice.file("score.py", PREDICTS), "--worker", "2"),
    )
    manifest = json.loads(hdfs.read(f"{base}/scores/_predictions.json"))
    assert (manifest["rows"], len(manifest["parts"])) == (30, 1)
    table = parquet.read_table(io.BytesIO(hdfs.read(f"{base}/scores/part-00000.parquet")))
    assert table.to_pydict() == {"id": expected, "score": [one + 3 for one in expected]}

    # Another user has no right to read alice's data, and the refusal is one sentence.
    bob = User(kerberos_minicluster, "bob", alice.directory.parent / "bob")
    refused = bob.run(
        *("run", program, "--memory", "256M", "--dry-run", "--input"),
        f"MOUNTED=/user/alice/{'data é'}/set:list",
    )
    assert refused.returncode != 0
    assert "set: permission denied" in refused.stdout
    assert "Traceback" not in refused.stdout + refused.stderr
    with pytest.raises(RestError, match="Permission denied"):
        SecureWebHdfs(
            kerberos_minicluster.url("namenode"), kerberos_minicluster.access("bob")
        ).read(f"{model}/weights.json")
    words(alice, "data", "rm", "digits")
    assert "digits" not in words(alice, "data", "list")
