"""Spark jobs on the minicluster: success, a failure, too much memory, a cancel, a killed driver.

They need Spark: ``scripts/setup.sh spark``, or ``SPARK_HOME``.
"""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import psutil
import pytest

from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.client import Job, Session
from submarine_jobs.model import Resources, Role, SparkRequest
from submarine_runtime.protocol import EndReason, State
from tests.submission import Submit
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[3]
ETL = (ROOT / "examples/spark/etl.py").read_text(encoding="utf-8")
SLOW = """
import time
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
print("session", flush=True)
time.sleep(600)
"""
FAILS = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
print(spark.sparkContext.parallelize(range(4), 2).map(lambda n: 2 * n).collect(), flush=True)
raise ValueError("no rows")
"""
#: One executor of 896 MB, whose Python worker takes 1 GiB for longer than two checks of the
#: NodeManager.
GREEDY = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()

def grow(number):
    import time
    pages = b"x" * (1 << 30)
    time.sleep(60)
    return len(pages)

print(spark.sparkContext.parallelize([1], 1).map(grow).collect(), flush=True)
"""
SIZE = {
    "spark": SparkRequest(1, Resources(512)),
    "roles": (Role(resources=Resources(512)),),
    "framework": "any",
}
SECONDS = 600


def output(job: Job) -> str:
    return job.log("stdout").data.decode()


def staged(job: Job) -> list[str]:
    """Files of Spark that are left in the job directory."""
    storage, path = job.directory.storage, job.directory.file("spark")
    return [name for name, _size in storage.walk(path)] if storage.stat(path) else []


def has_session(job: Job) -> bool:
    assert not job.record().state.ended, job.record()
    return output(job) == "session\n"


def test_an_etl_job_writes_parquet_and_its_record(session: Session, submit: Submit) -> None:
    storage, root = session.backend().job_root()
    rows = "\n".join(f"{number},{number % 7 or ''}" for number in range(700))
    storage.publish(f"{root}/spark/in.csv", f"id,x\n{rows}\n".encode())
    source, target = storage.url(f"{root}/spark/in.csv"), storage.url(f"{root}/spark/out")
    job = submit(ETL, "etl", args=(source, target), **SIZE)
    record = job.wait(SECONDS)
    assert (record.state, record.reason) == (State.SUCCEEDED, EndReason.SUCCEEDED), record.detail
    assert output(job) == "rows 600\n"
    assert record.resources["requested"]["executor"]["instances"] == 1
    names = [entry.name for entry in storage.list_directory(f"{root}/spark/out")]
    assert any(name.endswith(".parquet") for name in names)
    until(lambda: not staged(job), "Spark removes its files")
    handle = job.handle
    assert handle is not None
    # YARN learns the program's exit code after the record is written.
    ended = until(
        lambda: seen if (seen := job.backend.observe({job.id: handle})[job.id]).reason else None,
        "YARN's state",
    )
    assert ended.reason is EndReason.SUCCEEDED


def test_a_failing_program_has_its_traceback_in_the_record(submit: Submit) -> None:
    job = submit(FAILS, "fails", **SIZE)
    record = job.wait(SECONDS)
    assert (record.state, record.reason) == (State.FAILED, EndReason.PROGRAM_ERROR)
    assert output(job) == "[0, 2, 4, 6]\n"
    assert record.failure is not None
    assert (record.failure.type, record.failure.message) == ("ValueError", "no rows")
    assert record.failure.frames[-1].cell_line == 6


def test_an_executor_that_exceeds_its_memory_is_the_reason(submit: Submit) -> None:
    once = SparkRequest(1, Resources(512), {"spark.task.maxFailures": "1"})
    job = submit(GREEDY, "greedy", **{**SIZE, "spark": once})
    record = job.wait(SECONDS)
    assert (record.state, record.reason) == (State.FAILED, EndReason.OUT_OF_MEMORY), record.detail
    assert re.fullmatch(
        r"An executor used 1\.\d GB of 896 MB; ask for more with --executor_resources or "
        r"--conf spark\.executor\.memoryOverhead\.",
        record.detail,
    )
    assert record.failure is not None
    assert record.failure.frames[0].cell_line == 12


def test_a_cancelled_job_leaves_no_files_of_spark(submit: Submit) -> None:
    job = submit(SLOW, "cancelled", **SIZE)
    until(lambda: has_session(job), "the session", SECONDS)
    record = job.cancel("enough")
    assert (record.state, record.reason) == (State.CANCELLED, EndReason.CANCELLED)
    assert output(job) == "session\n"
    until(lambda: not staged(job), "the files are gone", 60)


def driver_of(job: Job) -> int:
    """The process of the driver's JVM."""
    assert job.handle is not None
    application = str(job.handle["application_id"])
    [driver] = [
        process.pid
        for process in psutil.process_iter(["name", "cmdline"])
        if process.info["name"] == "java"
        and "org.apache.spark.deploy.yarn.ApplicationMaster" in process.info["cmdline"]
        and application in process.cwd()
    ]
    return driver


@pytest.mark.parametrize("whole", [False, True], ids=["driver", "container"])
def test_a_killed_driver_is_a_failure_and_leaves_no_files_of_spark(
    submit: Submit, whole: bool
) -> None:
    """The JVM only, and the whole container, whose agent then publishes no record."""
    job = submit(SLOW, "killed", **SIZE)
    until(lambda: has_session(job), "the session", SECONDS)
    assert job.handle is not None
    assert staged(job)
    driver = driver_of(job)
    if whole:
        os.killpg(os.getpgid(driver), signal.SIGKILL)
    else:
        os.kill(driver, signal.SIGKILL)
    record = job.wait(SECONDS)
    assert (record.state, record.reason) == (State.FAILED, EndReason.MASTER_LOST), record
    assert record.detail.startswith("The application master "), record.detail
    assert record.written_by == "closer" or not whole
    job.backend.observe({job.id: job.handle})
    assert not staged(job)


def test_an_application_that_is_killed_on_the_cluster_is_no_failure(
    session: Session, submit: Submit
) -> None:
    job = submit(SLOW, "stopped", **SIZE)
    until(lambda: has_session(job), "the session", SECONDS)
    assert job.handle is not None
    backend = session.backend()
    assert isinstance(backend, YarnBackend)
    assert backend.rm.kill(str(job.handle["application_id"]), "maintenance")
    record = job.wait(SECONDS)
    assert (record.state, record.reason) == (State.CANCELLED, EndReason.KILLED_ON_CLUSTER), record
