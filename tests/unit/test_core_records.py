"""Folding, closing and settling: what is said of a job whose agent cannot be asked."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from submarine_jobs.backends.base import Backend, Handle, Observation, Plan, Stage, Submission
from submarine_jobs.closing import close_orphan
from submarine_jobs.directory import JobDirectory
from submarine_jobs.folding import base_record, fold
from submarine_jobs.observing import Target, settle
from submarine_jobs.spec import JobSpec
from submarine_jobs.storage.base import Storage
from submarine_jobs.storage.local import LocalStorage
from submarine_jobs.store import JobStore, Known
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.reasons import MEANINGS, EndReason
from submarine_runtime.protocol.record import Event, JobRecord
from submarine_runtime.protocol.states import TRANSITIONS, State, may_follow

JOB = "digits-20261120-7f3a"
INTENT = {"job_id": JOB, "name": "digits", "user": "ann", "backend": "fake", "created": 5.0}


class FakeBackend(Backend):
    name = "fake"

    def __init__(self, found: Handle | None = None) -> None:
        self.found = found

    def job_root(self) -> tuple[Storage, str]:
        raise AssertionError

    def plan(self, spec: JobSpec) -> Plan:
        raise AssertionError

    def prepare(self, spec: JobSpec | None = None) -> None:
        raise AssertionError

    def submit(self, submission: Submission) -> Handle:
        raise AssertionError

    def find(self, job_id: str) -> Handle | None:
        return self.found

    def observe(self, handles: Mapping[str, Handle]) -> dict[str, Observation]:
        raise AssertionError

    def stop(self, handle: Handle) -> None:
        raise AssertionError


@pytest.fixture
def directory(tmp_path: Path) -> JobDirectory:
    found = JobDirectory(LocalStorage(), str(tmp_path / JOB))
    found.publish_json_exclusive(layout.INTENT, INTENT)
    found.publish_events("client", 0, [Event(0, 5.0, "state", "client", State.PENDING)])
    return found


@pytest.fixture
def store(tmp_path: Path) -> JobStore:
    return JobStore(tmp_path / "state" / "jobs.sqlite")


def known(created: float, handle: Handle | None = None) -> Known:
    return Known(JOB, "digits", "fake", "default", "file:///x", created, State.SUBMITTING, handle)


def test_every_reason_has_a_meaning_that_ends() -> None:
    assert set(MEANINGS) == set(EndReason)
    assert all(meaning.state.ended and meaning.sentence for meaning in MEANINGS.values())
    assert {MEANINGS[EndReason.SUCCEEDED].state} == {State.SUCCEEDED}


def test_transitions_cover_every_state_and_ends_are_ends() -> None:
    assert set(TRANSITIONS) == set(State)
    for state in (State.SUCCEEDED, State.FAILED, State.CANCELLED):
        assert not TRANSITIONS[state]
    assert may_follow(State.LOST, State.RUNNING)
    assert not may_follow(State.RUNNING, State.PENDING)
    assert not may_follow(State.FINISHING, State.RUNNING)


def test_fold_ignores_late_writers() -> None:
    record = fold(
        base_record(INTENT, "file:///x"),
        [
            Event(0, 1.0, "state", "client", State.PENDING),
            Event(0, 2.0, "state", "agent", State.STARTING, detail="claimed"),
            Event(1, 3.0, "state", "client", State.PENDING, detail="late"),
            Event(2, 4.0, "state", "agent", data={"phases": [{"name": "run", "start": 4.0}, 7]}),
            Event(3, 4.0, "warning", "agent", data={"task": {"task": "worker:0"}}),
        ],
    )
    assert (record.state, record.detail) == (State.STARTING, "claimed")
    assert [phase.name for phase in record.phases] == ["run"]
    assert len(record.events) == 5


def test_an_orphan_is_closed_once_whatever_the_second_looker_thinks(
    directory: JobDirectory,
) -> None:
    first = close_orphan(directory, Observation(Stage.ENDED, EndReason.NODE_LOST, "node n1"))
    second = close_orphan(directory, Observation(Stage.ENDED, EndReason.PREEMPTED))
    assert first.reason is EndReason.NODE_LOST
    assert second == first
    assert directory.record() == first
    assert first.state is State.FAILED
    assert first.written_by == "closer"


@pytest.fixture
def full(directory: JobDirectory, monkeypatch: pytest.MonkeyPatch) -> JobDirectory:
    """The job directory when nothing more goes into it."""

    def refuse(*_: object) -> str:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(LocalStorage, "_write_temporary", refuse)
    return directory


def test_a_job_whose_directory_is_full_ends_and_says_so(
    full: JobDirectory, store: JobStore
) -> None:
    target = Target(known(5.0, {"application_id": "a"}), full, FakeBackend())
    record = settle(target, Observation(Stage.ENDED, EndReason.AGENT_LOST, "exit code 1"), store)
    assert (record.state, record.reason) == (State.FAILED, EndReason.JOB_DIRECTORY_FULL)
    assert "record.json" in record.detail
    assert os.strerror(errno.EDQUOT) in record.detail
    assert any("on this machine alone" in sentence for sentence in record.missing)
    row = store.get(JOB)
    assert row is not None
    assert row.final


def test_a_full_job_directory_hides_no_other_reason(full: JobDirectory) -> None:
    record = close_orphan(full, Observation(Stage.ENDED, EndReason.NODE_LOST, "node n1"))
    assert (record.reason, record.detail) == (EndReason.NODE_LOST, "node n1")


def test_a_wish_to_cancel_explains_the_end(directory: JobDirectory) -> None:
    directory.publish_json_exclusive(layout.CANCEL, {"by": "ann", "why": "enough"})
    record = close_orphan(directory, Observation(Stage.ENDED, EndReason.KILLED_ON_CLUSTER))
    assert record.state is State.CANCELLED
    assert record.reason is EndReason.CANCELLED
    assert "ann" in record.detail


def test_a_success_without_a_result_is_no_success(directory: JobDirectory) -> None:
    record = close_orphan(directory, Observation(Stage.ENDED, EndReason.SUCCEEDED))
    assert record.reason is EndReason.AGENT_LOST


def test_log_lengths_of_an_orphan_come_from_its_segments(directory: JobDirectory) -> None:
    place = layout.log_directory("worker:0", 1, 1)
    for offset, data in ((0, b"abc"), (3, b"defg")):
        name = layout.segment_name("stderr", offset)
        directory.storage.publish(directory.file(f"{place}/{name}"), data)
    record = close_orphan(directory, Observation(Stage.ENDED, EndReason.NODE_LOST))
    assert record.logs == {"worker:0/e1-a1/stderr": 7}


def test_settle_keeps_the_jobs_own_record(directory: JobDirectory, store: JobStore) -> None:
    own = JobRecord(JOB, "digits", State.SUCCEEDED, reason=EndReason.SUCCEEDED)
    directory.publish_json_exclusive(layout.RECORD, own.to_json())
    target = Target(known(5.0, {"application_id": "a"}), directory, FakeBackend())
    ended = Observation(Stage.ENDED, EndReason.NODE_LOST)
    assert settle(target, ended, store).state is State.SUCCEEDED
    row = store.get(JOB)
    assert row is not None
    assert row.final


def test_of_two_applications_the_one_with_the_claim_is_the_job(
    directory: JobDirectory, store: JobStore
) -> None:
    """ResourceManager restarted in the middle of a submit: the second application has ended."""
    directory.publish_json_exclusive(layout.CLAIM, {"application_id": "first"})
    target = Target(
        known(5.0, {"application_id": "second"}),
        directory,
        FakeBackend({"application_id": "first"}),
    )
    assert not settle(target, Observation(Stage.ENDED, EndReason.AGENT_LOST), store).state.ended
    assert directory.record() is None
    row = store.get(JOB)
    assert row is not None
    assert row.handle == {"application_id": "first"}
    ended = Observation(Stage.ENDED, EndReason.NODE_LOST)
    assert settle(replace(target, known=row), ended, store).reason is EndReason.NODE_LOST


def test_a_forgotten_job_without_result_is_lost_and_may_come_back(
    directory: JobDirectory, store: JobStore
) -> None:
    target = Target(known(5.0, {"application_id": "a"}), directory, FakeBackend())
    assert settle(target, Observation(Stage.UNKNOWN), store).state is State.LOST
    assert directory.record() is None
    row = store.get(JOB)
    assert row is not None
    assert not row.final
    again = settle(replace(target, known=row), Observation(Stage.RUNNING), store)
    assert again.state is State.RUNNING


def test_a_submit_whose_reply_was_lost_is_found_by_its_tag(
    directory: JobDirectory, store: JobStore
) -> None:
    target = Target(known(time.time() - 100), directory, FakeBackend({"application_id": "a1"}))
    assert settle(target, None, store).state is State.PENDING
    row = store.get(JOB)
    assert row is not None
    assert row.handle == {"application_id": "a1"}


@pytest.mark.parametrize(
    ("age", "state"),
    [(1, State.SUBMITTING), (100, State.SUBMITTING), (1000, State.LOST)],
)
def test_a_submitter_that_died_leaves_a_job_that_is_never_submitted(
    directory: JobDirectory, store: JobStore, age: float, state: State
) -> None:
    target = Target(known(time.time() - age), directory, FakeBackend())
    record = settle(target, None, store)
    assert record.state is state
    if state is State.LOST:
        assert record.reason is EndReason.NEVER_SUBMITTED
        assert directory.record() is not None, "so that a late container does not run it"
