"""Folding, closing and settling: what is said of a job whose agent cannot be asked."""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from submarine_jobs.access import JobDirectory
from submarine_jobs.backends import Backend, Handle, Observation, Plan, Stage, Submission
from submarine_jobs.backends.yarn.cluster.diagnostics import end_reason
from submarine_jobs.model import JobSpec, Role
from submarine_jobs.storage import LocalStorage, Storage
from submarine_jobs.tracking import IndexEntry, JobStore, Target, resolve_record
from submarine_jobs.tracking.closing import close_orphan
from submarine_jobs.tracking.event_folding import base_record, fold
from submarine_jobs.tracking.observation import LAST_WORDS_OF_CHILD
from submarine_runtime.protocol import (
    TRANSITIONS,
    EndReason,
    Event,
    JobRecord,
    Phase,
    State,
    TaskRecord,
    layout,
    may_follow,
)

JOB = "digits-20261120-7f3a"
DISTRIBUTED = JobSpec("digits", "fake", roles=(Role("worker", 2),))
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


def known(created: float, handle: Handle | None = None) -> IndexEntry:
    return IndexEntry(
        JOB, "digits", "fake", "default", "file:///x", created, State.SUBMITTING, handle
    )


def test_every_reason_has_a_meaning_that_ends() -> None:
    assert all(one.meaning.state.ended and one.meaning.sentence for one in EndReason)
    assert EndReason.SUCCEEDED.meaning.state is State.SUCCEEDED


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


class Granted(FakeBackend):
    """A backend whose jobs have all their containers."""

    def localizing(self, handle: Handle) -> tuple[str, float | None]:
        return "localizing on nm", 20.0


def test_a_distributed_job_whose_master_starts_is_not_in_the_queue(
    directory: JobDirectory, store: JobStore
) -> None:
    for containers, name in ((3, "master_start"), (2, "queue")):
        handle = {"application_id": "a", "containers": containers}
        phases = [Phase("upload", 5.0, 8.0), Phase("queue", 8.0)]
        row = replace(known(5.0, handle), state=State.PENDING)
        row = replace(row, record=JobRecord(JOB, "digits", State.PENDING, phases=phases))
        seen = Observation(Stage.WAITING, pending="waits", started=11.0, handle=handle)
        record = resolve_record(Target(row, directory, FakeBackend()), seen, store)
        assert [p.name for p in record.phases if p.end is None] == [name]


def test_a_job_whose_container_localizes_is_starting_and_not_queued(
    directory: JobDirectory, store: JobStore
) -> None:
    row = replace(known(5.0, {"application_id": "a"}), state=State.PENDING)
    phases = [Phase("upload", 5.0, 8.0), Phase("queue", 8.0)]
    row = replace(row, record=JobRecord(JOB, "digits", State.PENDING, phases=phases))
    seen = Observation(Stage.STARTING, pending="localizing on nm", started=11.0)
    record = resolve_record(Target(row, directory, FakeBackend()), seen, store)
    assert (record.state, record.pending) == (State.STARTING, "localizing on nm")
    assert record.phases == [phases[0], Phase("queue", 8.0, 11.0), Phase("localizing", 11.0)]
    kept = store.get(JOB)
    assert kept is not None
    target = Target(kept, directory, FakeBackend())
    assert resolve_record(target, seen, store).phases == record.phases
    # The program's container has registered with the cluster; nothing more is known of it.
    record = resolve_record(target, Observation(Stage.RUNNING), store)
    assert (record.state, record.pending, record.detail) == (State.RUNNING, "", "")


def test_a_granted_container_is_not_a_running_program(
    directory: JobDirectory, store: JobStore
) -> None:
    seen_as = ((2, State.STARTING, "localizing on nm"), (3, State.PENDING, ""))
    for containers, state, words in seen_as:
        row = replace(known(5.0, {"containers": containers}), state=State.PENDING)
        record = resolve_record(
            Target(row, directory, Granted()), Observation(Stage.RUNNING), store
        )
        assert (record.state, record.pending) == (state, words)
    said = TaskRecord("worker:0", "worker", 0, host="nm")
    row = replace(row, record=JobRecord(JOB, "digits", State.STARTING, tasks=[said]))
    target = Target(row, directory, Granted())
    starting = Event(0, 9.0, "state", "coordinator-1", State.STARTING)
    directory.publish_events("coordinator-1", 0, [starting])
    assert resolve_record(target, Observation(Stage.RUNNING), store).state is State.STARTING
    running = Event(1, 10.0, "state", "coordinator-1", State.RUNNING)
    directory.publish_events("coordinator-1", 1, [running])
    assert resolve_record(target, Observation(Stage.RUNNING), store).state is State.RUNNING


