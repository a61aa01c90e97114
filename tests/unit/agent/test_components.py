"""The agent's pure parts: judgement, patience, segments, the record."""

from __future__ import annotations

import json
import os
import random
import re
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from submarine_runtime.agent.outputs.files import find_outputs, written_files
from submarine_runtime.agent.preparation.bundle import copy_writable
from submarine_runtime.agent.program import Ending
from submarine_runtime.agent.program.ending import ProgramFacts, determine_ending
from submarine_runtime.agent.shipping import LogShipper
from submarine_runtime.agent.shipping.log_shipper import (
    GROWING_INTERVAL,
    LARGEST_SEGMENT,
    MAX_FAILURES,
)
from submarine_runtime.agent.single_task.finalization import Finalization
from submarine_runtime.agent.single_task.single_task_agent import record_start_phases
from submarine_runtime.frameworks import setup
from submarine_runtime.network import PortUse, Reservation
from submarine_runtime.network.ports import port_states
from submarine_runtime.processes import read_process, related_processes
from submarine_runtime.protocol import (
    AgentConfig,
    EndReason,
    Failure,
    JobRecord,
    JobStore,
    Member,
    Phase,
    State,
    TaskRecord,
)
from submarine_runtime.record import MAX_EVENTS, Status, UnsavedFiles
from submarine_runtime.storage import (
    Appender,
    LocalStore,
    Scratch,
    StoreError,
    UnconfirmedError,
    application_id,
    claim,
    retry,
)
from tests.configurations import make_agent_config
from tests.waiting import until


def make_config(**changes: Any) -> AgentConfig:
    return make_agent_config(**{"job_id": "a-20261121-0a1b", "name": "a", **changes})


# --- phases


def test_localizing_begins_when_yarn_granted_the_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """YARN unpacks an archive before it brings the small files whose times the agent sees."""
    container = "container_e17_1795438692895_0007_01_000002"

    class ResourceManager(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = "1795438692895_0007"
            attempt = f"/apps/application_{name}/appattempts/appattempt_{name}_000001"
            assert self.path == f"/ws/v1/cluster{attempt}/containers"
            entry = {"containerId": container, "startedTime": int((began - 300) * 1000)}
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"container": [{"containerId": "x"}, entry]}).encode())

        def log_message(self, *_: object) -> None:
            pass

    began = time.time()
    monkeypatch.setenv("CONTAINER_ID", container)
    record = JobRecord("a-20261121-0a1b", "a", State.PENDING)
    record.phases = [Phase("upload", began - 330, began - 310), Phase("queue", began - 310)]
    status = Status(record)
    with HTTPServer(("127.0.0.1", 0), ResourceManager) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        scratch = Scratch(str(tmp_path), str(tmp_path), "worker-0")
        record_start_phases(status, scratch, began, [url], JobStore("local", str(tmp_path)))
        until(lambda: record.phases[1].end == record.phases[2].start < began - 299)
    assert [phase.name for phase in record.phases] == ["upload", "queue", "localizing", "start"]
    assert record.phases[1].end == pytest.approx(began - 300, abs=0.01)
    assert record.phases[2].end == began
    (tmp_path / "agent.json").touch()
    time.sleep(0.02)
    (tmp_path / "launch_container.sh").touch()
    monkeypatch.setenv("CONTAINER_ID", f"{container.rpartition('_')[0]}_000001")
    master = Status(JobRecord("a-20261121-0a1b", "a", State.PENDING))
    record_start_phases(master, Scratch(str(tmp_path), str(tmp_path), "worker-0"), began + 60)
    localizing, start_of_master, start = master.to_json()["phases"]
    assert (localizing["name"], start_of_master["name"]) == ("localizing", "master_start")
    assert localizing["start"] < localizing["end"] == start_of_master["start"] < began + 60
    assert start_of_master["end"] == start["start"] == began + 60
    status.localizing_since(began - 900)  # by a clock that is behind
    assert record.phases[2].start == record.phases[1].start == record.phases[1].end


