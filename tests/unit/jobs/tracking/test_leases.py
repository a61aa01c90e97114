"""Leases that a notebook keeps up for its jobs: through storages that are away, and no longer."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs.access import JobDirectory
from submarine_jobs.client import Job
from submarine_jobs.errors import StorageError
from submarine_jobs.model import JobSpec
from submarine_jobs.storage import LocalStorage
from submarine_jobs.tracking.leases import Leases, _LeasedJob
from submarine_runtime.protocol import layout
from tests.waiting import until


class Away(LocalStorage):
    """A file system that can be away, and counts what is asked of it."""

    away = False
    calls = 0

    def stat(self, path: str) -> object:  # type: ignore[override]
        self.calls += 1
        if self.away:
            raise StorageError("The NameNode is away.")
        return super().stat(path)


class Jobs:
    """Job directories without jobs."""

    def __init__(self, root: Path) -> None:
        self.root, self.storage = root, Away()

    def make(self, number: int, lease: float | None = 0.2) -> Job:
        job_id = f"test-20261122-{number:04x}"
        directory = JobDirectory(self.storage, str(self.root / job_id))
        spec = JobSpec("test", "local", lease=lease)
        self.storage.publish(directory.file(layout.SPEC), spec.to_bytes())
        return Job(None, job_id, "test", None, directory, None)  # type: ignore[arg-type]

    def signs(self, job: Job) -> int:
        return int((job.directory.read_json(layout.LEASE) or {}).get("number", 0))


@pytest.fixture
def leases() -> Iterator[Leases]:
    """Nothing is renewed after the test."""
    made = Leases()
    yield made
    for job_id in made.held:
        made.stop_renewing(job_id)


@pytest.fixture
def jobs(tmp_path: Path) -> Jobs:
    return Jobs(tmp_path)


@pytest.mark.slow
def test_jobs_that_wait_get_signs_in_their_directories_until_they_end(
    jobs: Jobs, leases: Leases
) -> None:
    two = [jobs.make(1), jobs.make(2)]
    for job in two:
        leases.renew_while_alive(job)
    until(lambda: all(jobs.signs(job) > 2 for job in two))
    two[0].directory.publish_json(layout.RECORD, {})
    until(lambda: leases.held == [two[1].id])
    left = jobs.signs(two[0])
    now = jobs.signs(two[1])
    until(lambda: jobs.signs(two[1]) > now + 2)
    assert jobs.signs(two[0]) == left
    leases.stop_renewing(two[1].id)
    assert leases.held == []


def test_a_job_without_a_lease_is_not_held(jobs: Jobs, leases: Leases) -> None:
    leases.renew_while_alive(jobs.make(1, None))
    assert leases.held == []


def test_all_jobs_share_one_thread(jobs: Jobs, leases: Leases) -> None:
    before = threading.active_count()
    made = [jobs.make(number) for number in range(20)]
    for job in made:
        leases.renew_while_alive(job)
    until(lambda: all(jobs.signs(job) for job in made))
    assert threading.active_count() <= before + 1


def test_signs_go_on_after_an_outage(jobs: Jobs, leases: Leases) -> None:
    job = jobs.make(1)
    leases.renew_while_alive(job)
    until(lambda: jobs.signs(job))
    jobs.storage.away, calls = True, jobs.storage.calls
    until(lambda: jobs.storage.calls > calls + 5)
    jobs.storage.away, signs = False, jobs.signs(job)
    until(lambda: jobs.signs(job) > signs)


def test_a_file_system_that_fails_is_asked_once_a_round(jobs: Jobs) -> None:
    """Each call may take its whole time limit: a hundred of them would make the others late."""
    jobs.storage.away = True
    Leases()._round([_LeasedJob(jobs.make(number), 60.0, 0.0) for number in range(100)])
    assert jobs.storage.calls == 1


def test_nothing_is_renewed_once_its_runner_is_gone(jobs: Jobs) -> None:
    alive = True
    leases, job = Leases(lambda: alive), jobs.make(1)
    leases.renew_while_alive(job)
    until(lambda: jobs.signs(job))
    alive = False
    assert leases._thread is not None
    leases._thread.join(60)
    assert not leases._thread.is_alive()


def test_a_sign_is_whole_whenever_it_is_read(jobs: Jobs, leases: Leases) -> None:
    job = jobs.make(1, 0.02)
    leases.renew_while_alive(job)
    until(lambda: jobs.signs(job) > 3)
    for _ in range(200):
        sign = json.loads(Path(job.directory.file(layout.LEASE)).read_bytes())
        assert set(sign) == {"pid", "number", "time"}
