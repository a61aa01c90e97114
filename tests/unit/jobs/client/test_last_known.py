"""A job of a cluster that cannot be asked any more is listed as last known, not as running."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from submarine_jobs.access import JobDirectory
from submarine_jobs.backends import Observation, Stage
from submarine_jobs.client import Session
from submarine_jobs.client.listing import find_job
from submarine_jobs.commands import execute
from submarine_jobs.display import sanitize, table
from submarine_jobs.errors import ClusterError, JobNotFoundError, StorageError
from submarine_jobs.frontends import Frontend
from submarine_jobs.model import Profile
from submarine_jobs.tracking import IndexEntry, Target, last_known_record, record_without_directory
from submarine_runtime.protocol import EndReason, JobRecord, State, TaskRecord


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    for name in ("HADOOP_CONF_DIR", "HADOOP_HOME", "SUBMARINE_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("SUBMARINE_BACKEND", "local")
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("SUBMARINE_JOB_ROOT", str(tmp_path / "jobs"))
    monkeypatch.chdir(tmp_path)
    return Session(
        Profile(backend="local", state_dir=tmp_path / "state", job_root=str(tmp_path / "jobs"))
    )


def put(session: Session, number: int, state: State, age: float, patch: pytest.MonkeyPatch) -> str:
    """A job of a cluster that was configured once, seen ``age`` seconds ago."""
    job_id = f"old-20261120-000{number}"
    reason = EndReason.SUCCEEDED if state.ended else None
    record = JobRecord(job_id, "old", state, backend="yarn", created=1e9, reason=reason)
    with patch.context() as at:
        now = time.time()
        at.setattr("submarine_jobs.tracking.index.time.time", lambda: now - age)
        session.store.put(
            IndexEntry(job_id, "old", "yarn", "gone", "hdfs://nn/x", 1e9, state, None, record)
        )
    return job_id


def test_a_state_that_cannot_be_checked_has_a_question_mark_and_an_age(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = put(session, 1, State.RUNNING, 3 * 86400 + 60, monkeypatch)
    waiting = put(session, 2, State.PENDING, 2 * 86400 + 60, monkeypatch)
    ended = put(session, 3, State.SUCCEEDED, 86400, monkeypatch)
    done = execute(["list"], Frontend())
    states = {line.split()[0]: line.split()[2] for line in done.text.splitlines()[1:4]}
    assert states == {running: "RUNNING?", waiting: "PENDING?", ended: "SUCCEEDED"}
    note = done.text.splitlines()[-1]
    assert "and 1 more: Last known; its backend yarn of the profile gone is not" in note
    assert note.endswith("configured here now. Seen 2 d 00 h ago.")
    assert done.html is not None
    assert "RUNNING?" in done.html
    assert "Seen 2 d 00 h ago." in done.html
    by_id = {record["job_id"]: record for record in done.value}
    assert by_id[running]["state"] == "RUNNING"
    assert by_id[running]["behind"] > 3 * 86400
    assert by_id[ended]["detail"] == ""


@pytest.mark.parametrize("state", [State.RUNNING, State.SUCCEEDED])
def test_what_a_silent_cluster_said_before_is_the_last_known_unless_it_is_final(
    state: State,
) -> None:
    record = JobRecord("a-1", "a", state)
    known = IndexEntry("a-1", "a", "yarn", "", "hdfs://nn/x", 1e9, state, None, record)
    shown = sanitize(last_known_record(known, ClusterError("No answer.", "Wait.")))
    assert shown.last_known is (state is State.RUNNING)
    assert shown.detail == "Last known; the cluster does not answer: No answer."
    assert ("RUNNING?" in table([shown]).text) is shown.last_known


@pytest.mark.parametrize(
    ("state", "seen", "started", "said"),
    [
        (State.PENDING, Observation(Stage.WAITING, pending="queue a: 0 of 2"), False, "queue a"),
        (
            State.PENDING,
            Observation(Stage.WAITING, pending="queue a: 0 of 2", master_runs=True),
            False,
            "waiting for HDFS: No answer.",
        ),
        (State.FINISHING, Observation(Stage.RUNNING), True, "waiting for HDFS: No answer."),
        (State.RUNNING, Observation(Stage.RUNNING), True, ""),
        (
            State.RUNNING,
            Observation(Stage.RUNNING),
            False,
            "waiting for HDFS, unless its program has started: No answer.",
        ),
    ],
)
def test_a_job_that_needs_a_silent_file_system_waits_for_it(
    session: Session, state: State, seen: Observation, started: bool, said: str
) -> None:
    record = JobRecord("a-1", "a", state, tasks=[TaskRecord("worker:0", "worker", 0)])
    record.tasks[0].started = 1.0 if started else None
    known = IndexEntry("a-1", "a", "yarn", "", "hdfs://nn/x", 1e9, state, None, record)
    directory = cast(JobDirectory, SimpleNamespace(url="hdfs://nn/x"))
    target = Target(known, directory, session.backend())
    shown = record_without_directory(
        target, seen, session.store, StorageError("No answer.", "Wait.")
    )
    assert shown.pending.startswith(said)
    assert bool(shown.pending) is bool(said)


def test_a_job_of_a_cluster_that_is_not_configured_any_more_names_how_to_name_it(
    tmp_path: Path,
) -> None:
    session = Session(Profile(state_dir=tmp_path))
    job_id = "digits-20261120-7f3a"
    session.store.put(
        IndexEntry(
            job_id, "digits", "yarn", session.profile.name, "hdfs://nn/x", 1e9, State.RUNNING
        )
    )
    with pytest.raises(JobNotFoundError, match=r"not configured now.*HADOOP_CONF_DIR"):
        find_job(session, job_id)


def test_an_empty_word_is_the_beginning_of_no_job(tmp_path: Path) -> None:
    session = Session(Profile(state_dir=tmp_path))
    session.store.put(
        IndexEntry(
            "digits-20261120-7f3a", "digits", "local", session.profile.name, "x", 1e9, State.RUNNING
        )
    )
    with pytest.raises(JobNotFoundError, match="There is no job ''"):
        find_job(session, "")
