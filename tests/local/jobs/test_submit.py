"""A submit that fails on this side: its message, its remains, its row in the list."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from submarine_jobs.backends.local import LocalBackend
from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.backends.yarn.cluster import write_properties
from submarine_jobs.client import Session, newest_months
from submarine_jobs.client.listing import list_jobs
from submarine_jobs.errors import (
    ClusterError,
    ConfigError,
    NotSubmittedError,
    RefusedError,
    StorageError,
)
from submarine_jobs.model import JobSpec, Profile, Resources, Role
from submarine_runtime.protocol import EndReason, State, layout
from tests.local.jobs.slow_submission import check_slow_submission
from tests.waiting import until


def spec() -> JobSpec:
    role = Role(resources=Resources(memory=256), command="true")
    return JobSpec("early", "local", roles=(role,), python=sys.executable, program=None)


def test_a_job_that_could_not_be_sent_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_java(*_: object) -> None:
        raise NotSubmittedError("There is no Java.", "Install one.")

    session = Session(Profile(backend="local", state_dir=tmp_path / "state"))
    monkeypatch.setattr(LocalBackend, "submit", no_java)
    with pytest.raises(NotSubmittedError, match="no Java"):
        session.submit(spec(), None)
    (seen,) = Session(Profile(backend="local", state_dir=tmp_path / "state")).jobs()
    assert (seen.state, seen.reason) == (State.FAILED, EndReason.SUBMIT_FAILED)
    assert seen.detail == "There is no Java. Install one."
    stored = session.job("last").directory.record()
    assert stored is not None
    assert stored.state is State.FAILED


def test_a_cluster_that_hangs_is_asked_once_for_all_unsettled_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object) -> None:
        raise ClusterError("No answer.")

    asked: list[str] = []

    def hang(_: object, job_id: str) -> None:
        asked.append(job_id)
        raise ClusterError("The cluster hangs.")

    settings = {"submit_grace": "1ms"}
    session = Session(Profile(backend="local", state_dir=tmp_path / "state", settings=settings))
    monkeypatch.setattr(LocalBackend, "submit", lost)
    for _ in range(3):
        with pytest.raises(ClusterError, match="No answer"):
            session.submit(spec(), None)
    monkeypatch.setattr(LocalBackend, "find", hang)
    records = list_jobs(session)
    assert len(asked) == 1
    assert len(records) == 3
    assert all("The cluster hangs." in record.detail for record in records)


def cluster_root(conf: Path, root: str) -> str:
    """The job root on a cluster whose NameNode is nn:8020."""
    site = write_properties({"fs.defaultFS": "hdfs://nn:8020"})
    (conf / "core-site.xml").write_bytes(site)
    return YarnBackend(Profile(backend="yarn", hadoop_conf_dir=conf, job_root=root)).job_root()[1]


@pytest.mark.parametrize(
    ("root", "path"),
    [
        ("/user/me/jobs/", "/user/me/jobs"),
        ("hdfs://nn:8020/jobs", "/jobs"),
        ("hdfs:///jobs//x", "/jobs/x"),
        ("hdfs://me@NN/jobs", "/jobs"),
        ("webhdfs://nn:9870/jobs", "/jobs"),
    ],
)
def test_a_job_root_is_a_path_of_the_cluster(root: str, path: str, tmp_path: Path) -> None:
    assert cluster_root(tmp_path, root) == path


@pytest.mark.parametrize(
    "root", ["jobs", "hdfs://other:8020/jobs", "file:///jobs", "s3a://b/jobs", "hdfs://nn:8020"]
)
def test_a_job_root_elsewhere_is_refused(root: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="job_root"):
        cluster_root(tmp_path, root)


def test_a_clusters_job_root_is_not_a_path_of_this_machine(tmp_path: Path) -> None:
    conf, state = tmp_path / "conf", tmp_path / "state"

    def root(job_root: str, with_cluster: bool) -> str:
        conf_dir = conf if with_cluster else None
        profile = Profile(
            backend="local", state_dir=state, job_root=job_root, hadoop_conf_dir=conf_dir
        )
        return LocalBackend(profile).job_root()[1]

    assert root("/user/me", True) == str(state / "jobs")
    assert root("hdfs://nn/user/me", False) == str(state / "jobs")
    assert root("/data/jobs", False) == "/data/jobs"
    assert root("file:///data/jobs", True) == "/data/jobs"


def test_a_job_that_has_ended_is_known_while_its_cluster_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise ClusterError("The ResourceManager does not answer.")

    session = Session(Profile(backend="local", state_dir=tmp_path / "state"))
    job = session.submit(spec(), None)
    monkeypatch.setattr(LocalBackend, "observe", away)
    monkeypatch.setattr(job, "agent", lambda: None)
    until(lambda: job.directory.record() is not None, seconds=60)
    assert job.record().state is State.SUCCEEDED


@pytest.mark.parametrize(
    ("seconds", "settings"),
    [(10.0, {"submit_grace": "6s"}), pytest.param(200.0, {}, marks=pytest.mark.full)],
)
def test_slow_submission_is_not_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, settings: dict[str, str]
) -> None:
    root = f"file://{tmp_path / 'root'}"
    submitter, watcher, retrier = (
        Session(
            Profile("test", "local", job_root=root, state_dir=tmp_path / name, settings=settings)
        )
        for name in ("submitter", "watcher", "retrier")
    )
    runs = tmp_path / "runs"
    role = Role(resources=Resources(memory=256), command=f"echo once >> {runs}")
    job = JobSpec("slow", "local", roles=(role,), python=sys.executable, run_id="nightly/1")
    check_slow_submission(submitter, watcher, retrier, job, None, seconds, monkeypatch)
    assert runs.read_text().splitlines() == ["once"]


_KILLED_IN = """
import os, signal, sys
from pathlib import Path
from submarine_jobs.submit import submission as submit
from submarine_jobs.model.profile import Profile
from submarine_jobs.client.session import Session
from submarine_runtime.protocol.spec import JobSpec, Resources, Role

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

