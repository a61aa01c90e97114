"""The machine of a distributed job in a simulated world: each kind of start, fault and end."""

from __future__ import annotations

from typing import Any

import pytest

from submarine_runtime.coordinator.machine import (
    JobPhase,
    SendMessage,
    Stage,
    handle,
    waiting_sentence,
)
from submarine_runtime.coordinator.placement import missing_containers
from submarine_runtime.protocol.reasons import EndReason
from submarine_runtime.protocol.record import LOCALIZED
from submarine_runtime.protocol.states import State
from tests.unit.coordinator.simulation import LOST_AFTER, Simulation, orders, role, run_to_end


def test_programs_start_together_and_only_when_every_task_is_ready() -> None:
    world = Simulation(orders(role("worker", 3), role("ps", 1, kind="untracked")))
    world.capacity = 3
    for _ in range(40):
        world.step()
    assert not world.starts
    assert world.job.state is State.PENDING
    assert waiting_sentence(world.job, world.now).startswith("3 of 4 containers, waiting 20 s for")
    world.capacity = 4
    world.run(world.all_running)
    assert [start.epoch for start in world.starts] == [1, 1, 1, 1]
    assert {m.task for m in world.starts[0].members} == {"worker:0", "worker:1", "worker:2", "ps:0"}
    assert world.state is State.RUNNING
    world.succeed()
    world.run(lambda: world.ended)
    assert world.reason() is EndReason.SUCCEEDED
    assert not world.job.missing


def test_a_ps_never_keeps_a_job_alive() -> None:
    world = Simulation(orders(role("worker", 2), role("ps", 1, kind="untracked"), policy="all"))
    world.run(world.all_running)
    for name in ("worker:0", "worker:1"):
        world.finish(world.agent(name), "succeeded")
    world.run(lambda: world.ended, 60)
    assert world.reason() is EndReason.SUCCEEDED


@pytest.mark.parametrize("in_place", [True, False])
def test_a_killed_task_is_made_good(in_place: bool) -> None:
    world = Simulation(orders(role("worker", 3), restart_in_place=in_place))
    world.run(world.all_running)
    world.kill("worker:1")
    world.run(world.all_running)
    assert world.job.epoch == (1 if in_place else 2)
    assert world.starts[-1].restore
    assert len(world.starts) == (4 if in_place else 6)
    # The old epoch's connections keep its ports: containers that are kept get new ones.
    kept = [m.ports for m in world.starts[-1].members if m.task != "worker:1"]
    assert kept == ([(1,), (1,)] if in_place else [(9,), (9,)])
    assert run_to_end(world) is EndReason.SUCCEEDED
    assert world.job.restarts == 1


def test_faults_are_counted_but_not_those_of_nobody() -> None:
    world = Simulation(orders(role("worker", 2), max_restarts=1))
    for reason in ("preempted", "node_lost", "preempted", "agent_lost"):
        world.run(world.all_running)
        world.kill("worker:0", reason)
    world.run(world.all_running)
    world.finish(world.agent("worker:1"), "program_error", exit_code=3, detail="no luck")
    world.run(lambda: world.ended)
    assert world.reason() is EndReason.PROGRAM_ERROR
    assert world.job.verdict is not None
    assert world.job.verdict.outcome.exit_code == 3
    assert "worker:1: no luck" in world.job.verdict.outcome.detail


def test_what_would_come_again_is_not_tried_again() -> None:
    world = Simulation(orders(role("worker", 2)))
    world.run(world.all_running)
    for agent in world.agents.values():
        world.finish(agent, "import_error", detail="No module named torch")
    world.run(lambda: world.ended)
    assert world.reason() is EndReason.IMPORT_ERROR
    assert len(world.starts) == 2
    world = Simulation(orders(role("worker", 2)))
    world.run(world.all_running)
    world.finish(world.agent("worker:0"), "program_error", retry="no")
    world.run(lambda: world.ended)
    assert len(world.starts) == 2


def test_a_restart_is_told_in_sentences() -> None:
    world = Simulation(orders(role("worker", 2), restart_in_place=True))
    world.run(world.all_running)
    world.finish(world.agent("worker:1"), "program_error", exit_code=1, detail="Exit code 1: oh")
    world.run(lambda: len(world.starts) == 3)
    (told,) = [note.detail for note in world.notes if note.kind == "restart"]
    assert told == "worker:1: Exit code 1: oh. Restarting the task."