# --- judgement


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (ProgramFacts(0), EndReason.SUCCEEDED),
        (ProgramFacts(0, stopped=EndReason.CANCELLED), EndReason.CANCELLED),
        (ProgramFacts(-15, stopped=EndReason.TIMED_OUT), EndReason.TIMED_OUT),
        (ProgramFacts(1, started=True), EndReason.PROGRAM_ERROR),
        (ProgramFacts(1, started=False), EndReason.LAUNCH_FAILED),
        (ProgramFacts(127, shell=True), EndReason.LAUNCH_FAILED),
        (ProgramFacts(127, started=True), EndReason.PROGRAM_ERROR),
        (ProgramFacts(-11), EndReason.KILLED_BY_SIGNAL),
        (ProgramFacts(139, shell=True), EndReason.KILLED_BY_SIGNAL),
        (ProgramFacts(139, started=True), EndReason.PROGRAM_ERROR),
        (ProgramFacts(134, shell=True), EndReason.KILLED_BY_SIGNAL),
        (ProgramFacts(192, shell=True), EndReason.KILLED_BY_SIGNAL),
        (ProgramFacts(193, shell=True), EndReason.PROGRAM_ERROR),
        (ProgramFacts(-6), EndReason.KILLED_BY_SIGNAL),
        (ProgramFacts(-6, kind="exit"), EndReason.KILLED_BY_SIGNAL),
        (ProgramFacts(-6, kind="error", failure=Failure("E", "")), EndReason.PROGRAM_ERROR),
        (ProgramFacts(-9, peak=10, limit=100), EndReason.KILLED_BY_SIGNAL),
        (ProgramFacts(-9, peak=95, limit=100), EndReason.OUT_OF_MEMORY),
        (ProgramFacts(137, shell=True, peak=95, limit=100), EndReason.OUT_OF_MEMORY),
        (ProgramFacts(-9, kernel_kills=1), EndReason.OUT_OF_MEMORY),
        (ProgramFacts(1, kind="memory"), EndReason.OUT_OF_MEMORY),
        (ProgramFacts(1, kind="import"), EndReason.IMPORT_ERROR),
        (ProgramFacts(1, kind="disk_full"), EndReason.DISK_FULL),
        (ProgramFacts(1, disk_full=True), EndReason.DISK_FULL),
        (ProgramFacts(1, kind="error", disk_full=True, started=True), EndReason.PROGRAM_ERROR),
        (ProgramFacts(1, shell=True, failure=Failure("ImportError", "x")), EndReason.IMPORT_ERROR),
        (ProgramFacts(1, shell=True, failure=Failure("MemoryError", "")), EndReason.OUT_OF_MEMORY),
    ],
)
def test_judgement(facts: ProgramFacts, reason: EndReason) -> None:
    assert determine_ending(facts).reason is reason


@given(
    st.integers(-64, 255), st.booleans(), st.sampled_from([None, True, False]), st.integers(0, 2)
)
def test_every_ending_has_a_state(code: int, shell: bool, started: bool | None, kills: int) -> None:
    ending = determine_ending(ProgramFacts(code, shell, started=started, kernel_kills=kills))
    assert ending.reason.meaning.state.ended
    assert (ending.reason is EndReason.SUCCEEDED) == (code == 0)


# --- patience and claims


class LossyStore(LocalStore):
    """A store whose replies are lost: the operation is done, and the caller gets an error."""

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
        retry(fail, time.monotonic() + 4, wait=pauses.append)
    assert attempts > 3
    assert all(pause <= 10 for pause in pauses)
    attempts = 0

    def refuse() -> None:
        nonlocal attempts
        attempts += 1
        raise StoreError("no")

    with pytest.raises(StoreError):
        retry(refuse, time.monotonic() + 60, wait=pauses.append)
    assert attempts == 1


def test_the_application_of_a_container() -> None:
    with_epoch = {"CONTAINER_ID": "container_e07_1700000000000_0012_01_000001"}
    without = {"CONTAINER_ID": "container_1700000000000_0012_01_000001"}
    assert application_id(with_epoch) == application_id(without) == "application_1700000000000_0012"
    assert application_id({}) is None
    assert application_id({"CONTAINER_ID": "odd"}) is None


# --- segments


@pytest.mark.slow
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