@pytest.fixture
def full(directory: JobDirectory, monkeypatch: pytest.MonkeyPatch) -> JobDirectory:
    """The job directory when nothing more goes into it."""

    def refuse(*_: object, **__: object) -> str:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    for name in ("replace_file", "write_temporary"):
        monkeypatch.setattr(f"submarine_jobs.storage.local.{name}", refuse)
    return directory


def test_a_job_whose_directory_is_full_ends_and_says_so(
    full: JobDirectory, store: JobStore
) -> None:
    target = Target(known(5.0, {"application_id": "a"}), full, FakeBackend())
    record = resolve_record(
        target, Observation(Stage.ENDED, EndReason.AGENT_LOST, "exit code 1"), store
    )
    assert (record.state, record.reason) == (State.FAILED, EndReason.JOB_DIRECTORY_FULL)
    assert "record.json" in record.detail
    assert os.strerror(errno.EDQUOT) in record.detail
    assert any("only on this machine" in sentence for sentence in record.missing)
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


def test_a_gap_in_the_claims_does_not_hide_later_masters(directory: JobDirectory) -> None:
    directory.publish_json_exclusive(layout.SPEC, json.loads(DISTRIBUTED.to_bytes()))
    for attempt in (1, 3):
        directory.publish_json_exclusive(layout.claim_name(attempt), {})
    record = close_orphan(directory, Observation(Stage.ENDED, EndReason.MASTER_LOST, "Why."))
    assert record.detail == "The application master died 3 times. Why."


def test_settle_keeps_the_jobs_own_record(directory: JobDirectory, store: JobStore) -> None:
    own = JobRecord(JOB, "digits", State.SUCCEEDED, reason=EndReason.SUCCEEDED)
    directory.publish_json_exclusive(layout.RECORD, own.to_json())
    target = Target(known(5.0, {"application_id": "a"}), directory, FakeBackend())
    ended = Observation(Stage.ENDED, EndReason.NODE_LOST)
    assert resolve_record(target, ended, store).state is State.SUCCEEDED
    row = store.get(JOB)
    assert row is not None
    assert row.final


def test_an_agent_that_has_ended_is_not_waited_for_as_long(
    directory: JobDirectory, store: JobStore
) -> None:
    """Its record may come from a child process; an agent that listens may need more time."""
    target = Target(known(5.0, {"application_id": "a"}), directory, FakeBackend())
    ended = Observation(Stage.ENDED, EndReason.MASTER_LOST, finished=time.time())
    assert not resolve_record(target, ended, store, agent_ended=True).state.ended
    ended = replace(ended, finished=time.time() - LAST_WORDS_OF_CHILD)
    assert not resolve_record(target, ended, store).state.ended
    assert resolve_record(target, ended, store, agent_ended=True).reason is EndReason.MASTER_LOST


def test_an_agent_that_was_killed_with_its_master_is_not_waited_for(
    directory: JobDirectory, store: JobStore
) -> None:
    target = Target(known(5.0, {"application_id": "a"}), directory, FakeBackend())
    said = "AM Container for appattempt_1_1_000001 exited with  exitCode: 137\nKilled"
    reason, detail = end_reason("FAILED", "FAILED", said)
    ended = Observation(Stage.ENDED, reason, detail, finished=time.time())
    assert not resolve_record(target, ended, store).state.ended
    assert resolve_record(target, ended, store, agent_ended=True).reason is EndReason.MASTER_LOST


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
    assert not resolve_record(
        target, Observation(Stage.ENDED, EndReason.AGENT_LOST), store
    ).state.ended
    assert directory.record() is None
    row = store.get(JOB)
    assert row is not None
    assert row.handle == {"application_id": "first"}
    ended = Observation(Stage.ENDED, EndReason.NODE_LOST)
    assert resolve_record(replace(target, entry=row), ended, store).reason is EndReason.NODE_LOST


