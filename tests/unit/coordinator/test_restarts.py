"""Which failures of a task restart the gang, and which end the job."""

from __future__ import annotations

from typing import Any

import pytest

from submarine_runtime.coordinator.machine import Outcome, Stage, faults
from submarine_runtime.coordinator.machine.causes import cause_key, cause_of, is_connection_error
from submarine_runtime.protocol import EndReason
from submarine_runtime.restore_points import Progress
from tests.unit.coordinator.simulation import LOST_AFTER, Simulation, orders, role, run_to_end


def exception(name: str = "ValueError", line: int = 3, message: str = "bad") -> dict[str, Any]:
    failure = {
        "type": name,
        "message": message,
        "frames": [{"file": "main.py", "line": line}],
        "text": "",
    }
    return {"exit_code": 1, "detail": f"{name}: {message}", "failure": failure}


GLOO = exception(
    "RuntimeError", 9, "[../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed"
)
ABORT = {"signal": 6, "detail": "Signal 6 (SIGABRT)."}


def fail(sim: Simulation, task: str, words: dict[str, Any], reason: str = "program_error") -> None:
    sim.finish(sim.agent(task), reason, **words)


@pytest.fixture
def progress(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The last item is the progress of the gang since its last start."""
    said = [""]
    monkeypatch.setattr(faults, "progress_since_start", lambda job: Progress(said[-1] or "none"))
    return said


def running(**config: Any) -> Simulation:
    sim = Simulation(orders(role("worker", 2), role("ps", 1, kind="untracked"), **config))
    sim.run(sim.all_running)
    return sim


def rules(sim: Simulation) -> list[str]:
    told = [note for note in sim.notes if note.kind in ("restart", "task_failed")]
    return [note.data["rule"] for note in told]


def ended(sim: Simulation, seconds: float = 60.0) -> str:
    sim.run(lambda: sim.ended, seconds)
    assert sim.job.verdict is not None
    return sim.job.verdict.outcome.detail


def test_a_lost_node_before_the_first_checkpoint_restarts_the_job(
    progress: list[str],
) -> None:
    sim = running()
    sim.kill("worker:1", "node_lost")
    sim.run(sim.all_running)
    assert (sim.job.epoch, sim.job.restarts) == (2, 0)
    assert run_to_end(sim) is EndReason.SUCCEEDED


def test_an_error_without_progress_ends_the_job(progress: list[str]) -> None:
    sim = running()
    fail(sim, "worker:0", exception())
    fail(sim, "worker:1", GLOO)
    began = sim.now
    detail = ended(sim)
    assert sim.now - began < 10
    assert detail == (
        "worker:0: ValueError: bad. Not restarted: the job has made no progress since it started."
    )
    assert len(sim.starts) == 3
    assert rules(sim) == ["no_progress"]


def test_the_event_of_a_failure_precedes_the_decision_about_a_restart(
    progress: list[str],
) -> None:
    sim = running()
    fail(sim, "worker:1", exception())
    sim.step()
    (told,) = [note for note in sim.notes if note.kind == "failure"]
    assert told.detail.startswith("ValueError: bad. A restart is decided when the other tasks")
    began = sim.now
    ended(sim)
    assert LOST_AFTER + 1 <= sim.now - began <= LOST_AFTER + 6, "worker:0 waits for worker:1"


def test_an_error_after_a_later_step_restarts_the_job_and_is_not_counted(
    progress: list[str],
) -> None:
    sim = running()
    progress.append("step")
    for epoch in range(2, 8):
        fail(sim, "worker:1", exception())
        fail(sim, "worker:0", GLOO)
        sim.run(lambda epoch=epoch: sim.job.epoch == epoch and sim.all_running())  # type: ignore[misc]
    assert sim.job.restarts == 0
    told = [note.detail for note in sim.notes if note.kind == "restart"]
    assert told[0] == (
        "worker:1: ValueError: bad. The job has made progress since it last started; not counted. "
        "Restarting the gang."
    )
    progress.append("")
    fail(sim, "worker:1", exception())
    fail(sim, "worker:0", GLOO)
    assert "the same error again" in ended(sim)


def test_an_error_after_a_newer_snapshot_without_steps_is_counted(progress: list[str]) -> None:
    sim = running()
    progress.append("snapshot")
    for epoch in (2, 3, 4):
        fail(sim, "worker:0", exception())
        sim.run(lambda epoch=epoch: sim.job.epoch == epoch and sim.all_running())  # type: ignore[misc]
    fail(sim, "worker:0", exception())
    assert "the limit of 3 restarts is reached" in ended(sim)
    assert sim.job.restarts == 3


def test_another_error_without_progress_restarts_the_job_within_the_limit(
    progress: list[str],
) -> None:
    sim = running()
    sim.kill("worker:1", "node_lost")
    sim.run(sim.all_running)
    for line in (1, 2, 3):
        fail(sim, "worker:1", exception(line=line))
        sim.run(lambda: sim.state.value == "RESTARTING")
        sim.run(sim.all_running)
    assert sim.job.restarts == 3
    fail(sim, "worker:1", exception(line=4))
    assert "the limit of 3 restarts" in ended(sim)
    assert rules(sim) == ["uncounted", *["other_cause"] * 3, "limit"]


def test_the_same_error_twice_without_progress_ends_the_job(progress: list[str]) -> None:
    sim = running()
    sim.kill("worker:1", "node_lost")
    sim.run(sim.all_running)
    fail(sim, "worker:1", exception())
    sim.run(lambda: sim.job.epoch == 3)
    sim.run(sim.all_running)
    fail(sim, "worker:1", exception())
    assert "the same error again" in ended(sim)
    assert rules(sim) == ["uncounted", "other_cause", "same_cause"]


@pytest.mark.parametrize("first", ["worker:0", "worker:1"])
def test_a_peer_that_is_aborted_is_not_the_cause(progress: list[str], first: str) -> None:
    sim = running()
    other = "worker:1" if first == "worker:0" else "worker:0"
    fail(sim, first, ABORT, "killed_by_signal")
    sim.step()
    fail(sim, other, exception())
    assert ended(sim).startswith(f"{other}: ValueError")
    assert sim.reason() is EndReason.PROGRAM_ERROR


def test_an_abort_with_connection_errors_restarts_the_job(progress: list[str]) -> None:
    sim = running()
    fail(sim, "worker:0", GLOO)
    fail(sim, "worker:1", ABORT, "killed_by_signal")
    sim.run(lambda: sim.job.epoch == 2)
    assert sim.job.restarts == 1
    assert sim.job.tasks["worker:1"].restarts == 1


@pytest.mark.parametrize("reason", ["agent_lost", "node_lost", "preempted"])
def test_a_container_lost_before_the_decision_is_the_cause(
    progress: list[str], reason: str
) -> None:
    sim = running()
    fail(sim, "worker:0", exception())
    sim.step()
    sim.kill("worker:1", reason)
    sim.run(sim.all_running)
    assert sim.job.epoch == 2
    assert sim.job.tasks["worker:1"].restarts == 1
    assert run_to_end(sim) is EndReason.SUCCEEDED


def test_a_container_that_is_lost_after_its_program_failed_is_the_cause(
    progress: list[str],
) -> None:
    sim = running()
    fail(sim, "worker:0", exception())
    sim.step()
    sim.kill("worker:0", "node_lost")
    sim.run(sim.all_running)
    assert (sim.job.epoch, sim.job.restarts) == (2, 0)


def test_a_lost_peer_is_the_cause_of_connection_errors(progress: list[str]) -> None:
    sim = running()
    sim.agent("worker:0").linked = False
    fail(sim, "worker:1", exception())
    sim.run(lambda: sim.job.epoch == 2)
    assert sim.job.tasks["worker:0"].restarts == 1


def test_connection_errors_alone_are_counted(progress: list[str]) -> None:
    sim = running()
    for epoch in (2, 3, 4):
        fail(sim, "worker:0", GLOO)
        fail(sim, "worker:1", GLOO)
        sim.run(lambda epoch=epoch: sim.job.epoch == epoch and sim.all_running())  # type: ignore[misc]
    fail(sim, "worker:0", GLOO)
    fail(sim, "worker:1", GLOO)
    assert "the limit of 3 restarts" in ended(sim)
    assert rules(sim) == [*["connection"] * 3, "limit"]


def test_out_of_memory_twice_without_progress_ends_the_job(progress: list[str]) -> None:
    sim = running()
    sim.kill("ps:0", "preempted")
    sim.run(sim.all_running)
    for _ in range(2):
        fail(sim, "worker:0", GLOO)
        fail(sim, "worker:1", {"detail": "It used 2 of 1 GiB.", "signal": 9}, "out_of_memory")
        sim.run(lambda: sim.state.value == "RESTARTING" or sim.ended, 60)
        if not sim.ended:
            sim.run(sim.all_running)
    assert sim.reason() is EndReason.OUT_OF_MEMORY
    assert (sim.job.epoch, sim.job.restarts) == (3, 1)


def test_an_explicit_limit_keeps_the_counted_rule(progress: list[str]) -> None:
    sim = running(max_restarts=2)
    for epoch in (2, 3):
        fail(sim, "worker:0", exception())
        sim.step()
        assert sim.job.epoch == epoch, "it restarts at once"
        sim.run(sim.all_running)
    fail(sim, "worker:0", exception())
    assert ended(sim) == "worker:0: ValueError: bad"
    assert rules(sim) == ["counted", "counted", "limit"]


def test_a_restart_in_place_needs_no_progress(progress: list[str]) -> None:
    sim = Simulation(orders(role("worker", 2), restart_in_place=True))
    sim.run(sim.all_running)
    fail(sim, "worker:1", exception())
    sim.run(lambda: len(sim.starts) == 3, 10)
    assert sim.job.epoch == 1


def test_an_evaluator_restarts_alone(progress: list[str]) -> None:
    sim = Simulation(orders(role("chief"), role("worker"), role("evaluator")))
    sim.run(sim.all_running)
    for number in (1, 2):
        fail(sim, "evaluator:0", exception())
        sim.run(lambda number=number: len(sim.starts) == 3 + number, 10)  # type: ignore[misc]
    sim.run(sim.all_running)
    sim.kill("evaluator:0")
    sim.run(sim.all_running)
    fail(sim, "evaluator:0", {"detail": "Address already in use."}, "address_in_use")
    sim.run(lambda: len(sim.starts) == 7, 10)
    assert sim.agents[sim.starts[-1].seat].task == "evaluator:0"
    assert [m.ports for m in sim.starts[-1].members] == [(1,), (1,), (9,)]
    assert (sim.job.epoch, sim.job.restarts) == (1, 0)
    assert [task.attempt for task in sim.tasks] == [1, 1, 5]
    sim.run(sim.all_running)
    fail(sim, "evaluator:0", exception())
    assert ended(sim) == "evaluator:0: ValueError: bad"


def test_the_gang_may_restart_while_an_evaluator_restarts(progress: list[str]) -> None:
    sim = Simulation(orders(role("worker", 2), role("evaluator")))
    sim.run(sim.all_running)
    sim.kill("evaluator:0")
    sim.kill("worker:1")
    sim.run(sim.all_running)
    assert sim.job.epoch == 2
    assert run_to_end(sim) is EndReason.SUCCEEDED


@pytest.mark.parametrize("policy", ["any", "fraction"])
def test_no_task_is_left_between_failed_and_restarted(progress: list[str], policy: str) -> None:
    sim = Simulation(orders(role("worker", 3), policy=policy, allowed_failures=0.7))
    sim.run(sim.all_running)
    fail(sim, "worker:1", exception())
    fail(sim, "worker:2", GLOO)
    sim.run(lambda: sim.job.tasks["worker:2"].failed)
    assert sim.job.tasks["worker:1"].failed
    assert sim.job.tasks["worker:0"].stage is Stage.RUNNING
    sim.finish(sim.agent("worker:0"), "succeeded")
    sim.run(lambda: sim.ended, 30)
    assert sim.reason() is EndReason.SUCCEEDED


def test_the_decision_waits_for_the_checkpoints_of_a_program_that_has_failed(
    progress: list[str],
) -> None:
    sim = running()
    sim.synced = False
    fail(sim, "worker:0", exception())
    sim.step()
    sim.synced = True
    fail(sim, "worker:1", GLOO)
    for _ in range(6):
        sim.step()
    assert sim.job.verdict is None
    progress.append("step")
    sim.say(sim.agent("worker:0"), type="synced", epoch=1, attempt=1)
    sim.run(sim.all_running, 20)
    assert sim.job.epoch == 2


def outcome(words: dict[str, Any], reason: EndReason = EndReason.PROGRAM_ERROR) -> Outcome:
    return Outcome(reason, words["detail"], words.get("exit_code"), None, words.get("failure"))


#: Errors of programs whose peer was killed or missing: PyTorch 1.13 with gloo, and
#: TensorFlow 2.21 with MultiWorkerMirroredStrategy. ``tests/frameworks/test_connection_errors.py``
#: reproduces these failures.
REAL = [
    ("RuntimeError", "[./gloo/transport/tcp/pair.cc:589] Read error [127.0.0.1]:31629: Connection"
     " reset by peer"),
    ("RuntimeError", "[./gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:92"),
    ("RuntimeError", "[./gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 4000ms for recv"
     " operation to complete"),
    ("RuntimeError", "Broken pipe"),
    ("RuntimeError", "Socket Timeout"),
    ("TimeoutError", "The client socket has timed out after 3s while trying to connect to"
     " (127.0.0.1, 1)."),
    ("tensorflow.python.framework.errors_impl.UnavailableError", "Graph execution error:\n\n"
     "Detected at node CollectiveReduceV2 defined at (most recent call last):"),
    ("Exception", "Collective ops is aborted by: recvmsg:Connection reset by peer\nAdditional GRPC"
     " error information from remote target /job:worker/replica:0/task:0 while calling"
     " /tensorflow.WorkerService/CompleteInstance:\n:UNKNOWN:Error received from peer "
     ' {grpc_message:"recvmsg:Connection reset by peer", grpc_status:14}\nThe error could be from a'
     " previous operation. Restart your program to reset."),
]  # fmt: skip


@pytest.mark.parametrize(("name", "message"), REAL)
def test_library_errors_after_a_lost_peer_are_connection_errors(name: str, message: str) -> None:
    assert is_connection_error(outcome(exception(name, 1, message)))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (GLOO, True),
        (exception("torch.distributed.DistBackendError", 1, "NCCL error, ncclRemoteError"), True),
        (exception("torch.distributed.DistBackendError", 1, "ncclInvalidUsage"), False),
        (exception("jaxlib.xla_extension.XlaRuntimeError", 1, "UNAVAILABLE: task 1"), True),
        (exception("tensorflow.python.framework.errors_impl.UnavailableError", 1, "x"), True),
        (exception("ConnectionResetError", 1, "[Errno 104] Connection reset by peer"), True),
        (exception("ConnectionRefusedError", 1, "[Errno 111] Connection refused"), False),
        (exception("RuntimeError", 1, "mat1 and mat2 shapes cannot be multiplied"), False),
        ({"detail": "Exit code 1: Stream removed", "exit_code": 1}, True),
        ({"detail": "Exit code 1: no such file", "exit_code": 1}, False),
    ],
)
def test_connection_errors_are_recognised(words: dict[str, Any], expected: bool) -> None:
    assert is_connection_error(outcome(words)) is expected


def test_a_cause_is_identified_by_exception_file_and_line_or_by_exit_code() -> None:
    same = cause_key(outcome(exception(message="one")))
    assert same == cause_key(outcome(exception(message="two"))) == "ValueError main.py:3"
    assert same != cause_key(outcome(exception(line=4)))
    assert same != cause_key(outcome(exception("KeyError")))
    leaving = exception("SystemExit", 5, "3")
    assert cause_key(outcome({**leaving, "exit_code": 3})) == "exit code 3"
    memory = outcome({"detail": "1"}, EndReason.OUT_OF_MEMORY)
    assert cause_key(memory) == "out_of_memory"
    assert cause_of([("worker:0", outcome(exception())), ("worker:1", memory)]) == (
        "worker:1",
        memory,
    )


def test_a_container_that_ends_before_its_last_checkpoint_is_saved() -> None:
    """The restart is decided, and waits for the checkpoint: the task needs another container."""
    sim = Simulation(orders(role("worker", 2), restart_in_place=True))
    sim.run(sim.all_running)
    sim.synced = False
    agent = sim.agent("worker:1")
    sim.finish(agent, "killed_by_signal")
    sim.step()
    assert sim.agent("worker:1") is agent
    sim.synced = True
    sim.kill("worker:1")
    sim.run(lambda: sim.all_running() and sim.agent("worker:1") is not agent, 300.0)
    (task,) = [task for task in sim.tasks if task.name == "worker:1"]
    assert task.restarts == 1
    sim.succeed()
    sim.run(lambda: sim.ended, 30)
    assert sim.reason() is EndReason.SUCCEEDED