def test_what_comes_in_is_sent_before_its_segment_is_finished(tmp_path: Path) -> None:
    log, job = tmp_path / "log", tmp_path / "job"
    job.mkdir()
    store = LocalStore(str(job))
    shipper = LogShipper(store, "l", "stdout", str(log), 3600.0, 1000)
    growing = job / "l/stdout.000000000000.growing"
    log.write_bytes(b"one\n")
    shipper.advance()
    assert growing.read_bytes() == b"one\n"
    with log.open("ab") as file:
        file.write(b"two\n")
    shipper.advance()
    assert growing.read_bytes() == b"one\ntwo\n"
    assert (shipper.shipped, store.files) == (0, 0)
    with log.open("ab") as file:
        file.write(b"x" * 1000)
    shipper.advance()
    assert not growing.exists()
    assert (job / "l/stdout.000000000000").read_bytes() == log.read_bytes()
    with log.open("ab") as file:
        file.write(b"end\n")
    shipper.advance()
    # A growing file that was lost: the segment is published whole.
    (job / "l/stdout.000000001008.growing").unlink()
    with pytest.raises(StoreError):
        shipper.ship()
    shipper.note()
    shipper.ship_rest()
    names = sorted(path.name for path in (job / "l").iterdir())
    assert names == ["stdout.000000000000", "stdout.000000001008", "stdout.index"]
    assert b"".join(p.read_bytes() for p in sorted((job / "l").glob("*0*"))) == log.read_bytes()


