"""Cancel, kills, lost claims: an agent's bad days, done for real."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from submarine_jobs.access.credentials import JobSecret
from submarine_runtime.processes import family
from submarine_runtime.protocol.agent_config import JobStore
from submarine_runtime.protocol.reasons import EndReason
from submarine_runtime.protocol.states import State
from tests.local.agent.agent_rig import AGENT_PYTHON, Rig
from tests.waiting import until

SLEEPER = "import os, time\nprint(os.getpid(), flush=True)\nwhile True: time.sleep(0.1)\n"
#: Ends when it is let go.
HELD = SLEEPER.replace("True", "not os.path.exists('go')")
STUBBORN = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SLEEPER


def release(rig: Rig) -> None:
    (rig.scratch() / "program/go").touch()


def running(pid: int) -> bool:
    return bool(family(pid))


def program_pid(rig: Rig) -> int:
    rig.wait_for_log(b"\n")
    return int(rig.log("stdout").split()[0])


@pytest.mark.parametrize("command", [None, "python3 main.py & wait"])
def test_the_program_dies_with_a_killed_agent(rig: Rig, command: str | None) -> None:
    agent = rig.start(STUBBORN, command=command)
    pid = program_pid(rig)
    agent.send_signal(signal.SIGKILL)
    until(lambda: not running(pid))
    assert not (rig.job_dir / "record.json").exists()


def test_an_agent_whose_application_master_dies_ends_the_program(rig: Rig) -> None:
    """YARN does not always signal what a killed application master leaves behind."""
    words = [AGENT_PYTHON, "-I", str(rig.zip), "agent", "--directory", str(rig.prepare(SLEEPER))]
    master = subprocess.Popen(
        ["sh", "-c", '"$@" & wait', "sh", *words],
        env={**os.environ, "CONTAINER_ID": "container_1_0001_01_000001"},
        start_new_session=True,
    )
    try:
        until((rig.scratch() / "worker-0.stdout.log").exists)
        pid = program_pid(rig)
        master.kill()
        master.wait()
        until(lambda: not running(pid))
        until((rig.job_dir / "record.json").exists)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(master.pid, signal.SIGKILL)
    record = rig.record()
    assert (record.state, record.reason) == (State.FAILED, EndReason.MASTER_LOST)
    assert record.detail == "The application master died."


def test_sigterm_ends_the_program_and_leaves_the_record(tmp_path: Path) -> None:
    took: list[float] = []
    # YARN shoots what is left 250 ms after SIGTERM; a busy machine may be slower now and then.
    while not took or (took[-1] >= 0.25 and len(took) < 10):
        (tmp_path / str(len(took))).mkdir()
        rig = Rig(tmp_path / str(len(took)))
        try:
            took.append(seconds_to_the_record(rig))
        finally:
            rig.stop_all()
    assert took[-1] < 0.25, took


def seconds_to_the_record(rig: Rig) -> float:
    """How long after SIGTERM the record was there, which is right."""
    agent = rig.start(STUBBORN)
    pid = program_pid(rig)
    sent = time.monotonic()
    agent.send_signal(signal.SIGTERM)
    until((rig.job_dir / "record.json").exists)
    took = time.monotonic() - sent
    assert rig.finish(agent) == 1
    until(lambda: not running(pid))
    record = rig.record()
    assert (record.state, record.reason) == (State.CANCELLED, EndReason.KILLED_ON_CLUSTER)
    assert rig.shipped("stdout") == rig.log("stdout")
    return took


@pytest.mark.parametrize("after", ["", "del x\n", "os._exit(os.kill(os.getpid(), 15))\n"])
def test_sigterm_because_of_memory_is_told_as_such(rig: Rig, after: str) -> None:
    # YARN sees it before the agent's next look, and says nothing but SIGTERM.
    stroke = (
        "import os, signal\n"
        "agent = os.getppid()\n"
        "os.kill(agent, signal.SIGSTOP)\n"
        "x = b'x' * (200 << 20)\n"
        "os.kill(agent, signal.SIGTERM)\n"
        "if not os.fork():\n"  # the program itself may be gone by then
        "    del x\n    import time\n    time.sleep(0.3)\n"
        "    os.kill(agent, signal.SIGCONT)\n    os._exit(0)\n" + after
    )
    agent = rig.start(stroke + SLEEPER, memory=100)
    rig.finish(agent)
    record = rig.record()
    assert (record.state, record.reason) == (State.FAILED, EndReason.OUT_OF_MEMORY)
    assert "of 100 MiB" in record.detail


def test_sigterm_after_a_request_to_cancel_is_a_cancel(rig: Rig) -> None:
    agent = rig.start(STUBBORN)
    program_pid(rig)
    wish = rig.job_dir / ".tmp-cancel.json"
    wish.write_text('{"by": "ada", "why": "typo"}')
    wish.rename(rig.job_dir / "cancel.json")
    agent.send_signal(signal.SIGTERM)
    rig.finish(agent)
    assert rig.record().reason is EndReason.CANCELLED
    assert rig.record().detail == "Cancelled by ada: typo."


def test_cancel_before_the_program(rig: Rig) -> None:
    (rig.job_dir / "cancel.json").write_text('{"by": "ada", "why": ""}')
    assert rig.finish(rig.start("print(1)")) == 1
    record = rig.record()
    assert (record.state, record.reason) == (State.CANCELLED, EndReason.CANCELLED)
    assert not (rig.scratch() / "worker-0.stdout.log").exists()
    states = [event.state for event in record.events if event.kind == "state"]
    assert states == [State.STARTING, State.CANCELLED]


def test_cancel_while_running_saves_what_there_is(rig: Rig) -> None:
    source = (
        "import os, signal, sys, time\n"
        "def stop(*_):\n"
        "    open(os.environ['SUBMARINE_CHECKPOINT_DIR'] + '/last', 'w').write('1')\n"
        "    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, stop)\n" + SLEEPER
    )
    agent = rig.start(source)
    program_pid(rig)
    client = rig.client()
    client.cancel("ada", "wrong data")
    client.cancel("ada", "again")
    rig.finish(agent)
    record = rig.record()
    assert record.state is State.CANCELLED
    assert record.detail == "Cancelled by ada: wrong data."
    assert [output.path for output in record.outputs] == ["checkpoints/last"]
    assert rig.shipped("stdout") == rig.log("stdout")
    assert sum(event.kind == "cancel_requested" for event in record.events) == 1


def test_a_stubborn_program_is_killed_after_the_grace(rig: Rig) -> None:
    agent = rig.start(STUBBORN, kill_grace=0.5)
    pid = program_pid(rig)
    began = time.monotonic()
    rig.client().cancel("ada", "")
    rig.finish(agent)
    assert time.monotonic() - began > 0.4
    assert rig.record().signal == signal.SIGKILL
    assert not running(pid)


def test_cancel_by_file_reaches_an_agent_that_ships(rig: Rig) -> None:
    source = "import time\nwhile True:\n    print('x', flush=True)\n    time.sleep(0.1)\n"
    agent = rig.start(source, ship_interval=0.5)
    rig.client()
    (rig.job_dir / "cancel.json").write_text('{"by": "ada", "why": "far away"}')
    rig.finish(agent)
    assert rig.record().detail == "Cancelled by ada: far away."


def test_a_job_directory_that_is_deleted_ends_the_agent(rig: Rig) -> None:
    agent = rig.start(HELD)
    program_pid(rig)
    rig.client()
    rig.job_dir.rename(rig.job_dir.with_name("away"))
    release(rig)
    assert rig.finish(agent) == 1
    assert "is not there" in rig.errors


def test_of_two_agents_one_runs(rig: Rig) -> None:
    program = "import os\nopen(os.environ['RAN'], 'a').write('x')\n"
    ran = rig.root / "ran"
    scratches = [rig.prepare(program, name=f"s{n}", env={"RAN": str(ran)}) for n in range(4)]
    agents = [rig.launch(scratch) for scratch in scratches]
    codes = []
    for agent in agents:
        codes.append(rig.finish(agent))
        if agent.returncode:
            assert "another container has claimed" in rig.errors
    assert sorted(codes) == [0, 1, 1, 1]
    assert ran.read_text() == "x"
    claim = json.loads((rig.job_dir / "claim.json").read_text())
    assert claim["pid"] == agents[codes.index(0)].pid
    assert claim["intent"] == "1"


@pytest.mark.parametrize("left", ["record", "claim of a closer"])
def test_agent_does_not_start_the_program_of_a_closed_job(rig: Rig, left: str) -> None:
    ran = rig.root / "ran"
    if left == "record":
        (rig.job_dir / "record.json").write_text("{}")
    else:
        (rig.job_dir / "claim.json").write_text(json.dumps({"closer": True, "host": "laptop"}))
    program = "import os\nopen(os.environ['RAN'], 'a').write('x')\n"
    assert rig.finish(rig.start(program, env={"RAN": str(ran)})) == 1
    assert "has ended, or another container has claimed it" in rig.errors
    assert not ran.exists()


def test_a_record_that_somebody_else_has_written_stands(rig: Rig) -> None:
    agent = rig.start(HELD)
    program_pid(rig)
    (rig.job_dir / "record.json").write_text('{"job_id": "x"}')
    release(rig)
    assert rig.finish(agent) == 1
    assert (rig.job_dir / "record.json").read_text() == '{"job_id": "x"}'
    assert "closed by another process" in rig.errors


def test_orders_that_make_no_sense(rig: Rig) -> None:
    scratch = rig.prepare("print(1)")
    (scratch / "agent.json").write_text("{}")
    assert rig.finish(rig.launch(scratch)) == 2
    assert "cannot read the configuration" in rig.errors
    other = rig.prepare("print(1)", store=JobStore("tape", "/x"), name="other")
    assert rig.finish(rig.launch(other)) == 1
    assert "this agent supports local and webhdfs" in rig.errors


def test_no_secret_is_in_any_process_list_or_file_for_others(rig: Rig) -> None:
    agent = rig.start(SLEEPER)
    pid = program_pid(rig)
    secret = JobSecret.from_bytes((rig.scratch() / "secret.json").read_bytes())
    for process in (agent.pid, pid):
        for name in ("cmdline", "environ"):
            assert secret.token.encode() not in Path(f"/proc/{process}/{name}").read_bytes()
    rig.client().cancel("", "")
    rig.finish(agent)
    for path in rig.job_dir.rglob("*"):
        assert path.is_dir() or secret.token.encode() not in path.read_bytes()


def test_many_threads_of_one_agent_do_not_pile_up(rig: Rig) -> None:
    agent = rig.start(SLEEPER)
    program_pid(rig)
    client = rig.client()
    threads = [threading.Thread(target=lambda: _try(client.status)) for _ in range(60)]
    for thread in threads:
        thread.start()
    most = 0
    for _ in range(50):
        most = max(most, len(os.listdir(f"/proc/{agent.pid}/task")))
        time.sleep(0.01)
    for thread in threads:
        thread.join()
    assert most <= 3 + 32
    assert client.status().state is State.RUNNING
    client.cancel("", "")
    rig.finish(agent)


def _try(action: object) -> None:
    try:
        action()  # type: ignore[operator]
    except Exception:
        return


def test_sigterm_before_the_claim_runs_nothing(rig: Rig) -> None:
    for delay in (0.02, 0.04, 0.06, 0.08, 0.1, 0.12):
        ran = rig.root / "ran"
        agent = rig.start(f"open({str(ran)!r}, 'a').write('x'); import time; time.sleep(60)")
        time.sleep(delay)
        agent.send_signal(signal.SIGTERM)
        agent.communicate(timeout=60)
        assert agent.returncode in (1, -signal.SIGTERM)
        until(lambda: not _left(rig))
        for name in ("claim.json", "record.json", "live.json"):
            (rig.job_dir / name).unlink(missing_ok=True)


def _left(rig: Rig) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(entry / "cwd").startswith(str(rig.root)):
                found.append(entry.name)
        except OSError:
            continue
    return found


def test_a_job_goes_on_when_its_guard_is_killed(rig: Rig) -> None:
    source = (
        "import os, time\nprint(os.getppid(), flush=True)\n"
        "while not os.path.exists('go'): time.sleep(0.01)\nos.fork()\ntime.sleep(2.5)\n"
    )
    agent = rig.start(source)
    rig.wait_for_log(b"\n")
    with open(f"/proc/{agent.pid}/task/{agent.pid}/children") as file:
        children = [int(pid) for pid in file.read().split()]
    guards = [p for p in children if b"/bin/sh" in Path(f"/proc/{p}/cmdline").read_bytes()]
    assert len(guards) == 1
    os.kill(guards[0], signal.SIGKILL)
    (rig.scratch() / "program/go").touch()
    assert rig.finish(agent) == 0
    assert rig.record().state is State.SUCCEEDED
