"""Distributed jobs through a real coordinator and real agents: gang, faults, ends, viewers."""

from __future__ import annotations

import base64
import json
import os
import resource
import signal
import socket
import subprocess
import threading
import time
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import psutil
import pytest

from submarine_jobs.access import tls_context
from submarine_runtime.protocol import EndReason, State
from tests.configurations import make_role
from tests.local.agent.agent_processes import AGENT_PYTHON
from tests.local.coordinator.gang_processes import GangProcesses, task_of
from tests.waiting import until

WORKERS = [make_role("worker", 2)]
FULL = [
    make_role("worker", 2),
    make_role("ps", 1, kind="untracked"),
    make_role("evaluator", 1),
]
#: Counts to a number, a step a checkpoint, and goes on where the newest checkpoint ends.
COUNTER = """
import os, sys, time
place = os.environ["SUBMARINE_CHECKPOINT_DIR"]
role, index = os.environ["SUBMARINE_ROLE"], os.environ["SUBMARINE_INDEX"]
if role == "ps":
    time.sleep(600)
saved = sorted(os.listdir(place)) if os.path.isdir(place) else []
begin = int(saved[-1][5:]) if saved else 0
print("begin", begin, flush=True)
for step in range(begin + 1, {steps} + 1):
    time.sleep(0.1)
    while step == {steps} and {hold!r} and not os.path.exists({hold!r}):
        time.sleep(0.05)
    # A snapshot is taken of files that rest.
    if step % 30 == 0 and index == "0" and role == "worker":
        with open(os.path.join(place, ".new"), "w") as file:
            file.write("x")
        os.rename(os.path.join(place, ".new"), os.path.join(place, "step-%04d" % step))
    print("step", step, flush=True)
if index == "0" and role == "worker":
    with open(os.path.join(os.environ["SUBMARINE_MODEL_DIR"], "model"), "w") as file:
        file.write(str(step))
"""


def counter(steps: int, hold: Path | str = "") -> str:
    """The counting program. No task does the last step before the file ``hold`` exists."""
    return COUNTER.format(steps=steps, hold=str(hold))


@pytest.fixture
def go(tmp_path: Path) -> Path:
    """The file that lets counting programs end: for when the fault is done."""
    return tmp_path / "go"


def connect(gang: GangProcesses) -> HTTPSConnection:
    live = json.loads((gang.job_dir / "live.json").read_text())
    return HTTPSConnection(live["host"], live["port"], timeout=20, context=tls_context(gang.secret))