def test_a_lost_task_is_replaced_only_when_its_program_has_ended() -> None:
    world = Simulation(orders(role("worker", 2), restart_in_place=True))
    world.run(world.all_running)
    cut = world.agent("worker:1")
    cut.linked = False
    began = cut.acked
    world.run(lambda: len(world.starts) == 3)  # asserts that the old program does not run
    assert world.now >= began + LOST_AFTER + 2.0
    assert run_to_end(world) is EndReason.SUCCEEDED


def test_a_task_that_restarts_alone_receives_the_new_address_of_the_chief() -> None:
    world = Simulation(orders(role("worker", 3), restart_in_place=True))
    world.run(world.all_running)
    world.capacity = 2  # the chief's next container takes a while
    world.kill("worker:0")
    world.finish(world.agent("worker:1"), "program_error", exit_code=1)
    for _ in range(10):
        world.step()
    assert len(world.starts) == 3, "worker:1 was started with the address of the lost chief"
    world.capacity, world.ports = 3, [7]
    world.run(world.all_running)
    restarted = {world.agents[start.seat].task: start for start in world.starts[3:]}
    for start in restarted.values():
        assert [m.ports for m in start.members] == [(7,), (1,), (1,)]
    assert set(restarted) == {"worker:0", "worker:1"}
    assert run_to_end(world) is EndReason.SUCCEEDED


def test_a_task_that_restarts_alone_does_not_wait_for_a_chief_that_has_ended() -> None:
    world = Simulation(orders(role("worker", 2), restart_in_place=True, policy="all"))
    world.run(world.all_running)
    world.finish(world.agent("worker:0"), "succeeded", exit_code=0)
    world.step()
    world.kill("worker:0")
    world.finish(world.agent("worker:1"), "program_error", exit_code=1)
    world.run(lambda: len(world.starts) == 3, 20)


def test_a_link_that_comes_back_in_time_costs_nothing() -> None:
    world = Simulation(orders(role("worker", 2)))
    world.run(world.all_running)
    cut = world.agent("worker:1")
    cut.linked = False
    world.handle({"type": "unlinked", "seat": cut.seat})
    for _ in range(40):
        world.step()
    epoch, attempt = cut.running or (0, 0)
    world.register(cut, {"epoch": epoch, "attempt": attempt, "state": "running"})
    assert run_to_end(world) is EndReason.SUCCEEDED
    assert len(world.starts) == 2


def test_the_gang_lets_go_tries_again_and_gives_up() -> None:
    world = Simulation(orders(role("worker", 4, gpus=1), gang_timeout=30.0, gang_retries=2))
    world.capacity = 2
    released = 0
    while not world.ended:
        world.step()
        resting = world.job.phase is JobPhase.BACKOFF
        if resting:
            held = [a for a in world.agents.values() if a.alive and not a.over]
            released += not held
        assert world.now < 2000
    assert released > 0
    assert world.reason() is EndReason.GANG_TIMED_OUT
    assert world.job.verdict is not None
    sentence = world.job.verdict.outcome.detail
    assert sentence == "2 of 4 containers, waiting 30 s for 2 with 1 GPU each."
    assert world.job.gang_tries == 3


def test_a_gang_whose_files_are_brought_to_its_nodes_does_not_wait_for_containers() -> None:
    words = {"localizes": "Python environment (1.4 GB)"}
    world = Simulation(
        orders(role("worker", 2, gpus=1, **words), gang_timeout=30.0, gang_retries=0)
    )
    job = world.job
    world.capacity = 1
    world.step()
    (task, seat), *_ = world.pending_requests
    sentence = waiting_sentence(job, world.now)
    assert sentence.startswith("1 of 2 containers, waiting")
    world.pending_requests.clear()  # granted, but its agent does not register yet
    world.handle({"type": "placed", "seat": seat, "node": "node7:8042"})
    assert world.state is State.STARTING
    assert missing_containers(job) == []
    for _ in range(200):
        world.step()
    assert job.verdict is None, "the time for localizing was counted as waiting for containers"
    assert waiting_sentence(job, world.now) == (
        "localizing on node7 for 1 min 30 s: Python environment (1.4 GB); 1 of 2 tasks is ready"
    )
    assert LOCALIZED not in [note.kind for note in world.notes]
    world.capacity = 2
    world.pending_requests.append((task, seat))
    assert run_to_end(world) is EndReason.SUCCEEDED
    states = [note.state for note in world.notes if note.state is not None]
    assert states[:2] == [State.STARTING, State.RUNNING]
    assert [note.kind for note in world.notes].count(LOCALIZED) == 1


def test_the_minimum_is_enough_after_a_while() -> None:
    world = Simulation(orders(role("worker", 4, least=2)))
    world.capacity = 3
    world.run(lambda: len(world.starts) == 3, 60)
    assert [m.task for m in world.starts[0].members] == ["worker:0", "worker:1", "worker:2"]
    assert world.now >= 10
    for agent in world.agents.values():
        world.finish(agent, "succeeded")
    world.run(lambda: world.ended)
    assert world.reason() is EndReason.SUCCEEDED


