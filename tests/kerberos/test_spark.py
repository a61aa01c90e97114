"""A Spark job on a cluster that requires Kerberos, with the user's ticket."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from submarine_minicluster import Minicluster
from submarine_minicluster.hadoop import SecureWebHdfs
from tests.kerberos.helpers import User

pytestmark = [pytest.mark.cluster, pytest.mark.full, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 600


def test_a_spark_job_reads_and_writes_by_delegation_tokens(
    kerberos_minicluster: Minicluster, tmp_path: Path
) -> None:
    home = os.environ.get("SPARK_HOME") or next(
        map(str, ROOT.glob(".venv-spark/lib/python3*/site-packages/pyspark")), None
    )
    if home is None:
        pytest.skip("scripts/setup.sh spark makes .venv-spark")
    alice = User(kerberos_minicluster, "alice", tmp_path / "alice")
    alice.environ["SPARK_HOME"] = home
    hdfs = SecureWebHdfs(kerberos_minicluster.url("namenode"), kerberos_minicluster.access("alice"))
    hdfs.write("/user/alice/spark/in.csv", b"id,x\n1,1\n2,\n3,3\n")
    at = f"{kerberos_minicluster.default_fs}/user/alice/spark"
    done = alice.run(
        *("run", str(ROOT / "examples/spark/etl.py"), "--type", "spark", "--wait"),
        *("--memory", "512M", "--executor", "1", "--executor_resources", "memory=512M"),
        *("--", f"{at}/in.csv", f"{at}/out"),
        seconds=SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rows 2" in done.stdout + alice.run("logs", "last").stdout
    shown = alice.json("show", "last")
    assert (shown["state"], shown["user"]) == ("SUCCEEDED", "alice")
    listed = hdfs.call("GET", "/user/alice/spark/out", "LISTSTATUS")
    entries = listed["FileStatuses"]["FileStatus"]
    assert {entry["owner"] for entry in entries} == {"alice"}
    assert any(entry["pathSuffix"].endswith(".parquet") for entry in entries)