def test_a_segment_that_is_sent_at_once_is_finished_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease of the open file costs the NameNode calls; fewer segments save them."""
    log, job = tmp_path / "log", tmp_path / "job"
    job.mkdir()
    now = [100.0]
    monkeypatch.setattr(
        "submarine_runtime.agent.shipping.log_shipper.time.monotonic", lambda: now[0]
    )
    shipper = LogShipper(LocalStore(str(job)), "l", "stdout", str(log), 10.0, 1000)
    log.write_bytes(b"one\n")
    now[0] += 10
    assert shipper.due()
    now[0] -= 1
    shipper.advance()
    now[0] += 10 * GROWING_INTERVAL - 10
    assert not shipper.due()
    now[0] += 1
    assert shipper.due()


class RefusingStore(LocalStore):
    """A gateway that takes no body of unknown length."""

    def appender(self, path: str) -> Appender:
        raise StoreError("no chunks here")


def test_segments_are_published_whole_where_no_file_may_grow(tmp_path: Path) -> None:
    log, job = tmp_path / "log", tmp_path / "job"
    job.mkdir()
    log.write_bytes(b"one\n")
    shipper = LogShipper(RefusingStore(str(job)), "l", "stdout", str(log), 0.0, 1)
    for _ in range(MAX_FAILURES):
        with pytest.raises(StoreError):
            shipper.advance()
    shipper.advance()
    assert (job / "l/stdout.000000000000").read_bytes() == b"one\n"


# --- the record


def make_status() -> Status:
    return Status(JobRecord("a", "a", State.PENDING, tasks=[TaskRecord("worker:0", "worker", 0)]))


class AwayForSeconds(LocalStore):
    """Does not answer for two seconds after the first publication."""

    def publish_exclusive(self, path: str, data: bytes) -> bool:
        self.first = getattr(self, "first", time.monotonic())
        if time.monotonic() - self.first < 2.0:
            raise StoreError("it does not answer", transient=True)
        return super().publish_exclusive(path, data)


@pytest.mark.slow
def test_a_memory_kill_is_recorded_after_a_short_outage(tmp_path: Path) -> None:
    """The child process that publishes the record has longer than the agent, which YARN kills."""
    status = make_status()
    status.event("state", state=State.STARTING)
    status.event("state", state=State.RUNNING)
    deadline = time.monotonic() + 0.5
    store = AwayForSeconds(str(tmp_path))
    closing = Finalization(
        make_config(), store, status, {}, "worker:0/e1-a1", lambda: deadline, time.sleep
    )
    ending = Ending(EndReason.OUT_OF_MEMORY, "It used 900 MiB of 512 MiB.")
    closing.publish_terminated(ending, record_first=True)
    record = json.loads((tmp_path / "record.json").read_text())
    assert (record["state"], record["reason"]) == ("FAILED", "out_of_memory")


@pytest.mark.slow
def test_a_wait_for_the_store_is_reported_with_the_time_left(tmp_path: Path) -> None:
    said: list[str] = []
    store = AwayForSeconds(str(tmp_path))
    store.on_wait = said.append
    end = time.monotonic() + 60
    assert retry(lambda: store.publish_exclusive("x", b""), end, longest=0.5, store=store)
    pattern = r"waiting for the file system of the job directory \((59|60) s left\): it does not"
    assert said[-1] == ""
    assert re.match(pattern, said[0])
    said.clear()

    def suspended() -> None:
        raise UnconfirmedError("the machine was suspended", True)

    with pytest.raises(UnconfirmedError):
        retry(suspended, time.monotonic() + 0.5, store=store)
    assert not said  # the file system was not asked


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
        status.add_missing("same sentence")
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
        assert set(related_processes(process.pid)) == {process.pid}
    finally:
        process.kill()
        process.wait()
    assert read_process(process.pid) is None


def test_files_added_to_localised_directories_are_listed_and_kept(tmp_path: Path) -> None:
    """As YARN leaves them: links to what it keeps for all tasks of a node."""
    cached, program = tmp_path / "filecache" / "data", tmp_path / "root" / "program"
    cached.mkdir(parents=True)
    program.mkdir(parents=True)
    (cached / "input.csv").write_text("1")
    (tmp_path / "root" / "hdfs-0").symlink_to(cached)
    for name in ("data", "mine"):
        (program / name).symlink_to("../hdfs-0")
    (program / "elsewhere").symlink_to(tmp_path)
    scratch = Scratch(str(tmp_path / "root"), str(tmp_path), "worker-0")
    assert copy_writable(scratch, ["mine", "absent"]) is None
    assert not (program / "mine").is_symlink()
    began = os.stat(program / "mine" / "input.csv").st_ctime
    time.sleep(0.02)
    (cached / "added.csv").write_text("22")
    (program / "mine" / "input.csv").write_text("333")
    unsaved = UnsavedFiles()
    kept = written_files(str(program), began, ["data/*"], "", unsaved)
    assert [(item.path, item.size) for item in kept] == [("files/data/added.csv", 2)]
    assert unsaved.files == [("mine/input.csv", 3)]
    assert (cached / "input.csv").read_text() == "1"


def test_a_writable_copy_of_a_read_only_file(tmp_path: Path) -> None:
    scratch = Scratch(str(tmp_path), str(tmp_path), "worker-0")
    (tmp_path / "program").mkdir()
    (tmp_path / "localized-0").write_text("text")
    (tmp_path / "localized-0").chmod(0o500)
    (tmp_path / "program" / "file").symlink_to("../localized-0")
    assert copy_writable(scratch, ["file"]) is None
    assert os.stat(tmp_path / "program" / "file").st_mode & 0o777 == 0o700
    assert os.stat(tmp_path / "localized-0").st_mode & 0o777 == 0o500
    (tmp_path / "program" / "gone").symlink_to("../nothing")
    ending = copy_writable(scratch, ["gone"])
    assert ending is not None
    assert ending.reason is EndReason.LAUNCH_FAILED


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


def test_the_use_of_a_port_is_noticed_while_it_lasts_and_after_it() -> None:
    ports = Reservation(1)
    ports.hold()
    port = ports.ports[0]
    told: list[str] = []
    use = PortUse("127.0.0.1", port, False, lambda: told.append("program"))
    helped = PortUse("127.0.0.1", port, True, lambda: told.append("helper"))
    for one in (use, helped):
        one.check(last=True)
    assert not told, "a port that is only reserved is not in use"
    server = socket.create_server(("127.0.0.1", port))
    use.check(last=True)
    helped.check(last=True)
    assert told == ["program"], "where a helper listens, only a connection counts"
    client = socket.create_connection(("127.0.0.1", port))
    accepted = server.accept()[0]
    client.close()
    accepted.close()
    server.close()
    late = PortUse("127.0.0.1", port, False, lambda: told.append("late"))
    for one in (helped, late):
        one.check(last=True)
        one.check(last=True)
    assert told == ["program", "helper", "late"]
    ports.release()


def test_sockets_of_the_other_protocol_family_and_odd_tables_are_read(tmp_path: Path) -> None:
    table = tmp_path / "tcp6"
    table.write_text(
        "  sl  local_address                         remote_address   st tx_queue rx_queue\n"
        "   0: 00000000000000000000000000000000:1F90 0000:0000 0A 0:0 00:0\n"
        "   1: 0100007F:01F9 0100007F:1F91 01 0:0\n"
        "   2: 0100000A:9C40 0200000A:01FA 06 0:0\n"
        "   3: 0000000000000000FFFF00000100000A:9C40 0000000000000000FFFF00000200000A:01FB 06 0\n"
        "odd\n"
    )
    assert port_states("10.0.0.1", 8080, [str(table), str(tmp_path / "none")]) == {"0A"}
    assert port_states("10.0.0.1", 505, [str(table)]) == {"01"}
    for port in (506, 507):
        assert port_states("10.0.0.2", port, [str(table)]) == {"06"}, "closed by the client"
        assert port_states("10.0.0.1", port, [str(table)]) == set()
    assert port_states("10.0.0.1", 80, [str(table)]) == set()
