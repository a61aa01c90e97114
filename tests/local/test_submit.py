"""A submit that fails on this side: what is told, what is left, what the list says."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from submarine_jobs.backends.local import LocalBackend
from submarine_jobs.backends.yarn.hadoopconf import path_on
from submarine_jobs.errors import ClusterError, ConfigError, NotSubmittedError
from submarine_jobs.listing import list_jobs
from submarine_jobs.profile import Profile
from submarine_jobs.session import Session
from submarine_jobs.spec import JobSpec, Resources, Role
from submarine_runtime.protocol.reasons import EndReason
from submarine_runtime.protocol.states import State


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

    session = Session(Profile(backend="local", state_dir=tmp_path / "state"))
    monkeypatch.setattr(LocalBackend, "submit", lost)
    for _ in range(3):
        with pytest.raises(ClusterError, match="No answer"):
            session.submit(spec(), None)
    monkeypatch.setattr(LocalBackend, "find", hang)
    monkeypatch.setattr("submarine_jobs.observing.SUBMIT_GRACE", 0.0)
    records = list_jobs(session)
    assert len(asked) == 1
    assert len(records) == 3
    assert all("The cluster hangs." in record.detail for record in records)


@pytest.mark.parametrize(
    ("root", "path"),
    [
        ("/user/me/jobs/", "/user/me/jobs"),
        ("hdfs://nn:8020/jobs", "/jobs"),
        ("hdfs:///jobs//x", "/jobs/x"),
    ],
)
def test_a_job_root_is_a_path_of_the_cluster(root: str, path: str) -> None:
    assert path_on("hdfs://nn:8020", root) == path


@pytest.mark.parametrize(
    "root", ["jobs", "hdfs://other:8020/jobs", "file:///jobs", "s3a://b/jobs", "hdfs://nn:8020"]
)
def test_a_job_root_elsewhere_is_refused(root: str) -> None:
    with pytest.raises(ConfigError, match="job_root"):
        path_on("hdfs://nn:8020", root)


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
    deadline = time.monotonic() + 60
    while job.directory.record() is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert job.record().state is State.SUCCEEDED
