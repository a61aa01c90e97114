"""A local run that is interrupted, terminated, killed, cancelled, too slow: nothing is left behind.

Each signal is sent for real, to the command line in a process of its own.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys

import pytest

from submarine_jobs.commands import execute
from submarine_workflows.local.process_guard import ProcessGuard
from submarine_workflows.runs import is_held
from tests.local.workflows.workflow_runs import Workflows
from tests.processes import is_gone
from tests.waiting import until

FLOW = """
nodes:
  - {name: before, type: command, config: {command: "bash -c 'echo x >> before'"}}
  - {name: a, type: command, dependsOn: [before], config: {command: ./a.sh}}
  - {name: after, type: noop, dependsOn: [a]}
"""
#: Ends as ``submarine run`` does: what it has started is cancelled first.
POLITE = """
trap 'echo cancelled > cancelled; exit 143' TERM
echo $$ > pid.new; mv pid.new pid
until test -e go; do sleep 0.05; done
"""
DEAF = """
trap '' TERM
echo $$ > pid.new; mv pid.new pid
until test -e go; do sleep 0.05; done
"""


@pytest.fixture
def flows(tmp_path, monkeypatch):
    # Where links to runs in other folders are kept.
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "state"))
    found = Workflows(tmp_path)
    found.write(FLOW)
    found.write("nodes: [{name: a, type: command, config: {command: ./a.sh}}]", "one.flow")
    yield found
    found.file("go").touch()
    found.close()


def begun(flows: Workflows, script: str, *words: str) -> tuple[subprocess.Popen[str], int]:
    flows.script("a.sh", script)
    process = flows.spawn("w.flow", *words)
    pid = int(flows.wait_for("pid"))
    return process, pid


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_the_nodes_and_they_clean_up(flows, number, code):
    process, pid = begun(flows, POLITE)
    process.send_signal(number)
    text, _ = process.communicate(timeout=90)
    assert process.returncode == code
    assert flows.wait_for("cancelled") == "cancelled\n"
    assert is_gone(pid)
    assert flows.statuses() == {
        "": "KILLED", "before": "SUCCEEDED", "a": "KILLED", "after": "CANCELLED",
    }  # fmt: skip
    assert f"It was interrupted by {signal.Signals(number).name}." in text
    flows.file("go").touch()
    assert flows.run("--resume").exit_code == 0
    assert flows.file("before").read_text() == "x\n", "what was done is not done again"


def test_a_killed_runner_leaves_nothing_and_its_run_goes_on_once_that_is_so(flows):
    process, pid = begun(flows, POLITE.replace("echo cancelled", "sleep 1; echo cancelled"))
    process.kill()
    process.wait(60)
    assert flows.statuses() == {
        "": "EXECUTION_STOPPED", "before": "SUCCEEDED", "a": "KILLED", "after": "READY",
    }  # fmt: skip
    assert "EXECUTION_STOPPED" in flows.do("status", "w").text
    flows.file("go.new").touch()
    flows.script("a.sh", "test -e go.new && test -e cancelled")
    outcome = flows.do("run", "--resume", "w")
    assert outcome.exit_code == 0, "its processes were not waited for"
    assert f"{flows.newest().run}: resuming, it was EXECUTION_STOPPED." in flows.frontend.said
    assert is_gone(pid)
    assert flows.file("before").read_text() == "x\n", "what was done is not done again"
    assert flows.view().node("a").attempt == 1
    assert not is_held(flows.newest().guard_lock)


def test_a_second_interrupt_ends_nodes_that_do_not_listen(flows):
    process, pid = begun(flows, DEAF)
    process.send_signal(signal.SIGINT)
    until(lambda: flows.view().status.value == "KILLING", "it was not heard")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=90)
    assert process.returncode == 130
    assert is_gone(pid)


def test_a_run_is_cancelled_from_elsewhere(flows):
    process, pid = begun(flows, POLITE)
    assert "KILLED" in flows.do("cancel", "w").text
    assert process.wait(60) == 1
    assert is_gone(pid)
    assert flows.file("cancelled").exists()
    assert flows.view().reason == "It was cancelled."
    assert "has already ended" in flows.do("cancel", "w").text


def test_the_job_of_a_command_ends_with_its_node(flows, tmp_path, monkeypatch):
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("SUBMARINE_BACKEND", "local")
    place = str(tmp_path / "place")
    flows.file("job.py").write_text(
        f"import os, time\nopen({place!r}, 'w').write('here')\ntime.sleep(600)\n"
    )
    run = f"{sys.executable} -m submarine_jobs.cli run job.py --memory 256M --wait"
    flows.write(f'nodes: [{{name: a, type: command, config: {{command: "{run}"}}}}]')
    process = flows.spawn("w.flow")
    flows.wait_for("place")
    assert "KILLED" in flows.do("cancel", "w").text
    process.communicate(timeout=90)
    (job,) = execute(["list", "--workflow", "w", "--json"], flows.frontend).value
    assert (job["state"], job["reason"]) == ("CANCELLED", "cancelled")


def test_a_run_has_its_time_and_no_more(flows):
    flows.script("a.sh", POLITE)
    assert flows.run("--timeout", "1s").exit_code == 124
    assert "limit of 1.0 s" in flows.view().reason
    assert flows.statuses()["after"] == "CANCELLED"
    # On a slow machine the time may have been over before it began.
    if flows.file("pid").exists():
        assert is_gone(int(flows.file("pid").read_text()))


@pytest.mark.parametrize("said_by", ["option", "workflow"])
def test_a_failure_ends_the_others_where_that_is_asked(flows, said_by):
    flows.script("a.sh", POLITE)
    flows.write(
        """
        config: {failure.action: %s}
        nodes:
          - {name: a, type: command, config: {command: ./a.sh}}
          - {name: b, type: command, config: {command: ./b.sh}}
    """
        % ("CANCEL_ALL" if said_by == "workflow" else "FINISH_ALL_POSSIBLE")
    )
    flows.script("b.sh", "until test -e pid; do sleep 0.05; done; exit 4")
    words = ["--failure-action", "cancelImmediately"] if said_by == "option" else []
    outcome = flows.run(*words, "--timeout", "80s")
    assert outcome.exit_code == 1
    assert flows.statuses() == {"": "KILLED", "a": "KILLED", "b": "FAILED"}
    assert flows.file("cancelled").exists()


def test_a_node_that_waits_for_its_next_try_is_ended_too(flows):
    flows.write("""
        nodes:
          - {name: a, type: command, config: {command: "false", retries: 3, retry.backoff: 600000}}
    """)
    process = flows.spawn("w.flow")
    until(lambda: flows.runs.of("w") and flows.view().node("a").code == 1, "it never failed")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert (process.returncode, flows.statuses()["a"]) == (143, "KILLED")


def test_a_keeper_that_was_killed_is_replaced(tmp_path):
    lock = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    guard = ProcessGuard(lock)
    sleeper = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        first = guard._shell
        first.kill()
        first.wait()
        guard.add(sleeper.pid)
        assert guard._shell.pid != first.pid
        os.close(guard._pipe)  # as when the runner is gone
        assert sleeper.wait(60) == -signal.SIGTERM
        guard._shell.wait(60)
    finally:
        sleeper.kill()
        sleeper.wait()
        os.close(lock)


def test_after_a_mistake_of_ours_nodes_are_ended_all_the_same(flows, monkeypatch):
    flows.script("a.sh", POLITE)

    def broken(self, kind, what):
        if flows.file("pid").exists():
            raise ZeroDivisionError

    monkeypatch.setattr("submarine_workflows.local.runner.Runner._handle", broken)
    with pytest.raises(ZeroDivisionError):
        flows.do("run", str(flows.file("one.flow")))
    assert flows.wait_for("cancelled") == "cancelled\n"


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
def test_a_run_comes_to_its_end_however_often_its_runner_is_killed(flows, seed):
    chance = random.Random(seed)
    nodes = ["- {name: n0, type: command, config: {command: ./step.sh n0, retries: 1}}"]
    for number in range(1, 8):
        before = chance.sample(range(number), min(number, 2))
        names = ", ".join(f"n{one}" for one in before)
        nodes.append(
            f"- {{name: n{number}, type: command, dependsOn: [{names}], "
            f"config: {{command: ./step.sh n{number}}}}}"
        )
    flows.script("step.sh", "echo $1 >> begun; sleep 0.2; echo $1 >> done")
    flows.write("nodes:\n" + "\n".join(nodes), "w.flow")
    words = ["w.flow"]
    for _ in range(6):
        process = flows.spawn(*words)
        # Any moment will do: before it has begun, in the middle, after its end.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(chance.uniform(0.2, 1.6))
        process.kill()
        process.wait(60)
        words = ["w.flow", "--resume"] if flows.runs.of("w") else ["w.flow"]
    if flows.runs.of("w") and flows.statuses()[""] != "SUCCEEDED":
        assert flows.run("--resume").exit_code == 0
    elif not flows.runs.of("w"):
        assert flows.run().exit_code == 0
    assert set(flows.statuses().values()) == {"SUCCEEDED"}
    done = flows.file("done").read_text().split()
    assert set(done) == {f"n{number}" for number in range(8)}
    # Killed between the end of a command and its line in the journal, a node runs twice.
    assert max(done.count(name) for name in done) <= 7