def test_a_forgotten_job_without_result_is_lost_and_may_come_back(
    directory: JobDirectory, store: JobStore
) -> None:
    target = Target(known(5.0, {"application_id": "a"}), directory, FakeBackend())
    assert resolve_record(target, Observation(Stage.UNKNOWN), store).state is State.LOST
    assert directory.record() is None
    row = store.get(JOB)
    assert row is not None
    assert not row.final
    again = resolve_record(replace(target, entry=row), Observation(Stage.RUNNING), store)
    assert again.state is State.RUNNING


def test_a_submit_whose_reply_was_lost_is_found_by_its_tag(
    directory: JobDirectory, store: JobStore
) -> None:
    target = Target(known(time.time() - 100), directory, FakeBackend({"application_id": "a1"}))
    aged(directory, 100)
    assert resolve_record(target, None, store).state is State.PENDING
    row = store.get(JOB)
    assert row is not None
    assert row.handle == {"application_id": "a1"}


def aged(directory: JobDirectory, seconds: float) -> None:
    """Let the intent of a job be published ``seconds`` ago."""
    os.utime(directory.file(layout.INTENT), (time.time() - seconds,) * 2)


@pytest.mark.parametrize(
    ("age", "state"),
    [(1, State.SUBMITTING), (100, State.SUBMITTING), (1000, State.LOST)],
)
def test_job_without_sign_of_its_submitter_is_closed_after_the_grace(
    directory: JobDirectory, store: JobStore, age: float, state: State
) -> None:
    aged(directory, age)
    target = Target(known(time.time() - 2000), directory, FakeBackend())
    record = resolve_record(target, None, store)
    assert record.state is state
    if state is State.LOST:
        assert record.reason is EndReason.NEVER_SUBMITTED
        assert directory.record() is not None
        claim = directory.read_json(layout.CLAIM)
        assert claim[layout.CLOSER]


@pytest.mark.parametrize("skew", [-900.0, 900.0])
def test_clock_of_this_machine_does_not_age_an_intent(
    directory: JobDirectory, store: JobStore, skew: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Target(known(time.time() - 2000), directory, FakeBackend())
    aged(directory, 100)
    now = time.time()
    monkeypatch.setattr("submarine_jobs.tracking.observation.time.time", lambda: now + skew)
    assert resolve_record(target, None, store).state is State.SUBMITTING
    os.utime(directory.file(layout.INTENT), (now - 300,) * 2)
    assert resolve_record(target, None, store).state is State.LOST


@pytest.mark.parametrize("claim", ["claim.json", "claim-2.json", "claim-3.json"])
@pytest.mark.parametrize("application", ["application_1_0001", None])
def test_job_that_a_container_has_claimed_gets_no_record(
    directory: JobDirectory, store: JobStore, claim: str, application: str | None
) -> None:
    aged(directory, 1000)
    directory.publish_json_exclusive(claim, {"application_id": application, "host": "n1"})
    target = Target(known(time.time() - 2000), directory, FakeBackend())
    record = resolve_record(target, None, store)
    assert directory.record() is None
    assert record.state is (State.LOST if application and claim == layout.CLAIM else State.PENDING)


def test_second_closer_completes_the_first(directory: JobDirectory, store: JobStore) -> None:
    aged(directory, 1000)
    directory.publish_json_exclusive(layout.CLAIM, {layout.CLOSER: True, "host": "elsewhere"})
    resolve_record(Target(known(time.time() - 2000), directory, FakeBackend()), None, store)
    record = directory.record()
    assert record is not None
    assert record.reason is EndReason.NEVER_SUBMITTED


def test_job_whose_directory_is_gone_is_lost(directory: JobDirectory, store: JobStore) -> None:
    shutil.rmtree(directory.path)
    store.put(known(time.time() - 2000))
    record = resolve_record(
        Target(known(time.time() - 2000), directory, FakeBackend()), None, store
    )
    assert store.get(JOB) is None
    assert (record.state, record.reason) == (State.LOST, EndReason.NEVER_SUBMITTED)
    assert "no longer contains a job" in record.detail
    assert not os.path.exists(directory.path)
