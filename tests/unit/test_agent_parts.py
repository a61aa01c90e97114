"""The agent's pure parts: judgement, patience, segments, the record."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submarine_runtime.agent.claim import application_id, claim
from submarine_runtime.agent.ending import Facts, judge
from submarine_runtime.agent.outputs import find_outputs
from submarine_runtime.agent.processes import family, read_process
from submarine_runtime.agent.publisher import LARGEST_SEGMENT, LogShipper
from submarine_runtime.agent.status import MAX_EVENTS, Status
from submarine_runtime.agent.store import StoreError, patiently
from submarine_runtime.agent.store_local import LocalStore
from submarine_runtime.frameworks import setup
from submarine_runtime.protocol.failure import Failure
from submarine_runtime.protocol.launch import AgentConfig, JobStore
from submarine_runtime.protocol.link import Member
from submarine_runtime.protocol.reasons import EndReason, meaning_of
from submarine_runtime.protocol.record import JobRecord, TaskRecord
from submarine_runtime.protocol.states import State


def make_config(**changes: object) -> AgentConfig:
    values: dict[str, object] = {
        "job_id": "a-20261121-0a1b",
        "name": "a",
        "user": "ada",
        "backend": "local",
        "intent": "1",
        "created": 0.0,
        "store": JobStore("local", "/x"),
        "job_dir": "file:///x",
    }
    return AgentConfig(**{**values, **changes})  # type: ignore[arg-type]


# --- judgement


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (Facts(0), EndReason.SUCCEEDED),
        (Facts(0, stopped=EndReason.CANCELLED), EndReason.CANCELLED),
        (Facts(-15, stopped=EndReason.TIMED_OUT), EndReason.TIMED_OUT),
        (Facts(1, started=True), EndReason.PROGRAM_ERROR),
        (Facts(1, started=False), EndReason.LAUNCH_FAILED),
        (Facts(127, shell=True), EndReason.LAUNCH_FAILED),
        (Facts(127, started=True), EndReason.PROGRAM_ERROR),
        (Facts(-11), EndReason.KILLED_BY_SIGNAL),
        (Facts(139, shell=True), EndReason.KILLED_BY_SIGNAL),
        (Facts(139, started=True), EndReason.PROGRAM_ERROR),
        (Facts(-9, peak=10, limit=100), EndReason.KILLED_BY_SIGNAL),
        (Facts(-9, peak=95, limit=100), EndReason.OUT_OF_MEMORY),
        (Facts(137, shell=True, peak=95, limit=100), EndReason.OUT_OF_MEMORY),
        (Facts(-9, kernel_kills=1), EndReason.OUT_OF_MEMORY),
        (Facts(1, kind="memory"), EndReason.OUT_OF_MEMORY),
        (Facts(1, kind="import"), EndReason.IMPORT_ERROR),
        (Facts(1, kind="disk_full"), EndReason.DISK_FULL),
        (Facts(1, disk_full=True), EndReason.DISK_FULL),
        (Facts(1, kind="error", disk_full=True, started=True), EndReason.PROGRAM_ERROR),
        (Facts(1, shell=True, failure=Failure("ImportError", "x")), EndReason.IMPORT_ERROR),
        (Facts(1, shell=True, failure=Failure("MemoryError", "")), EndReason.OUT_OF_MEMORY),
    ],
)
def test_judgement(facts: Facts, reason: EndReason) -> None:
    assert judge(facts).reason is reason


@given(
    st.integers(-64, 255), st.booleans(), st.sampled_from([None, True, False]), st.integers(0, 2)
)
def test_every_ending_has_a_state(code: int, shell: bool, started: bool | None, kills: int) -> None:
    ending = judge(Facts(code, shell, started=started, kernel_kills=kills))
    assert meaning_of(ending.reason).state.ended
    assert (ending.reason is EndReason.SUCCEEDED) == (code == 0)


# --- patience and claims


class LossyStore(LocalStore):
    """A store whose replies are lost: what was asked for is done, and nobody hears of it."""

    lost = 0

    def publish_exclusive(self, path: str, data: bytes) -> bool:
        done = super().publish_exclusive(path, data)
        if self.lost:
            self.lost -= 1
            raise StoreError("the reply was lost", transient=True)
        return done


@pytest.mark.parametrize("lost", [0, 1, 3])
def test_a_claim_whose_reply_is_lost_is_recognised(tmp_path: Path, lost: int) -> None:
    store = LossyStore(str(tmp_path))
    store.lost = lost
    assert claim(store, make_config(), {}, lambda _: None)
    assert not claim(LocalStore(str(tmp_path)), make_config(), {}, lambda _: None)


def test_patience_ends() -> None:
    pauses: list[float] = []
    attempts = 0

    def fail() -> None:
        nonlocal attempts
        attempts += 1
        raise StoreError("away", transient=True)

    with pytest.raises(StoreError):
        patiently(fail, time.monotonic() + 4, wait=pauses.append)
    assert attempts > 3
    assert all(pause <= 10 for pause in pauses)
    attempts = 0

    def refuse() -> None:
        nonlocal attempts
        attempts += 1
        raise StoreError("no")

    with pytest.raises(StoreError):
        patiently(refuse, time.monotonic() + 60, wait=pauses.append)
    assert attempts == 1


def test_the_application_of_a_container() -> None:
    with_epoch = {"CONTAINER_ID": "container_e07_1700000000000_0012_01_000001"}
    without = {"CONTAINER_ID": "container_1700000000000_0012_01_000001"}
    assert application_id(with_epoch) == application_id(without) == "application_1700000000000_0012"
    assert application_id({}) is None
    assert application_id({"CONTAINER_ID": "odd"}) is None


# --- segments


def test_segments_join_and_stay_few(tmp_path: Path) -> None:
    log, job = tmp_path / "log", tmp_path / "job"
    job.mkdir()
    shipper = LogShipper(LocalStore(str(job)), "l", "stdout", str(log), 3600.0, 1000)
    assert not shipper.due()
    rng = random.Random(1)
    whole = b""
    with log.open("wb", buffering=0) as file:
        while len(whole) < 2_000_000:
            data = rng.randbytes(rng.randint(1, 3000))
            file.write(data)
            whole += data
            shipper.note()
            if shipper.due():
                shipper.ship()
    shipper.ship_rest()
    pieces = sorted((job / "l").glob("stdout.0*"))
    assert b"".join(path.read_bytes() for path in pieces) == whole
    # A 32nd of what is there each: some 32 pieces of a kilobyte, then 32 ln(2000 / 32).
    assert len(pieces) < 220
    assert max(path.stat().st_size for path in pieces) <= LARGEST_SEGMENT
    index = (job / "l/stdout.index").read_text().split()
    assert int(index[-2]) == len(whole)


# --- the record


def make_status() -> Status:
    return Status(JobRecord("a", "a", State.PENDING, tasks=[TaskRecord("worker:0", "worker", 0)]))


def test_the_record_refuses_impossible_changes() -> None:
    status = make_status()
    status.event("state", state=State.STARTING)
    with pytest.raises(ValueError, match="may not go"):
        status.event("state", state=State.SUCCEEDED)
    assert status.state is State.STARTING


def test_events_are_bounded_but_states_are_kept() -> None:
    status = make_status()
    for _ in range(MAX_EVENTS * 2):
        status.event("warning", "again")
    status.event("state", state=State.STARTING)
    events = status.events_after(0)
    assert len(events) == MAX_EVENTS + 1
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert events[-1]["state"] == "STARTING"
    for _ in range(500):
        status.miss("same sentence")
    assert status.to_json()["missing"] == ["same sentence"]


def test_only_a_real_change_is_one() -> None:
    status = make_status()
    status.set_task(memory_now=3.0)
    version = status.version
    status.set_task(memory_now=3.0)
    assert status.version == version
    assert status.to_json(events=False)["events"] == []
    assert json.dumps(status.to_json())


# --- processes, outputs, frameworks


def test_a_process_with_an_odd_name(tmp_path: Path) -> None:
    odd = tmp_path / "a) R 1 (b c"
    odd.symlink_to("/bin/sleep")
    process = subprocess.Popen([str(odd), "30"], start_new_session=True)
    try:
        time.sleep(0.1)
        found = read_process(process.pid)
        assert found is not None
        assert (found.parent, found.session) == (os.getpid(), process.pid)
        assert set(family(process.pid)) == {process.pid}
    finally:
        process.kill()
        process.wait()
    assert read_process(process.pid) is None


def test_outputs_that_are_not_there(tmp_path: Path) -> None:
    assert list(find_outputs({"model": str(tmp_path / "absent")})) == []


def test_frameworks() -> None:
    one = Member("worker:0", "worker", 0, "a", "10.0.0.1", (1,))
    other = Member("worker:1", "worker", 1, "b", "10.0.0.2", (2,))
    assert setup(make_config(framework="tensorflow"), one, [one]).env == {}
    assert setup(make_config(framework="any"), one, [one]).env == {}
    variables = setup(make_config(framework="tensorflow", index=1), other, [one, other]).env
    cluster = {"worker": ["10.0.0.1:1", "10.0.0.2:2"]}
    expected = {"cluster": cluster, "task": {"type": "worker", "index": 1}}
    assert json.loads(variables["TF_CONFIG"]) == expected
    with pytest.raises(ValueError, match="tensorflow"):
        setup(make_config(framework="abacus"), one, [one])


def test_the_agents_usage_message(tmp_path: Path) -> None:
    for arguments in ([], ["agent"], ["abacus"]):
        done = subprocess.run(
            [sys.executable, "-m", "submarine_runtime", *arguments], capture_output=True, text=True
        )
        assert done.returncode == 2
        assert done.stderr.startswith("usage: ")
