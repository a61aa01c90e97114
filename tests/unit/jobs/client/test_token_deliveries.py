"""Deliveries of fresh credentials to running jobs: when, to which jobs, and after failures."""

from __future__ import annotations

import getpass
import time
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.backends import FreshTokens
from submarine_jobs.client import TokenDeliveries
from submarine_jobs.errors import ClusterError
from submarine_jobs.storage import LocalStorage
from submarine_runtime.protocol import layout
from tests.waiting import until


class Backend:
    """Counts requests for tokens; the first ``failures`` fail."""

    def __init__(self, interval: float, failures: int = 0) -> None:
        self.token_interval, self.failures = interval, failures
        self.requests = 0
        self.keeps = False
        self.user = getpass.getuser()

    def keep_credentials(self) -> None:
        self.keeps = True

    def fresh_tokens(self) -> FreshTokens:
        self.requests += 1
        if self.requests <= self.failures:
            raise ClusterError("The KDC is down.")
        return FreshTokens(f"tokens{self.requests}")


class Directory:
    """A job directory without a port."""

    def __init__(self, path: Path) -> None:
        self.storage, self.path, self.root = LocalStorage(), str(path), path
        path.mkdir()

    def file(self, name: str) -> str:
        return f"{self.path}/{name}"

    def address(self) -> None:
        return None


class Job:
    """A running job."""

    def __init__(self, name: str, backend: Backend, path: Path) -> None:
        self.id, self.backend = name, backend
        self.directory = Directory(path / name)


@pytest.fixture
def job(tmp_path: Path) -> Any:
    return Job("a", Backend(0.2), tmp_path)


def written(job: Any) -> str:
    path = job.directory.root / layout.TOKENS
    return path.read_text() if path.exists() else ""


def test_tokens_are_written_until_the_end(job: Any) -> None:
    deliveries = TokenDeliveries(job)
    deliveries.keep(job.id, time.time(), job)
    assert written(job) == ""
    until(lambda: written(job) == "tokens2", "two deliveries")
    assert (job.directory.root / layout.TOKENS).stat().st_mode & 0o777 == 0o600
    (job.directory.root / layout.RECORD).write_text("{}")
    until(lambda: deliveries.receivers == [], "the end of the job")
    deliveries.keep(job.id, 0.0, job)
    assert deliveries.receivers == []


def test_an_old_job_receives_tokens_at_once(tmp_path: Path) -> None:
    job: Any = Job("a", Backend(3600.0), tmp_path)
    TokenDeliveries(job).keep(job.id, time.time() - 4000, job)
    assert job.backend.keeps
    until(lambda: written(job) == "tokens1", "a delivery")


def test_a_failure_is_repeated_sooner(tmp_path: Path) -> None:
    job: Any = Job("a", Backend(4.0, failures=1), tmp_path)
    began = time.monotonic()
    TokenDeliveries(job).keep(job.id, time.time() - 10, job)
    until(lambda: written(job) == "tokens2", "the second attempt")
    assert 1.0 <= time.monotonic() - began < 4.0


def test_another_users_job_receives_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its port belongs to that user, who would receive tokens of this one."""
    job: Any = Job("a", Backend(0.1), tmp_path)
    monkeypatch.setattr(job.directory.storage, "owner_name", lambda user: "somebody")
    deliveries = TokenDeliveries(job)
    deliveries.keep(job.id, 0.0, job)
    until(lambda: deliveries.receivers == [], "the refusal")
    assert job.backend.requests == 0
    assert written(job) == ""


def test_jobs_that_need_none_have_no_thread(tmp_path: Path) -> None:
    job: Any = Job("a", Backend(0.0), tmp_path)
    deliveries = TokenDeliveries(job)
    deliveries.keep(job.id, 0.0, job)
    assert deliveries.receivers == []
    assert not job.backend.keeps
    assert job.backend.requests == 0


def test_the_text_is_not_shown() -> None:
    assert "secret" not in repr(FreshTokens("secret"))
