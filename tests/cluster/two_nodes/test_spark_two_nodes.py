"""A Spark job whose executors are on two nodes.

It needs Spark: ``scripts/setup.sh spark``, or ``SPARK_HOME``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs.client import Session
from submarine_jobs.model import Resources, Role, SparkRequest
from submarine_minicluster import Minicluster
from submarine_runtime.protocol import State
from tests.cluster.own_cluster import own_profile
from tests.cluster.spark.conftest import spark  # noqa: F401 - used by all tests here
from tests.submission import submitting

pytestmark = [pytest.mark.cluster, pytest.mark.full, pytest.mark.timeout(900)]

#: MiB of an executor's heap: of the 6 GiB of a node, a second executor gets no container.
HEAP = 3072
#: A barrier stage runs on both executors at once; the sums of the second stage need data of both.
PROGRAM = """
import json, os
from pyspark.sql import SparkSession
from pyspark import BarrierTaskContext

def place(rows):
    BarrierTaskContext.get().barrier()
    return [(os.environ["NM_HOST"], os.environ["NM_PORT"], os.environ["CONTAINER_ID"], sum(rows))]

spark = SparkSession.builder.getOrCreate()
context = spark.sparkContext
places = context.parallelize(range(1000), 2).barrier().mapPartitions(place).collect()
pairs = context.parallelize(range(10_000), 8).map(lambda n: (n % 5, n))
sums = dict(pairs.reduceByKey(lambda a, b: a + b, 4).collect())
print(json.dumps({"places": places, "sums": sums}), flush=True)
spark.stop()
"""


@pytest.fixture
def session(two: Minicluster, tmp_path: Path) -> Iterator[Session]:
    with own_profile(two.environ(), tmp_path / "state") as profile:
        yield Session(profile)


def test_executors_run_on_both_nodes(session: Session, two: Minicluster) -> None:
    request = SparkRequest(2, Resources(HEAP))
    roles = (Role(resources=Resources(512)),)
    with submitting(session, backend="yarn") as submit:
        job = submit(PROGRAM, "spread", spark=request, roles=roles, framework="any")
        record = job.wait(600)
        assert record.state is State.SUCCEEDED, (record.detail, job.log("stderr").data[-3000:])
    found = json.loads(job.log("stdout").data)
    print(found)
    rows = session.backend().rm.get("/nodes")["nodes"]["node"]  # type: ignore[attr-defined]
    nodes = {row["id"] for row in rows}
    assert len(nodes) == 2
    assert {f"{host}:{port}" for host, port, _container, _sum in found["places"]} == nodes
    assert len({container for _host, _port, container, _sum in found["places"]}) == 2
    assert sum(one for *_place, one in found["places"]) == sum(range(1000))
    assert found["sums"] == {str(rest): sum(range(rest, 10_000, 5)) for rest in range(5)}
