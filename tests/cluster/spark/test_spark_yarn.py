"""Spark jobs on the minicluster: a program that succeeds, one that fails, a cancel, a dead driver.

They need Spark: ``scripts/setup.sh spark``, or ``SPARK_HOME``.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest

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


def test_a_cancelled_job_leaves_no_files_of_spark(submit: Submit) -> None:
    job = submit(SLOW, "cancelled", **SIZE)
    until(lambda: has_session(job), "the session", SECONDS)
    record = job.cancel("enough")
    assert (record.state, record.reason) == (State.CANCELLED, EndReason.CANCELLED)
    assert output(job) == "session\n"
    until(lambda: not staged(job), "the files are gone", 60)


def test_a_killed_driver_has_a_reason_and_leaves_no_files_of_spark(submit: Submit) -> None:
    job = submit(SLOW, "killed", **SIZE)
    until(lambda: has_session(job), "the session", SECONDS)
    handle = job.handle
    assert handle is not None
    assert staged(job)
    application = str(handle["application_id"])
    drivers = [
        process.pid
        for process in psutil.process_iter()
        if process.name() == "java"
        and "org.apache.spark.deploy.yarn.ApplicationMaster" in process.cmdline()
        and application in process.cwd()
    ]
    assert len(drivers) == 1
    os.kill(drivers[0], signal.SIGKILL)
    record = job.wait(SECONDS)
    # The agent may report the SIGTERM that YARN then sends to it, before the client sees the end.
    assert record.reason in (EndReason.MASTER_LOST, EndReason.KILLED_ON_CLUSTER), record
    job.backend.observe({job.id: handle})
    assert not staged(job)