setattr(submit, sys.argv[2], die)
session = Session(Profile(backend="local", state_dir=Path(sys.argv[1])))
role = Role(resources=Resources(memory=256), command="true")
session.submit(JobSpec("killed", "local", roles=(role,), python=sys.executable), None)
"""


@pytest.mark.parametrize("step", ["upload", "copy_sources", "make_submission"])
def test_job_of_a_killed_client_is_listed_and_closed(tmp_path: Path, step: str) -> None:
    state = tmp_path / "state"
    command = [sys.executable, "-c", _KILLED_IN, str(state), step]
    assert subprocess.run(command, timeout=120).returncode == -signal.SIGKILL
    settings = {"submit_grace": "6s"}
    session = Session(Profile(backend="local", state_dir=state, settings=settings))
    (seen,) = session.jobs()
    assert (seen.name, seen.state) == ("killed", State.SUBMITTING)
    intent = Path(session.job(seen.job_id).directory.path) / layout.INTENT
    os.utime(intent, (time.time() - 100,) * 2)
    row = session.store.get(seen.job_id)
    assert row is not None
    session.store.put(replace(row, created=time.time() - 100))
    (seen,) = session.jobs()
    assert (seen.state, seen.reason) == (State.LOST, EndReason.NEVER_SUBMITTED)
    stored = session.job("last").directory.record()
    assert stored is not None
    assert stored.reason is EndReason.NEVER_SUBMITTED


def test_directory_without_an_intent_is_removed_after_an_hour(tmp_path: Path) -> None:
    session = Session(Profile(backend="local", state_dir=tmp_path / "state"))
    month = Path(session.backend().job_root()[1]) / newest_months()[0]
    empty, recent, other = (month / f"{name}-20261120-0a1b" for name in ("empty", "new", "other"))
    for path in (empty, recent, other):
        path.mkdir(parents=True)
    (empty / ".tmp-intent.json.1").touch()
    (other / "somebodys.txt").touch()
    for path in (empty, other):
        os.utime(path, (time.time() - 4000,) * 2)
    assert session.jobs() == []
    assert (empty.exists(), recent.exists(), other.exists()) == (False, True, True)


@pytest.mark.parametrize("step", ["upload", "copy_sources"])
def test_failed_upload_leaves_no_job_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def fail(*_: object) -> None:
        raise StorageError("The disk is gone.")

    monkeypatch.setattr(f"submarine_jobs.submit.submission.{step}", fail)
    session = Session(Profile(backend="local", state_dir=tmp_path / "state"))
    with pytest.raises(StorageError, match="disk is gone"):
        session.submit(spec(), None)
    assert not list((tmp_path / "state" / "jobs").glob("2*/*"))
    assert session.jobs() == []


def test_intent_of_a_refused_job_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise RefusedError("The queue is full.")

    session = Session(Profile(backend="local", state_dir=tmp_path / "state"))
    monkeypatch.setattr(LocalBackend, "submit", refuse)
    with pytest.raises(RefusedError, match="queue is full"):
        session.submit(spec(), None)
    (job_dir,) = (tmp_path / "state" / "jobs").glob("2*/*")
    assert not (job_dir / layout.INTENT).exists()
    assert (job_dir / layout.RECORD).exists()
    elsewhere = Profile(
        backend="local", state_dir=tmp_path / "other", job_root=f"file://{job_dir.parents[1]}"
    )
    (seen,) = Session(elsewhere).jobs()
    assert (seen.state, seen.detail) == (State.FAILED, "The queue is full.")
