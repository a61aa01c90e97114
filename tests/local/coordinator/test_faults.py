"""Cancel, kills, lost claims: an agent's bad days, done for real."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from submarine_jobs.access import JobSecret
from submarine_runtime.processes import related_processes
from submarine_runtime.protocol import EndReason, JobStore, State
from tests.local.agent.agent_processes import AGENT_PYTHON, AgentProcesses
from tests.waiting import until

SLEEPER = "import os, time\nprint(os.getpid(), flush=True)\nwhile True: time.sleep(0.1)\n"
#: Ends when it is let go.
HELD = SLEEPER.replace("True", "not os.path.exists('go')")
STUBBORN = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SLEEPER


def release(agents: AgentProcesses) -> None:
    (agents.scratch() / "program/go").touch()


def running(pid: int) -> bool:
    return bool(related_processes(pid))


def program_pid(agents: AgentProcesses) -> int:
    agents.wait_for_log(b"\n")
    return int(agents.log("stdout").split()[0])


@pytest.mark.parametrize("command", [None, "python3 main.py & wait"])
def test_the_program_dies_with_a_killed_agent(agents: AgentProcesses, command: str | None) -> None:
    agent = agents.start(STUBBORN, command=command)
    pid = program_pid(agents)
    agent.send_signal(signal.SIGKILL)
    until(lambda: not running(pid))
    assert not (agents.job_dir / "record.json").exists()


@pytest.mark.parametrize(
    ("signalled", "cluster", "reason"),
    [
        # YARN does not always signal what a killed application master leaves behind.
        (False, None, EndReason.MASTER_LOST),
        (True, None, EndReason.MASTER_LOST),
        (True, "RUNNING", EndReason.MASTER_LOST),
        (True, "KILLED", EndReason.KILLED_ON_CLUSTER),
    ],
)
def test_an_agent_whose_application_master_dies_ends_the_program(
    agents: AgentProcesses, signalled: bool, cluster: str | None, reason: EndReason
) -> None:
    """The state of the application at the ResourceManager tells a killed master from a kill."""
    server = resourcemanager(cluster) if cluster else None
    urls = [f"http://127.0.0.1:{server.server_port}"] if server else []
    scratch = agents.prepare(SLEEPER, resourcemanagers=urls)
    words = [AGENT_PYTHON, "-I", str(agents.zip), "agent", "--directory", str(scratch)]
    master = subprocess.Popen(
        ["sh", "-c", '"$@" & wait', "sh", *words],
        env={**os.environ, "CONTAINER_ID": "container_1_0001_01_000001"},
        start_new_session=True,
    )
    try:
        until((agents.scratch() / "worker-0.stdout.log").exists)
        pid = program_pid(agents)
        agent = json.loads((agents.job_dir / "claim.json").read_text())["pid"]
        master.kill()
        master.wait()
        if signalled:
            os.kill(agent, signal.SIGTERM)
        until(lambda: not running(pid))
        until((agents.job_dir / "record.json").exists)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(master.pid, signal.SIGKILL)
        if server is not None:
            server.shutdown()
            server.server_close()
    record = agents.record()
    assert (record.state, record.reason) == (reason.meaning.state, reason)
    if reason is EndReason.MASTER_LOST:
        assert record.detail == "The application master died."


def resourcemanager(state: str) -> HTTPServer:
    """A ResourceManager that reports this state of each application."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps({"app": {"id": "a", "state": state}}).encode())

        def log_message(self, *_arguments: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def test_sigterm_ends_the_program_and_leaves_the_record(tmp_path: Path) -> None:
    took: list[float] = []
    # YARN shoots what is left 250 ms after SIGTERM; a busy machine may be slower now and then.
    while not took or (took[-1] >= 0.25 and len(took) < 10):
        (tmp_path / str(len(took))).mkdir()
        agents = AgentProcesses(tmp_path / str(len(took)))
        try:
            took.append(seconds_to_the_record(agents))
        finally:
            agents.stop_all()
    assert took[-1] < 0.25, took


def seconds_to_the_record(agents: AgentProcesses) -> float:
    """How long after SIGTERM the record was there, which is right."""
    agent = agents.start(STUBBORN)
    pid = program_pid(agents)
    sent = time.monotonic()
    agent.send_signal(signal.SIGTERM)
    until((agents.job_dir / "record.json").exists)
    took = time.monotonic() - sent
    assert agents.finish(agent) == 1
    until(lambda: not running(pid))
    record = agents.record()
    assert (record.state, record.reason) == (State.CANCELLED, EndReason.KILLED_ON_CLUSTER)
    assert agents.shipped("stdout") == agents.log("stdout")
    return took


@pytest.mark.parametrize("after", ["", "del x\n", "os._exit(os.kill(os.getpid(), 15))\n"])
def test_sigterm_because_of_memory_is_reported_as_out_of_memory(
    agents: AgentProcesses, after: str
) -> None:
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
    agent = agents.start(stroke + SLEEPER, memory=100)
    agents.finish(agent)
    record = agents.record()
    assert (record.state, record.reason) == (State.FAILED, EndReason.OUT_OF_MEMORY)
    assert "of 100 MiB" in record.detail


def test_sigterm_after_a_request_to_cancel_is_a_cancel(agents: AgentProcesses) -> None:
    agent = agents.start(STUBBORN)
    program_pid(agents)
    wish = agents.job_dir / ".tmp-cancel.json"
    wish.write_text('{"by": "ada", "why": "typo"}')
    wish.rename(agents.job_dir / "cancel.json")
    agent.send_signal(signal.SIGTERM)
    agents.finish(agent)
    assert agents.record().reason is EndReason.CANCELLED
    assert agents.record().detail == "Cancelled by ada: typo."


def test_cancel_before_the_program(agents: AgentProcesses) -> None:
    (agents.job_dir / "cancel.json").write_text('{"by": "ada", "why": ""}')
    assert agents.finish(agents.start("print(1)")) == 1
    record = agents.record()
    assert (record.state, record.reason) == (State.CANCELLED, EndReason.CANCELLED)
    assert not (agents.scratch() / "worker-0.stdout.log").exists()
    states = [event.state for event in record.events if event.kind == "state"]
    assert states == [State.STARTING, State.CANCELLED]


def test_cancel_while_running_saves_what_there_is(agents: AgentProcesses) -> None:
    source = (
        "import os, signal, sys, time\n"
        "def stop(*_):\n"
        "    open(os.environ['SUBMARINE_CHECKPOINT_DIR'] + '/last', 'w').write('1')\n"
        "    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, stop)\n" + SLEEPER
    )
    agent = agents.start(source)
    program_pid(agents)
    client = agents.client()
    client.cancel("ada", "wrong data")
    client.cancel("ada", "again")
    agents.finish(agent)
    record = agents.record()
    assert record.state is State.CANCELLED
    assert record.detail == "Cancelled by ada: wrong data."
    assert [output.path for output in record.outputs] == ["checkpoints/last"]
    assert agents.shipped("stdout") == agents.log("stdout")
    assert sum(event.kind == "cancel_requested" for event in record.events) == 1


def test_a_stubborn_program_is_killed_after_the_grace(agents: AgentProcesses) -> None:
    agent = agents.start(STUBBORN, kill_grace=0.5)
    pid = program_pid(agents)
    began = time.monotonic()
    agents.client().cancel("ada", "")
    agents.finish(agent)
    assert time.monotonic() - began > 0.4
    assert agents.record().signal == signal.SIGKILL
    assert not running(pid)


def test_cancel_by_file_reaches_an_agent_that_ships(agents: AgentProcesses) -> None:
    source = "import time\nwhile True:\n    print('x', flush=True)\n    time.sleep(0.1)\n"
    agent = agents.start(source, ship_interval=0.5)
    agents.client()
    (agents.job_dir / "cancel.json").write_text('{"by": "ada", "why": "far away"}')
    agents.finish(agent)
    assert agents.record().detail == "Cancelled by ada: far away."


def test_a_job_directory_that_is_deleted_ends_the_agent(agents: AgentProcesses) -> None:
    agent = agents.start(HELD)
    program_pid(agents)
    agents.client()
    agents.job_dir.rename(agents.job_dir.with_name("away"))
    release(agents)
    assert agents.finish(agent) == 1
    assert "is not there" in agents.errors


def test_of_two_agents_one_runs(agents: AgentProcesses) -> None:
    program = "import os\nopen(os.environ['RAN'], 'a').write('x')\n"
    ran = agents.root / "ran"
    scratches = [agents.prepare(program, name=f"s{n}", env={"RAN": str(ran)}) for n in range(4)]
    launched = [agents.launch(scratch) for scratch in scratches]
    codes = []
    for agent in launched:
        codes.append(agents.finish(agent))
        if agent.returncode:
            assert "another container has claimed" in agents.errors
    assert sorted(codes) == [0, 1, 1, 1]
    assert ran.read_text() == "x"
    claim = json.loads((agents.job_dir / "claim.json").read_text())
    assert claim["pid"] == launched[codes.index(0)].pid
    assert claim["intent"] == "1"


@pytest.mark.parametrize("left", ["record", "claim of a closer"])
def test_agent_does_not_start_the_program_of_a_closed_job(
    agents: AgentProcesses, left: str
) -> None:
    ran = agents.root / "ran"
    if left == "record":
        (agents.job_dir / "record.json").write_text("{}")
    else:
        (agents.job_dir / "claim.json").write_text(json.dumps({"closer": True, "host": "laptop"}))
    program = "import os\nopen(os.environ['RAN'], 'a').write('x')\n"
    assert agents.finish(agents.start(program, env={"RAN": str(ran)})) == 1
    assert "has ended, or another container has claimed it" in agents.errors
    assert not ran.exists()


def test_the_record_of_another_writer_is_kept(agents: AgentProcesses) -> None:
    agent = agents.start(HELD)
    program_pid(agents)
    (agents.job_dir / "record.json").write_text('{"job_id": "x"}')
    release(agents)
    assert agents.finish(agent) == 1
    assert (agents.job_dir / "record.json").read_text() == '{"job_id": "x"}'
    assert "closed by another process" in agents.errors


def test_orders_that_make_no_sense(agents: AgentProcesses) -> None:
    scratch = agents.prepare("print(1)")
    (scratch / "agent.json").write_text("{}")
    assert agents.finish(agents.launch(scratch)) == 2
    assert "cannot read the configuration" in agents.errors
    other = agents.prepare("print(1)", store=JobStore("tape", "/x"), name="other")
    assert agents.finish(agents.launch(other)) == 1
    assert "this agent supports local and webhdfs" in agents.errors


def test_no_secret_is_in_any_process_list_or_file_for_others(agents: AgentProcesses) -> None:
    agent = agents.start(SLEEPER)
    pid = program_pid(agents)
    secret = JobSecret.from_bytes((agents.scratch() / "secret.json").read_bytes())
    for process in (agent.pid, pid):
        for name in ("cmdline", "environ"):
            assert secret.token.encode() not in Path(f"/proc/{process}/{name}").read_bytes()
    agents.client().cancel("", "")
    agents.finish(agent)
    for path in agents.job_dir.rglob("*"):
        assert path.is_dir() or secret.token.encode() not in path.read_bytes()


def test_many_threads_of_one_agent_do_not_pile_up(agents: AgentProcesses) -> None:
    agent = agents.start(SLEEPER)
    program_pid(agents)
    client = agents.client()
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
    agents.finish(agent)


def _try(action: object) -> None:
    try:
        action()  # type: ignore[operator]
    except Exception:
        return


def test_sigterm_before_the_claim_runs_nothing(agents: AgentProcesses) -> None:
    for delay in (0.02, 0.04, 0.06, 0.08, 0.1, 0.12):
        ran = agents.root / "ran"
        agent = agents.start(f"open({str(ran)!r}, 'a').write('x'); import time; time.sleep(60)")
        time.sleep(delay)
        agent.send_signal(signal.SIGTERM)
        agent.communicate(timeout=60)
        assert agent.returncode in (1, -signal.SIGTERM)
        until(lambda: not _left(agents))
        for name in ("claim.json", "record.json", "live.json"):
            (agents.job_dir / name).unlink(missing_ok=True)


def _left(agents: AgentProcesses) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(entry / "cwd").startswith(str(agents.root)):
                found.append(entry.name)
        except OSError:
            continue
    return found


def test_a_job_goes_on_when_its_guard_is_killed(agents: AgentProcesses) -> None:
    source = (
        "import os, time\nprint(os.getppid(), flush=True)\n"
        "while not os.path.exists('go'): time.sleep(0.01)\nos.fork()\ntime.sleep(2.5)\n"
    )
    agent = agents.start(source)
    agents.wait_for_log(b"\n")
    with open(f"/proc/{agent.pid}/task/{agent.pid}/children") as file:
        children = [int(pid) for pid in file.read().split()]
    guards = [p for p in children if b"/bin/sh" in Path(f"/proc/{p}/cmdline").read_bytes()]
    assert len(guards) == 1
    os.kill(guards[0], signal.SIGKILL)
    (agents.scratch() / "program/go").touch()
    assert agents.finish(agent) == 0
    assert agents.record().state is State.SUCCEEDED
