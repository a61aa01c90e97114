"""Which failures of a task restart the gang, and which end the job."""

from __future__ import annotations

from typing import Any

import pytest

from submarine_runtime.coordinator.machine import Outcome, Stage, faults
from submarine_runtime.coordinator.machine.causes import cause_key, cause_of, is_connection_error
from submarine_runtime.coordinator.machine.restore_point import Progress
from submarine_runtime.protocol.reasons import EndReason
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


def fail(
    world: Simulation, task: str, words: dict[str, Any], reason: str = "program_error"
) -> None:
    world.finish(world.agent(task), reason, **words)


@pytest.fixture
def progress(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The last item says how far the gang is behind its last start."""
    said = [""]
    monkeypatch.setattr(faults, "progress_since_start", lambda job: Progress(said[-1] or "none"))
    return said


def running(**config: Any) -> Simulation:
    world = Simulation(orders(role("worker", 2), role("ps", 1, kind="untracked"), **config))
    world.run(world.all_running)
    return world


def rules(world: Simulation) -> list[str]:
    told = [note for note in world.notes if note.kind in ("restart", "task_failed")]
    return [note.data["rule"] for note in told]


def ended(world: Simulation, seconds: float = 60.0) -> str:
    world.run(lambda: world.ended, seconds)
    assert world.job.verdict is not None
    return world.job.verdict.outcome.detail


def test_a_node_that_is_lost_before_the_first_checkpoint_restarts_the_job(
    progress: list[str],
) -> None:
    world = running()
    world.kill("worker:1", "node_lost")
    world.run(world.all_running)
    assert (world.job.epoch, world.job.restarts) == (2, 0)
    assert run_to_end(world) is EndReason.SUCCEEDED


def test_an_error_without_progress_ends_the_job(progress: list[str]) -> None:
    world = running()
    fail(world, "worker:0", exception())
    fail(world, "worker:1", GLOO)
    began = world.now
    detail = ended(world)
    assert world.now - began < 10
    assert detail == (
        "worker:0: ValueError: bad. Not restarted: the job has made no progress since it started."
    )
    assert len(world.starts) == 3
    assert rules(world) == ["no_progress"]


def test_an_event_tells_of_the_failure_at_once_and_the_decision_waits_for_the_others(
    progress: list[str],
) -> None:
    world = running()
    fail(world, "worker:1", exception())
    world.step()
    (told,) = [note for note in world.notes if note.kind == "failure"]
    assert told.detail.startswith("ValueError: bad. A restart is decided when the other tasks")
    began = world.now
    ended(world)
    assert LOST_AFTER + 1 <= world.now - began <= LOST_AFTER + 6, "worker:0 waits for worker:1"


def test_an_error_after_a_later_step_restarts_the_job_and_is_not_counted(
    progress: list[str],
) -> None:
    world = running()
    progress.append("step")
    for epoch in range(2, 8):
        fail(world, "worker:1", exception())
        fail(world, "worker:0", GLOO)
        world.run(lambda epoch=epoch: world.job.epoch == epoch and world.all_running())  # type: ignore[misc]
    assert world.job.restarts == 0
    told = [note.detail for note in world.notes if note.kind == "restart"]
    assert told[0] == (
        "worker:1: ValueError: bad. The job has made progress since it last started; not counted. "
        "Restarting the gang."
    )
    progress.append("")
    fail(world, "worker:1", exception())
    fail(world, "worker:0", GLOO)
    assert "the same error again" in ended(world)


def test_an_error_after_a_newer_snapshot_without_steps_is_counted(progress: list[str]) -> None:
    world = running()
    progress.append("snapshot")
    for epoch in (2, 3, 4):
        fail(world, "worker:0", exception())
        world.run(lambda epoch=epoch: world.job.epoch == epoch and world.all_running())  # type: ignore[misc]
    fail(world, "worker:0", exception())
    assert "the limit of 3 restarts is reached" in ended(world)
    assert world.job.restarts == 3


def test_another_error_without_progress_restarts_the_job_within_the_limit(
    progress: list[str],
) -> None:
    world = running()
    world.kill("worker:1", "node_lost")
    world.run(world.all_running)
    for line in (1, 2, 3):
        fail(world, "worker:1", exception(line=line))
        world.run(lambda: world.state.value == "RESTARTING")
        world.run(world.all_running)
    assert world.job.restarts == 3
    fail(world, "worker:1", exception(line=4))
    assert "the limit of 3 restarts" in ended(world)
    assert rules(world) == ["uncounted", *["other_cause"] * 3, "limit"]


def test_the_same_error_twice_without_progress_ends_the_job(progress: list[str]) -> None:
    world = running()
    world.kill("worker:1", "node_lost")
    world.run(world.all_running)
    fail(world, "worker:1", exception())
    world.run(lambda: world.job.epoch == 3)
    world.run(world.all_running)
    fail(world, "worker:1", exception())
    assert "the same error again" in ended(world)
    assert rules(world) == ["uncounted", "other_cause", "same_cause"]


@pytest.mark.parametrize("first", ["worker:0", "worker:1"])
def test_a_peer_that_is_aborted_is_not_the_cause(progress: list[str], first: str) -> None:
    world = running()
    other = "worker:1" if first == "worker:0" else "worker:0"
    fail(world, first, ABORT, "killed_by_signal")
    world.step()
    fail(world, other, exception())
    assert ended(world).startswith(f"{other}: ValueError")
    assert world.reason() is EndReason.PROGRAM_ERROR


def test_an_abort_beside_errors_of_connections_restarts_the_job(progress: list[str]) -> None:
    world = running()
    fail(world, "worker:0", GLOO)
    fail(world, "worker:1", ABORT, "killed_by_signal")
    world.run(lambda: world.job.epoch == 2)
    assert world.job.restarts == 1
    assert world.job.tasks["worker:1"].restarts == 1


@pytest.mark.parametrize("reason", ["agent_lost", "node_lost", "preempted"])
def test_a_container_that_is_lost_meanwhile_is_the_cause(progress: list[str], reason: str) -> None:
    world = running()
    fail(world, "worker:0", exception())
    world.step()
    world.kill("worker:1", reason)
    world.run(world.all_running)
    assert world.job.epoch == 2
    assert world.job.tasks["worker:1"].restarts == 1
    assert run_to_end(world) is EndReason.SUCCEEDED


def test_a_container_that_is_lost_after_its_program_failed_is_the_cause(
    progress: list[str],
) -> None:
    world = running()
    fail(world, "worker:0", exception())
    world.step()
    world.kill("worker:0", "node_lost")
    world.run(world.all_running)
    assert (world.job.epoch, world.job.restarts) == (2, 0)


def test_a_silent_peer_is_the_cause_of_errors_of_connections(progress: list[str]) -> None:
    world = running()
    world.agent("worker:0").linked = False
    fail(world, "worker:1", exception())
    world.run(lambda: world.job.epoch == 2)
    assert world.job.tasks["worker:0"].restarts == 1


def test_errors_of_connections_alone_are_counted(progress: list[str]) -> None:
    world = running()
    for epoch in (2, 3, 4):
        fail(world, "worker:0", GLOO)
        fail(world, "worker:1", GLOO)
        world.run(lambda epoch=epoch: world.job.epoch == epoch and world.all_running())  # type: ignore[misc]
    fail(world, "worker:0", GLOO)
    fail(world, "worker:1", GLOO)
    assert "the limit of 3 restarts" in ended(world)
    assert rules(world) == [*["connection"] * 3, "limit"]


def test_memory_that_ran_out_twice_without_progress_ends_the_job(progress: list[str]) -> None:
    world = running()
    world.kill("ps:0", "preempted")
    world.run(world.all_running)
    for _ in range(2):
        fail(world, "worker:0", GLOO)
        fail(world, "worker:1", {"detail": "It used 2 of 1 GiB.", "signal": 9}, "out_of_memory")
        world.run(lambda: world.state.value == "RESTARTING" or world.ended, 60)
        if not world.ended:
            world.run(world.all_running)
    assert world.reason() is EndReason.OUT_OF_MEMORY
    assert (world.job.epoch, world.job.restarts) == (3, 1)


def test_an_explicit_limit_keeps_the_counted_rule(progress: list[str]) -> None:
    world = running(max_restarts=2)
    for epoch in (2, 3):
        fail(world, "worker:0", exception())
        world.step()
        assert world.job.epoch == epoch, "it restarts at once"
        world.run(world.all_running)
    fail(world, "worker:0", exception())
    assert ended(world) == "worker:0: ValueError: bad"
    assert rules(world) == ["counted", "counted", "limit"]


def test_a_restart_in_place_needs_no_progress(progress: list[str]) -> None:
    world = Simulation(orders(role("worker", 2), restart_in_place=True))
    world.run(world.all_running)
    fail(world, "worker:1", exception())
    world.run(lambda: len(world.starts) == 3, 10)
    assert world.job.epoch == 1


def test_an_evaluator_restarts_alone(progress: list[str]) -> None:
    world = Simulation(orders(role("chief"), role("worker"), role("evaluator")))
    world.run(world.all_running)
    for number in (1, 2):
        fail(world, "evaluator:0", exception())
        world.run(lambda number=number: len(world.starts) == 3 + number, 10)  # type: ignore[misc]
    world.run(world.all_running)
    world.kill("evaluator:0")
    world.run(world.all_running)
    fail(world, "evaluator:0", {"detail": "Address already in use."}, "address_in_use")
    world.run(lambda: len(world.starts) == 7, 10)
    assert world.agents[world.starts[-1].seat].task == "evaluator:0"
    assert [m.ports for m in world.starts[-1].members] == [(1,), (1,), (9,)]
    assert (world.job.epoch, world.job.restarts) == (1, 0)
    assert [task.attempt for task in world.tasks] == [1, 1, 5]
    world.run(world.all_running)
    fail(world, "evaluator:0", exception())
    assert ended(world) == "evaluator:0: ValueError: bad"


def test_the_gang_may_restart_while_an_evaluator_restarts(progress: list[str]) -> None:
    world = Simulation(orders(role("worker", 2), role("evaluator")))
    world.run(world.all_running)
    world.kill("evaluator:0")
    world.kill("worker:1")
    world.run(world.all_running)
    assert world.job.epoch == 2
    assert run_to_end(world) is EndReason.SUCCEEDED


@pytest.mark.parametrize("policy", ["any", "fraction"])
def test_no_task_is_left_between_failed_and_restarted(progress: list[str], policy: str) -> None:
    world = Simulation(orders(role("worker", 3), policy=policy, allowed_failures=0.7))
    world.run(world.all_running)
    fail(world, "worker:1", exception())
    fail(world, "worker:2", GLOO)
    world.run(lambda: world.job.tasks["worker:2"].failed)
    assert world.job.tasks["worker:1"].failed
    assert world.job.tasks["worker:0"].stage is Stage.RUNNING
    world.finish(world.agent("worker:0"), "succeeded")
    world.run(lambda: world.ended, 30)
    assert world.reason() is EndReason.SUCCEEDED


def test_the_decision_waits_for_the_checkpoints_of_a_program_that_has_failed(
    progress: list[str],
) -> None:
    world = running()
    world.synced = False
    fail(world, "worker:0", exception())
    world.step()
    world.synced = True
    fail(world, "worker:1", GLOO)
    for _ in range(6):
        world.step()
    assert world.job.verdict is None
    progress.append("step")
    world.say(world.agent("worker:0"), type="synced", epoch=1, attempt=1)
    world.run(world.all_running, 20)
    assert world.job.epoch == 2


def outcome(words: dict[str, Any], reason: EndReason = EndReason.PROGRAM_ERROR) -> Outcome:
    return Outcome(reason, words["detail"], words.get("exit_code"), None, words.get("failure"))


#: What a program raised when its peer was killed or did not come: PyTorch 1.13 with gloo, and
#: TensorFlow 2.21 with MultiWorkerMirroredStrategy. ``tests/frameworks/test_connection_errors.py``
#: makes these failures again.
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
def test_what_a_lost_peer_makes_libraries_raise_is_an_error_of_connections(
    name: str, message: str
) -> None:
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
def test_errors_of_connections_are_recognised(words: dict[str, Any], expected: bool) -> None:
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
