from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from submarine_jobs.tracking import IndexEntry, JobStore
from submarine_runtime.protocol import EndReason, Event, JobRecord, State


def row(number: int, name: str = "digits") -> IndexEntry:
    job_id = f"{name}-20261120-{number:04x}"
    record = JobRecord(job_id, name, State.RUNNING, events=[Event(0, 1.0, "x", "agent")])
    return IndexEntry(
        job_id, name, "local", "p", "file:///d", float(number), State.RUNNING, None, record
    )


def test_rows_come_back_newest_first_without_their_events(tmp_path: Path) -> None:
    store = JobStore(tmp_path / "deep" / "jobs.sqlite")
    for number in range(5):
        store.put(row(number))
    assert [known.created for known in store.newest(3)] == [4.0, 3.0, 2.0]
    found = store.get("digits-20261120-0002")
    assert found is not None
    assert found.record is not None
    assert found.record.events == []
    assert store.named("digits") == store.newest(1)[0]
    assert store.get("none-20261120-0000") is None
    assert os.stat(tmp_path / "deep").st_mode & 0o777 == 0o700


def test_beginnings_are_taken_literally(tmp_path: Path) -> None:
    store = JobStore(tmp_path / "jobs.sqlite")
    store.put(row(1, "a"))
    assert store.beginning_with("%") == []
    assert store.beginning_with("a-20261120-____") == []
    assert len(store.beginning_with("a-2026")) == 1


@pytest.mark.slow
def test_several_processes_write_at_once(tmp_path: Path) -> None:
    stores = [JobStore(tmp_path / "jobs.sqlite") for _ in range(4)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: stores[n % 4].put(row(n)), range(64)))
    assert len(stores[0].newest(100)) == 64


def test_a_damaged_index_is_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "jobs.sqlite"
    path.write_bytes(b"this is no database " * 100)
    store = JobStore(path)
    store.put(row(1))
    assert len(store.newest()) == 1
    assert (tmp_path / "jobs.damaged").exists()


def test_lost_is_not_final(tmp_path: Path) -> None:
    record = JobRecord("a-20261120-0000", "a", State.LOST, reason=EndReason.CLUSTER_LOST)
    known = IndexEntry(record.job_id, "a", "yarn", "p", "hdfs://x", 1.0, State.LOST, None, record)
    assert not known.final