def test_roles_start_in_order() -> None:
    world = Simulation(orders(role("worker", 2, after=["ps"]), role("ps", 1, kind="untracked")))
    world.run(world.all_running)
    assert world.agents[world.starts[0].seat].task == "ps:0"


def test_a_sidecar_is_nobodys_business() -> None:
    world = Simulation(orders(role("worker", 1), role("tensorboard", 1, kind="sidecar")))
    world.run(world.all_running)
    for _ in range(6):
        world.run(lambda: bool(world.job.tasks["tensorboard:0"].seat in world.agents), 50)
        world.step()
        if world.job.tasks["tensorboard:0"].stage is Stage.RUNNING:
            world.finish(world.agent("tensorboard:0"), "program_error")
        world.step()
        world.step()
    assert world.job.epoch == 1
    assert world.job.tasks["tensorboard:0"].failed
    world.succeed()
    world.run(lambda: world.ended)
    assert world.reason() is EndReason.SUCCEEDED


def test_a_job_of_a_tensorboard_alone_lives_as_long_as_it() -> None:
    world = Simulation(orders(role("tensorboard", 1, kind="sidecar")))
    world.run(world.all_running)
    for _ in range(100):
        world.step()
    assert not world.ended
    world.handle({"type": "cancel", "by": "ada", "why": "seen enough"})
    world.run(lambda: world.ended)
    assert world.reason() is EndReason.CANCELLED


@pytest.mark.parametrize("running", [True, False])
def test_a_job_whose_lease_is_over_ends_and_gives_everything_back(running: bool) -> None:
    """While it trains, and while it still waits for containers."""
    world = Simulation(orders(role("worker", 2)))
    if running:
        world.run(world.all_running)
    else:
        world.capacity = 0
        world.step()
    world.handle({"type": "expired", "detail": "The job's lease was not renewed."})
    world.handle({"type": "cancel", "by": "ada", "why": "too late"})
    world.run(lambda: world.ended)
    assert world.reason() is EndReason.LEASE_EXPIRED
    assert not [agent for agent in world.agents.values() if agent.running]


@pytest.mark.parametrize(
    ("policy", "failures", "expected"),
    [
        ("chief", ["worker:1"], EndReason.PROGRAM_ERROR),
        ("all", ["worker:1"], EndReason.PROGRAM_ERROR),
        ("any", ["worker:0", "worker:1"], EndReason.SUCCEEDED),
        ("any", ["worker:0", "worker:1", "worker:2"], EndReason.PROGRAM_ERROR),
        ("fraction", ["worker:1"], EndReason.SUCCEEDED),
        ("fraction", ["worker:0", "worker:1"], EndReason.PROGRAM_ERROR),
    ],
)
def test_policies(policy: str, failures: list[str], expected: EndReason) -> None:
    config = orders(role("worker", 3), policy=policy, allowed_failures=0.34, max_restarts=0)
    world = Simulation(config)
    world.run(world.all_running)
    for name in failures:
        world.finish(world.agent(name), "program_error", exit_code=1)
        world.step()
    world.succeed()
    world.run(lambda: world.ended)
    assert world.reason() is expected


def test_a_node_that_has_failed_twice_is_avoided() -> None:
    world = Simulation(orders(role("worker", 2), max_restarts=10), nodes=2)
    for _ in range(2):
        world.run(world.all_running)
        bad = next(a.task for a in world.agents.values() if a.alive and a.node == "node0")
        world.kill(bad)
    world.run(world.all_running)
    assert world.job.node_faults["node0"] == 2
    assert all(world.agent(task.name).node == "node1" for task in world.job.gang)


def test_the_only_node_of_the_local_backend_is_not_avoided() -> None:
    world = Simulation(orders(role("worker", 1), max_restarts=10), nodes=1)
    for _ in range(3):
        world.run(world.all_running)
        world.job.tasks["worker:0"].node = "local"
        world.kill("worker:0")
    world.run(world.all_running)
    assert not world.job.node_faults


def test_avoiding_and_spreading_are_bounded() -> None:
    world = Simulation(orders(role("worker", 2, avoid=["node0"])), nodes=1)
    world.run(world.all_running)
    assert sum(note.kind == "refused" for note in world.notes) == 24
    assert all(ask.delayed == (not ask.seat.endswith(".1")) for ask in world.requests)
    world = Simulation(orders(role("worker", 3, spread=True)), nodes=4)
    world.run(world.all_running)
    assert len({world.agent(task.name).node for task in world.job.gang}) == 3


