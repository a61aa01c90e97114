"""NameNode operations and files of a job, by the NameNode's own metrics and by the job's record.

The record counts what coordinator and agents do. The NameNode also counts the submission, YARN's
localisation and log aggregation, and this test's own reading.
"""

from __future__ import annotations

import json
import time
import urllib.request
from typing import Any

import psutil
import pytest

from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.client import Session
from submarine_runtime.protocol import State
from tests.submission import Submit

pytestmark = [pytest.mark.cluster, pytest.mark.full]
JOBS = 20
#: The metrics have each operation after at most this many seconds.
RENEWED = 11
#: Operations and files of one job: a third more than was measured (88.5 and 11).
MOST_OPERATIONS, MOST_FILES = 118, 15


def file_operations(backend: YarnBackend) -> dict[str, int]:
    """The NameNode's counters of operations on files."""
    time.sleep(RENEWED)
    url = f"{backend.conf.webhdfs[0]}/jmx?qry=Hadoop:service=NameNode,name=NameNodeActivity"
    with urllib.request.urlopen(url, timeout=10) as reply:
        bean: dict[str, Any] = json.load(reply)["beans"][0]
    return {name: value for name, value in bean.items() if isinstance(value, int)}


def driver_memory(backend: YarnBackend) -> float:
    """Resident memory of the YARN driver, in MiB."""
    running = backend.driver.running()
    assert running is not None
    return float(psutil.Process(running.pid).memory_info().rss) / (1 << 20)


def test_operations_and_files_of_a_job(session: Session, submit: Submit) -> None:
    backend = session.backend()
    assert isinstance(backend, YarnBackend)
    submit("pass", command="true").wait(timeout=180)  # what is uploaded once
    before = file_operations(backend)
    own, files, driver = [], [], [driver_memory(backend)]
    for _ in range(JOBS):
        job = submit("pass", command="true")
        job.wait(timeout=180)
        record = job.record()
        assert record.state is State.SUCCEEDED
        own.append(record.resources["used"]["namenode_operations"])
        files.append(len(backend.storage.walk(job.directory.path)))
        driver.append(driver_memory(backend))
    after = file_operations(backend)
    operations = (after["TotalFileOps"] - before["TotalFileOps"]) / JOBS
    kinds = {
        name: (after[name] - before[name]) / JOBS
        for name in sorted(after)
        if after[name] != before[name] and not name.endswith("AvgTime")
    }
    print(f"of a job: {operations:.1f} operations by the NameNode, {sum(own) / JOBS:.1f} by itself")
    print(f"files of a job: {max(files)}; operations by kind: {kinds}")
    print("MiB of the driver's JVM:", *(f"{value:.0f}" for value in driver))
    assert sum(own) / JOBS <= operations
    assert operations <= MOST_OPERATIONS
    assert max(files) <= MOST_FILES