def ask(
    gang: GangProcesses, method: str, path: str, body: Any = None, token: str | None = None
) -> tuple[int, bytes]:
    until((gang.job_dir / "live.json").exists)
    connection = connect(gang)
    headers = {"Authorization": f"Bearer {token or gang.secret.token}"}
    try:
        data = None if body is None else json.dumps(body).encode()
        connection.request(method, path, body=data, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_a_job_of_three_roles_runs_to_its_end(gang: GangProcesses) -> None:
    record = gang.run(counter(8), FULL)
    assert (record.state, record.missing) == (State.SUCCEEDED, [])
    for task in ("worker:0", "worker:1", "evaluator:0"):
        assert gang.log(task).splitlines() == ["begin 0", *(f"step {n}" for n in range(1, 9))]
        assert task_of(record, task).exit_code == 0
        assert record.logs[f"{task}/e1-a1/stdout"] == len(gang.log(task))
    assert (gang.job_dir / "model/model").read_text() == "8"
    assert "model/model" in [output.path for output in record.outputs]
    assert [e["seq"] for e in gang.shipped_events()] == [e.seq for e in record.events]
    assert [p.name for p in record.phases] == ["localizing", "start", "run", "save"]
    assert record.resources["used"]["tasks"] == 4
    until(lambda: not gang.processes("agent"))


@pytest.mark.parametrize("victim", ["program", "agent"])
@pytest.mark.parametrize("task", ["worker:1", pytest.param("ps:0", marks=pytest.mark.full)])
def test_a_killed_task_restarts_the_gang_from_its_checkpoint(
    gang: GangProcesses, go: Path, victim: str, task: str
) -> None:
    gang.prepare(counter(75, go), FULL)
    gang.start()
    gang.wait_for_state("RUNNING")
    gang.wait_for_event("snapshot", task="worker:0")
    os.kill(gang.program(task) if victim == "program" else gang.agent(task).pid, signal.SIGKILL)
    go.touch()
    record = gang.wait()
    assert record.state is State.SUCCEEDED, gang.story()
    assert record.epoch == 2
    assert all(t.restarts == (1 if t.task == task else 0) for t in record.tasks)
    lines = gang.log("worker:0", "e2-a1").splitlines()
    assert int(lines[0].split()[1]) > 0, "it went on from nothing"
    assert lines[-1] == "step 75"
    assert (gang.job_dir / "model/model").read_text() == "75"
    kinds = [event.kind for event in record.events]
    assert kinds.count("restart") == 1
    assert not [e.detail for e in record.events if e.detail.startswith("Cancelled")]
    stopped = [e for e in record.events if e.detail == "Stopped: the gang restarts."]
    assert {e.task for e in stopped} >= {"worker:0", "evaluator:0"}
    assert [e.state for e in record.events if e.state][-4:] == [
        State.RESTARTING,
        State.RUNNING,
        State.FINISHING,
        State.SUCCEEDED,
    ]


def test_one_task_is_restarted_in_place_where_the_framework_allows_it(
    gang: GangProcesses, go: Path
) -> None:
    gang.prepare(counter(30, go), WORKERS, restart_in_place=True)
    gang.start()
    gang.wait_for_state("RUNNING")
    os.kill(gang.program("worker:1"), signal.SIGKILL)
    go.touch()
    record = gang.wait()
    assert (record.state, record.epoch) == (State.SUCCEEDED, 1)
    assert task_of(record, "worker:1").attempt == 2
    assert gang.log("worker:0").splitlines()[-1] == "step 30"


def test_a_task_that_restarts_beside_a_lost_chief_receives_the_new_address(
    gang: GangProcesses, go: Path
) -> None:
    program = f"""
import os, time
print(os.environ["MASTER_PORT"], flush=True)
while not os.path.exists({str(go)!r}):
    time.sleep(0.05)
"""
    gang.prepare(program, WORKERS, {"framework": "any"}, restart_in_place=True)
    gang.start()
    gang.wait_for_state("RUNNING")
    other = gang.program("worker:1")
    gang.agent("worker:0").kill()
    os.kill(other, signal.SIGKILL)
    for task in ("worker:0", "worker:1"):
        gang.wait_for_event("task", "running", 2, task)
    go.touch()
    record = gang.wait()
    assert (record.state, record.epoch) == (State.SUCCEEDED, 1), gang.story()
    ports = {gang.log(task, "e1-a2") for task in ("worker:0", "worker:1")}
    assert len(ports) == 1, f"worker:1 has the old port of worker:0: {ports}"
    assert ports != {gang.log("worker:0")}


def test_a_killed_coordinator_comes_back_without_an_effect_on_tasks(
    gang: GangProcesses, go: Path
) -> None:
    gang.prepare(counter(40, go), FULL)
    gang.start()
    gang.wait_for_state("RUNNING")
    port = json.loads((gang.job_dir / "live.json").read_text())["port"]
    for _ in range(2):
        coordinator = until(lambda: gang.processes("coordinator"))[0]
        os.kill(coordinator.pid, signal.SIGKILL)
        coordinator.wait(60)
        until(lambda: gang.processes("coordinator"))
        time.sleep(1.0)
    go.touch()
    record = gang.wait()
    assert record.state is State.SUCCEEDED, gang.story()
    assert json.loads((gang.job_dir / "live.json").read_text())["port"] == port
    assert record.epoch == 1
    assert all(task.restarts == 0 and task.attempt == 1 for task in record.tasks)
    assert gang.log("worker:1").splitlines()[-1] == "step 40"
    assert [event.seq for event in record.events] == list(range(len(record.events)))
    assert [e["seq"] for e in gang.shipped_events()] == [e.seq for e in record.events]
    assert (gang.job_dir / "model/model").read_text() == "40"


def test_a_coordinator_that_hangs_is_replaced_without_an_effect_on_tasks(
    gang: GangProcesses, go: Path
) -> None:
    gang.prepare(counter(50, go), FULL, lost_after=25.0)
    gang.start()
    gang.wait_for_state("RUNNING")
    hung = until(lambda: gang.processes("coordinator"))[0]
    hung.send_signal(signal.SIGSTOP)
    hung.wait(90)  # its supervisor has killed it
    go.touch()
    record = gang.wait()
    assert record.state is State.SUCCEEDED, gang.story()
    assert all(task.restarts == 0 and task.attempt == 1 for task in record.tasks)
    assert gang.log("worker:1").splitlines()[-1] == "step 50"


def test_a_hanging_agent_is_lost_and_its_program_has_ended_before_the_next_starts(
    gang: GangProcesses, go: Path
) -> None:
    gang.prepare(counter(30, go), WORKERS, restart_in_place=True, lost_after=5.0)
    gang.start()
    gang.wait_for_state("RUNNING")
    program = gang.program("worker:1")
    os.kill(gang.agent("worker:1").pid, signal.SIGSTOP)
    gang.wait_for_event("restart", "No heartbeat")
    until(lambda: not Path(f"/proc/{program}/cwd").exists())
    go.touch()
    record = gang.wait()
    assert record.state is State.SUCCEEDED, gang.story()
    assert task_of(record, "worker:1").restarts == 1


CANCEL = {"by": "ada", "why": "enough"}


def write_cancel_request(gang: GangProcesses) -> None:
    """Write the cancel request of a client; the coordinator never reads half of it."""
    (gang.job_dir / ".new").write_text(json.dumps(CANCEL))
    (gang.job_dir / ".new").rename(gang.job_dir / "cancel.json")


@pytest.mark.parametrize(
    ("way", "moment"),
    [
        *(("port", moment) for moment in ("before", "waiting", "running", "restarting")),
        ("file", "before"),
        ("file", "running"),
        pytest.param("file", "waiting", marks=pytest.mark.full),
        pytest.param("file", "restarting", marks=pytest.mark.full),
    ],
)
def test_cancel_at_any_time(gang: GangProcesses, moment: str, way: str) -> None:
    roles = WORKERS
    if moment == "waiting":
        # A role without files never gets its container.
        roles = [*WORKERS, make_role("late", 1)]
    gang.prepare(counter(400), roles)
    if moment == "waiting":
        os.chmod(gang.scratch / "late", 0)
        (gang.scratch / "late").rename(gang.scratch / "late.away")
        (gang.scratch / "late").write_text("not a directory")

    def cancel() -> None:
        if way == "file":
            write_cancel_request(gang)
        else:
            assert ask(gang, "POST", "/v1/cancel", CANCEL)[0] == 202

    if moment == "before":
        write_cancel_request(gang)
    gang.start()
    if moment != "before":
        if moment in ("running", "restarting"):
            gang.wait_for_state("RUNNING")
        if moment == "waiting":
            until(lambda: len(gang.processes("agent")) == 2)
        if moment == "restarting":
            os.kill(gang.agent("worker:1").pid, signal.SIGKILL)
            gang.wait_for_state("RESTARTING")
        cancel()
    record = gang.wait()
    assert record.state is State.CANCELLED, gang.story()
    assert record.detail == "Cancelled by ada: enough."
    until(lambda: not gang.processes("agent"))
    if moment == "before":
        assert not list(gang.scratch.glob("tasks/*"))


def test_nothing_starts_before_all_have_their_containers(gang: GangProcesses) -> None:
    roles = [*WORKERS, make_role("late", 1)]
    gang.prepare(counter(3), roles, gang_timeout=10.0, gang_retries=0)
    (gang.scratch / "late").rename(gang.scratch / "late.away")
    (gang.scratch / "late").write_text("not a directory")
    gang.start()
    until(lambda: len(gang.processes("agent")) == 2)
    status: dict[str, Any] = {}

    def waits() -> bool:
        status.update(json.loads(ask(gang, "GET", "/v1/status")[1]))
        return "2 of 3 containers" in status["pending"]

    until(waits)
    assert status["state"] == "PENDING"
    record = gang.wait()
    assert record.reason is EndReason.GANG_TIMED_OUT
    assert record.detail.startswith("2 of 3 containers, waiting 10 s for 1 with")
    assert not list(gang.job_dir.glob("logs/*/*/stdout*"))


def test_a_minimum_of_workers_is_enough_in_order_of_roles(gang: GangProcesses) -> None:
    roles = [
        make_role("worker", 3, least=2, after=["ps"]),
        make_role("ps", 1, kind="untracked"),
    ]
    gang.prepare(counter(3), roles)
    # The third worker gets no directory: a file has its name.
    (gang.scratch / "tasks").mkdir()
    (gang.scratch / "tasks/worker-2.1").mkdir()
    (gang.scratch / "tasks/worker-2.1").chmod(0o500)
    blocker = gang.scratch / "tasks/worker-2.1/seat.json"
    (gang.scratch / "tasks/worker-2.1").chmod(0o700)
    sleeper = subprocess.Popen(["sleep", "60"])
    started = Path(f"/proc/{sleeper.pid}/stat").read_text().rpartition(")")[2].split()[19]
    blocker.write_text(json.dumps({"pid": sleeper.pid, "started": started}))
    try:
        gang.start()
        record = gang.wait()
    finally:
        sleeper.kill()
        sleeper.wait()
    assert record.state is State.SUCCEEDED, gang.story()
    assert gang.log("worker:1").splitlines()[-1] == "step 3"
    assert not (gang.job_dir / "logs/worker-2").exists()
    starts = [e.task for e in record.events if e.kind == "task" and e.detail == "running"]
    assert starts[0] == "ps:0"


def test_an_import_error_in_every_worker_is_not_tried_again(gang: GangProcesses) -> None:
    record = gang.run("import there_is_no_such_module", WORKERS)
    assert record.reason is EndReason.IMPORT_ERROR
    assert "there_is_no_such_module" in record.detail
    assert record.failure is not None
    assert record.failure.type == "ModuleNotFoundError"
    assert record.epoch == 1


ENDS = """
import os, sys, time
index, scratch = os.environ["SUBMARINE_INDEX"], {scratch!r}
def wait_for(name):
    while not os.path.exists(os.path.join(scratch, name)):
        time.sleep(0.02)
def mark(name):
    open(os.path.join(scratch, name), "w").close()
mark("started-" + index)
wait_for("started-0"), wait_for("started-1")
"""


@pytest.mark.parametrize(
    ("body", "reason", "detail"),
    [
        ("sys.exit(1)", EndReason.PROGRAM_ERROR, "Exit code 1."),
        (
            "if index == '1':\n    mark('raised')\n    raise ValueError('bad')\n"
            "wait_for('raised')\ntime.sleep(0.5)\nos.abort()",
            EndReason.PROGRAM_ERROR,
            "worker:1: ValueError: bad",
        ),
    ],
    ids=["exit", "abort"],
)
def test_an_error_without_progress_ends_the_job_after_its_first_epoch(
    gang: GangProcesses, tmp_path: Path, body: str, reason: EndReason, detail: str
) -> None:
    record = gang.run(ENDS.format(scratch=str(tmp_path)) + body, WORKERS, policy="all")
    assert (record.state, record.reason, record.epoch) == (State.FAILED, reason, 1), gang.story()
    assert detail in record.detail
    assert record.detail.endswith("Not restarted: the job has made no progress since it started.")
    told = [event for event in record.events if event.kind == "failure"]
    assert "A restart is decided when the other tasks have ended" in told[0].detail
    (failed,) = [event for event in record.events if event.kind == "task_failed"]
    assert failed.data["rule"] == "no_progress"


AFTER_CHECKPOINT = """
place, epoch = os.environ["SUBMARINE_CHECKPOINT_DIR"], os.environ["SUBMARINE_EPOCH"]
if index == "0":
    print(sorted(os.listdir(place)), flush=True)
    name = {name!r}
    if {every!r} or epoch == "1":
        with open(os.path.join(place, name), "w") as file:
            file.write(epoch)
    mark("written-" + epoch)
    wait_for("raised-" + epoch)
    time.sleep(0.5)
    os.abort()
wait_for("written-" + epoch)
mark("raised-" + epoch)
raise ValueError("bad")
"""


@pytest.mark.parametrize(
    ("name", "every", "rules", "end"),
    [
        ("ckpt-7", False, ["progress", "same_cause"], "the same error again"),
        ("checkpoint.pt", True, [*["snapshot"] * 3, "limit"], "the limit of 3 restarts is reached"),
    ],
    ids=["step", "snapshot"],
)
def test_an_error_after_a_later_checkpoint_restarts_the_job(
    gang: GangProcesses, tmp_path: Path, name: str, every: bool, rules: list[str], end: str
) -> None:
    body = AFTER_CHECKPOINT.format(name=name, every=every)
    record = gang.run(ENDS.format(scratch=str(tmp_path)) + body, WORKERS, policy="all")
    assert (record.reason, record.epoch) == (EndReason.PROGRAM_ERROR, len(rules)), gang.story()
    assert end in record.detail
    told = [event for event in record.events if event.kind in ("restart", "task_failed")]
    assert [event.data["rule"] for event in told] == rules
    assert gang.log("worker:0", f"e{len(rules)}-a1") == f"['{name}']\n"


def test_a_node_lost_before_the_first_checkpoint_restarts_the_job(
    gang: GangProcesses, go: Path
) -> None:
    program = f"""
import os, time
while not os.path.exists({str(go)!r}):
    time.sleep(0.05)
"""
    gang.prepare(program, WORKERS, policy="all")
    gang.start()
    gang.wait_for_state("RUNNING")
    gang.agent("worker:1").kill()
    gang.wait_for_event("restart")
    go.touch()
    record = gang.wait()
    assert (record.state, record.epoch) == (State.SUCCEEDED, 2), gang.story()


def test_an_evaluator_that_fails_restarts_alone(
    gang: GangProcesses, tmp_path: Path, go: Path
) -> None:
    program = f"""
import os, time
if os.environ["SUBMARINE_ROLE"] == "evaluator" and os.environ["SUBMARINE_ATTEMPT"] != "3":
    raise ValueError("bad")
while not os.path.exists({str(go)!r}):
    time.sleep(0.05)
"""
    gang.prepare(program, FULL, policy="chief")
    gang.start()
    gang.wait_for_event("task", "running", 3, "evaluator:0")
    go.touch()
    record = gang.wait()
    assert (record.state, record.epoch) == (State.SUCCEEDED, 1), gang.story()
    assert [t.restarts for t in record.tasks] == [0, 0, 0, 2]
    assert gang.log("evaluator:0", "e1-a2", "stderr").endswith("ValueError: bad\n")


def test_an_evaluator_reads_the_checkpoints_of_the_chief(gang: GangProcesses, go: Path) -> None:
    program = f"""
import os, sys, time
place, role = os.environ["SUBMARINE_CHECKPOINT_DIR"], os.environ["SUBMARINE_ROLE"]
def write(name, text):
    with open(os.path.join(place, ".new"), "w") as file:
        file.write(text)
    os.rename(os.path.join(place, ".new"), os.path.join(place, name))
def saved():
    try:
        with open(os.path.join(place, "checkpoint")) as file:
            return file.read().split('"')[1]
    except OSError:
        return ""
if role == "worker":
    for step in (1, 2):
        write("ckpt-%d.index" % step, "weights %d" % step)
        write("checkpoint", 'model_checkpoint_path: "ckpt-%d"' % step)
        if step == 2:
            os.unlink(os.path.join(place, "ckpt-1.index"))
        while not os.path.exists({str(go)!r} + str(step)):
            time.sleep(0.05)
else:
    write("scores", "mine")
    for step in (1, 2):
        while saved() != "ckpt-%d" % step:
            time.sleep(0.01)
        with open(os.path.join(place, saved() + ".index")) as file:
            print(file.read(), flush=True)
        if step == 1:
            open({str(go)!r} + "1", "w").close()
    while os.path.exists(os.path.join(place, "ckpt-1.index")):
        time.sleep(0.05)
    print(sorted(os.listdir(place)), flush=True)
    open({str(go)!r} + "2", "w").close()
"""
    roles = [make_role("worker", 1), make_role("evaluator", 1)]
    record = gang.run(program, roles, policy="all")
    assert record.state is State.SUCCEEDED, gang.story()
    said = ["weights 1", "weights 2", "['checkpoint', 'ckpt-2.index', 'scores']"]
    assert gang.log("evaluator:0").splitlines() == said
    kept = [output.path for output in record.outputs if "evaluator" in output.path]
    assert kept == ["tasks/evaluator-0/checkpoints/scores"]
    assert not [event.detail for event in record.events if event.kind == "warning"]


def test_too_many_faults_end_the_job_with_the_last_ones_reason(gang: GangProcesses) -> None:
    program = "import os, sys\nsys.exit(7 * int(os.environ['SUBMARINE_INDEX']))"
    record = gang.run(program, WORKERS, policy="all", max_restarts=1)
    assert record.state is State.FAILED
    assert (record.reason, record.exit_code) == (EndReason.PROGRAM_ERROR, 7)
    assert record.detail.startswith("worker:1: ")
    assert record.epoch == 2


@pytest.mark.parametrize(("policy", "state"), [("any", "SUCCEEDED"), ("all", "FAILED")])
def test_policies(gang: GangProcesses, policy: str, state: str) -> None:
    program = "import os, sys, time\ntime.sleep(0.5)\nsys.exit(int(os.environ['SUBMARINE_INDEX']))"
    record = gang.run(program, WORKERS, policy=policy, max_restarts=0)
    assert record.state == state


@pytest.mark.parametrize("request_written", [False, True])
def test_told_to_end_from_outside_it_leaves_a_record(
    gang: GangProcesses, request_written: bool
) -> None:
    gang.prepare(counter(600), WORKERS)
    gang.start()
    gang.wait_for_state("RUNNING")
    assert gang.supervisor is not None
    if request_written:
        write_cancel_request(gang)
    gang.supervisor.send_signal(signal.SIGTERM)
    until((gang.job_dir / "record.json").exists)
    record = gang.wait()
    reason = EndReason.CANCELLED if request_written else EndReason.KILLED_ON_CLUSTER
    assert (record.state, record.reason) == (State.CANCELLED, reason)
    if request_written:
        assert record.detail == "Cancelled by ada: enough."
    until(lambda: not gang.processes("agent"))


def test_a_second_attempt_of_the_application_goes_on(gang: GangProcesses, go: Path) -> None:
    """As when the master's JVM was killed: the first coordinator dies with it, its agents do not
    know of it yet, and the second one has another working directory."""
    gang.prepare(counter(90, go), WORKERS, lost_after=5.0)
    orders = json.loads((gang.scratch / "coordinator.json").read_text())
    orders["application_attempts"] = 2
    (gang.scratch / "coordinator.json").write_text(json.dumps(orders))
    second = gang.root / "scratch2"
    subprocess.run(["cp", "-r", str(gang.scratch), str(second)], check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTAINER_ID", "container_e01_1700000000000_0002_01_000001")
        gang.start()
        gang.wait_for_state("RUNNING")
        gang.wait_for_event("snapshot", task="worker:0")
        assert gang.supervisor is not None
        gang.supervisor.send_signal(signal.SIGSTOP)  # or it would start another
        gang.processes("coordinator")[0].kill()
        gang.supervisor.kill()
        gang.supervisor.wait()
        until(lambda: not gang.processes("coordinator"))
        first_agents, began = gang.processes("agent"), time.time()
        programs = [child for agent in first_agents for child in agent.children(recursive=True)]
        assert len(first_agents) == 2
        assert len(programs) >= 2
        go.touch()
        gang.scratch = second
        patch.setenv("CONTAINER_ID", "container_e01_1700000000000_0002_02_000001")
        gang.start()
        record = gang.wait()
        assert not any(program.is_running() for program in programs)
        for agent in first_agents:
            agent.kill()
    assert record.state is State.SUCCEEDED, gang.story()
    assert record.epoch == 2
    assert (gang.job_dir / "claim-2.json").exists()
    lines = gang.log("worker:0", "e2-a1").splitlines()
    assert int(lines[0].split()[1]) > 0
    assert gang.log("worker:1", "e2-a1").splitlines()[0] == lines[0]
    (point,) = [event for event in record.events if event.kind == "restore_point"]
    assert point.detail in record.notes
    started = min(task.started or 0.0 for task in record.tasks)
    assert started >= began + 5.0, "the first attempt's programs may still have been running"
    # No event of the first attempt is lost either.
    kinds = [event["kind"] for event in gang.shipped_events()]
    assert "gang" in kinds
    assert "worker:0/e2-a1/stdout" in record.logs


def test_master_that_dies_while_its_coordinator_starts_is_the_cause(gang: GangProcesses) -> None:
    """The second attempt waits for the coordinator of the first when its master is killed."""
    gang.prepare(counter(600), WORKERS)
    orders = json.loads((gang.scratch / "coordinator.json").read_text())
    orders["application_attempts"] = 2
    (gang.scratch / "coordinator.json").write_text(json.dumps(orders))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        live = {"host": "127.0.0.1", "port": silent.getsockname()[1]}
        (gang.job_dir / "live.json").write_text(json.dumps(live))
        container = "container_e01_1700000000000_0002_02_000001"
        words = [AGENT_PYTHON, "-I", str(gang.zip), "supervise", "--directory", str(gang.scratch)]
        master = subprocess.Popen(
            ["/bin/sh", "-c", '"$@" & wait', "sh", *words],
            env={**os.environ, "CONTAINER_ID": container},
            start_new_session=True,
        )
        until((gang.job_dir / "claim-2.json").exists)
        (supervisor,) = psutil.Process(master.pid).children()
        supervisor.suspend()  # or it would report the death itself
        master.kill()
        master.wait()
    try:
        gang.wait_for_event("claimed")
        gang.processes("coordinator")[0].terminate()
        until((gang.job_dir / "record.json").exists)
        record = json.loads((gang.job_dir / "record.json").read_text())
    finally:
        supervisor.kill()
    assert (record["state"], record["reason"]) == ("FAILED", "master_lost"), gang.story()
    assert "died 2 times" in record["detail"]


@pytest.mark.parametrize("attempt", [1, 2])
@pytest.mark.parametrize("left", ["record.json", "claim.json"])
def test_coordinator_does_not_start_a_closed_job(
    gang: GangProcesses, attempt: int, left: str
) -> None:
    """A client has closed the job as never submitted, wholly or as far as its claim."""
    gang.prepare("print('ran')\n", WORKERS)
    (gang.job_dir / left).write_text(json.dumps({"closer": True, "host": "laptop"}))
    with pytest.MonkeyPatch.context() as patch:
        container = f"container_e01_1700000000000_0002_{attempt:02d}_000001"
        patch.setenv("CONTAINER_ID", container)
        gang.start()
        assert gang.supervisor is not None
        assert gang.supervisor.wait(60) != 0
    assert not (gang.scratch / "tasks").exists(), gang.story()
    assert not (gang.job_dir / "live.json").exists()


@pytest.mark.full
def test_a_kill_while_the_disk_is_full_costs_an_epoch_and_not_the_job(
    gang: GangProcesses, go: Path
) -> None:
    gang.prepare(counter(40, go), WORKERS, lost_after=5.0)
    gang.start()
    gang.wait_for_state("RUNNING")
    gang.wait_for_event("snapshot", task="worker:0")
    coordinator = gang.processes("coordinator")[0]
    journal = gang.scratch / "journal.jsonl"
    # Writes to any file are cut off here, like on a full disk.
    limits = (journal.stat().st_size + 20, resource.RLIM_INFINITY)
    coordinator.rlimit(psutil.RLIMIT_FSIZE, limits)
    os.kill(gang.program("worker:1"), signal.SIGKILL)
    until(lambda: not journal.with_name("journal.jsonl.complete").exists())
    assert journal.read_bytes().endswith(b"\n")
    old = [p for agent in gang.processes("agent") for p in agent.children(recursive=True)]
    coordinator.kill()
    gang.wait_for_event("state", "journal lacks records")
    gang.wait_for_state("RUNNING")
    go.touch()
    record = gang.wait()
    assert record.state is State.SUCCEEDED, gang.story()
    assert record.epoch >= 3
    assert not any(program.is_running() for program in old)
    assert int(gang.log("worker:0", f"e{record.epoch}-a1").split()[1]) > 0
    assert [event.seq for event in record.events] == list(range(len(record.events)))
    assert [e["seq"] for e in gang.shipped_events()] == [e.seq for e in record.events]


def test_a_restarted_coordinator_that_was_superseded_starts_nothing(
    gang: GangProcesses, go: Path
) -> None:
    """The third attempt has claimed, the second died before it could."""
    gang.prepare(counter(40, go), WORKERS, lost_after=5.0)
    gang.start()
    gang.wait_for_state("RUNNING")
    (gang.job_dir / "claim-3.json").write_text("{}")
    programs = [gang.program(task) for task in ("worker:0", "worker:1")]
    gang.processes("coordinator")[0].kill()
    assert gang.supervisor is not None
    assert gang.supervisor.wait(60) == 1
    assert not (gang.job_dir / "record.json").exists()
    until(lambda: not any(Path(f"/proc/{pid}/cwd").exists() for pid in programs))


def test_viewers_see_status_logs_and_all_tasks_in_one_stream(gang: GangProcesses, go: Path) -> None:
    gang.prepare(counter(20, go), WORKERS)
    gang.start()
    gang.wait_for_state("RUNNING")
    assert ask(gang, "GET", "/v1/status", token="wrong")[0] == 401
    assert ask(gang, "GET", "/v1/nothing")[0] == 404
    status = json.loads(ask(gang, "GET", "/v1/status")[1])
    assert [task["task"] for task in status["tasks"]] == ["worker:0", "worker:1"]

    def logged() -> bytes:
        return ask(gang, "GET", "/v1/log?task=worker:1&stream=stdout&offset=0")[1]

    until(lambda: b"step 2" in logged())
    connection = connect(gang)
    query = "/v1/stream?events=0&tasks=*&at=worker:1/e1-a1/stdout=8"
    connection.request("GET", query, headers={"Authorization": f"Bearer {gang.secret.token}"})
    answer = connection.getresponse()
    go.touch()
    lines = [json.loads(line) for line in answer]
    connection.close()
    assert lines[-1]["type"] == "end"
    assert lines[-1]["record"]["state"] == "SUCCEEDED"
    for task, skipped in (("worker:0", 0), ("worker:1", 8)):
        data = b"".join(
            base64.b64decode(line["data"])
            for line in lines
            if line["type"] == "log" and line["task"] == task and line["stream"] == "stdout"
        )
        assert data.decode() == gang.log(task)[skipped:]
    events = [line["event"]["seq"] for line in lines if line["type"] == "event"]
    assert events == list(range(len(events)))
    gang.wait()


def test_unauthenticated_and_slow_connections_do_not_block(gang: GangProcesses, go: Path) -> None:
    gang.prepare(counter(20, go), WORKERS)
    gang.start()
    until((gang.job_dir / "live.json").exists)
    port = json.loads((gang.job_dir / "live.json").read_text())["port"]
    strangers = [socket.create_connection(("127.0.0.1", port)) for _ in range(200)]
    for number, stranger in enumerate(strangers):
        if number % 2:
            stranger.send(b"\x16\x03\x01" if number % 4 == 1 else b"GET / HTTP/1.0\r\n\r\n")
    gang.wait_for_state("RUNNING")
    began = time.monotonic()
    assert ask(gang, "GET", "/v1/status")[0] == 200
    assert time.monotonic() - began < 10.0
    go.touch()
    record = gang.wait()
    for stranger in strangers:
        stranger.close()
    assert record.state is State.SUCCEEDED
    assert record.epoch == 1


def test_a_viewer_that_does_not_read_costs_nothing(gang: GangProcesses, go: Path) -> None:
    talker = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.05)\n"
    talker += "line = 'x' * 1000\nend = time.time() + 4\n"
    talker += "while time.time() < end:\n    print(line)\n"
    gang.prepare(talker, WORKERS)
    gang.start()
    gang.wait_for_state("RUNNING")
    connection = connect(gang)
    connection.request(
        "GET",
        "/v1/stream?events=0&tasks=*",
        headers={"Authorization": f"Bearer {gang.secret.token}"},
    )
    coordinator = gang.processes("coordinator")[0]
    largest = 0

    def watch() -> None:
        nonlocal largest
        while gang.supervisor is not None and gang.supervisor.poll() is None:
            try:
                largest = max(largest, coordinator.memory_info().rss >> 20)
            except Exception:
                return
            time.sleep(0.1)

    watcher = threading.Thread(target=watch)
    watcher.start()
    go.touch()
    record = gang.wait()
    watcher.join()
    connection.close()
    assert record.state is State.SUCCEEDED
    assert 0 < largest < 100