def test_taken_ports_are_renewed_and_not_counted() -> None:
    world = Simulation(orders(role("worker", 2), max_restarts=0))
    world.run(world.all_running)
    world.finish(world.agent("worker:0"), "address_in_use", detail="Address already in use.")
    world.step()
    world.run(world.all_running)
    assert world.job.epoch == 2
    assert all(member.ports == (9,) for member in world.starts[-1].members)
    for _ in range(20):
        if world.job.verdict is not None:
            break
        world.run(world.all_running)
        world.finish(world.agent("worker:0"), "address_in_use")
        world.step()
        world.step()
    world.run(lambda: world.ended)
    assert world.reason() is EndReason.ADDRESS_IN_USE


def test_a_job_that_runs_too_long_ends() -> None:
    world = Simulation(orders(role("worker", 2), timeout=60.0))
    world.run(lambda: world.ended)
    assert world.reason() is EndReason.TIMED_OUT
    assert world.now < 80


def test_an_agent_that_hangs_in_leaving_does_not_keep_the_job() -> None:
    world = Simulation(orders(role("worker", 2), save_grace=30.0))
    world.run(world.all_running)
    world.agent("worker:1").stubborn = True
    world.finish(world.agent("worker:0"), "succeeded")
    world.run(lambda: world.ended, 90)
    assert world.reason() is EndReason.SUCCEEDED
    assert any("worker:1" in sentence for sentence in world.job.missing)


def test_a_seat_has_one_agent() -> None:
    world = Simulation(orders(role("worker", 1)))
    world.run(world.all_running)
    seat = world.job.tasks["worker:0"].seat
    message = {"type": "register", "seat": seat, "nonce": "somebody else", "t": world.now}
    actions = handle(world.job, message)
    assert [a.line["type"] for a in actions if isinstance(a, SendMessage)] == ["refused"]


def gang_that_ends(met: bool, framework: str, **config: Any) -> Simulation:
    world = Simulation(orders(role("worker", 2), framework=framework, policy="all", **config))
    world.run(world.all_running)
    if met:
        world.say(world.agent("worker:0"), type="state", state="met", epoch=1, attempt=1)
    for name in ("worker:0", "worker:1"):
        world.finish(world.agent(name), "succeeded")
    world.run(lambda: world.ended, 60)
    return world


@pytest.mark.parametrize(
    ("met", "framework", "required", "expected", "warned"),
    [
        (True, "pytorch", False, EndReason.SUCCEEDED, False),
        (True, "pytorch", True, EndReason.SUCCEEDED, False),
        (False, "pytorch", False, EndReason.SUCCEEDED, True),
        (False, "pytorch", True, EndReason.NOT_COLLECTIVE, False),
        (False, "any", False, EndReason.SUCCEEDED, False),
        (False, "any", True, EndReason.NOT_COLLECTIVE, False),
    ],
)
def test_a_gang_whose_tasks_never_met(
    met: bool, framework: str, required: bool, expected: EndReason, warned: bool
) -> None:
    world = gang_that_ends(met, framework, require_collective=required)
    assert world.reason() is expected
    assert bool(world.job.warnings) is warned
    assert [note.kind for note in world.notes].count("warning") == int(warned)


def test_a_rendezvous_of_an_earlier_epoch_does_not_count() -> None:
    world = Simulation(orders(role("worker", 2), framework="pytorch", policy="all"))
    world.run(world.all_running)
    world.say(world.agent("worker:0"), type="state", state="met", epoch=1, attempt=1)
    world.kill("worker:1")
    world.run(lambda: world.job.epoch == 2 and world.all_running())
    for name in ("worker:0", "worker:1"):
        world.finish(world.agent(name), "succeeded")
    world.run(lambda: world.ended, 60)
    assert "Trainer(num_nodes=2)" in world.job.warnings[0]


@pytest.mark.parametrize("in_place", [True, False])
def test_a_restarted_coordinator_starts_nothing_before_its_claim_is_checked(in_place: bool) -> None:
    world = Simulation(orders(role("worker", 2), restart_in_place=in_place))
    world.run(world.all_running)
    starts = len(world.starts)
    world.handle({"type": "resumed", "unchecked": True})
    for agent in world.agents.values():
        agent.linked = False
    world.kill("worker:1")
    for _ in range(60):
        world.step()
    assert len(world.starts) == starts
    world.handle({"type": "checked"})
    world.run(world.all_running)
    assert len(world.starts) > starts
    assert run_to_end(world) is EndReason.SUCCEEDED
