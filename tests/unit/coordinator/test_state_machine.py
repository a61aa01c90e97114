"""The state machine of a distributed job in a simulation: starts, faults and ends."""

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
from submarine_runtime.protocol import LOCALIZED, EndReason, State
from tests.unit.coordinator.simulation import (
    LOST_AFTER,
    Agent,
    Simulation,
    orders,
    role,
    run_to_end,
)


def test_programs_start_together_and_only_when_every_task_is_ready() -> None:
    sim = Simulation(orders(role("worker", 3), role("ps", 1, kind="untracked")))
    sim.capacity = 3
    for _ in range(40):
        sim.step()
    assert not sim.starts
    assert sim.job.state is State.PENDING
    assert waiting_sentence(sim.job, sim.now).startswith("3 of 4 containers, waiting 20 s for")
    sim.capacity = 4
    sim.run(sim.all_running)
    assert [start.epoch for start in sim.starts] == [1, 1, 1, 1]
    assert {m.task for m in sim.starts[0].members} == {"worker:0", "worker:1", "worker:2", "ps:0"}
    assert sim.state is State.RUNNING
    sim.succeed()
    sim.run(lambda: sim.ended)
    assert sim.reason() is EndReason.SUCCEEDED
    assert not sim.job.missing


def test_a_ps_never_keeps_a_job_alive() -> None:
    sim = Simulation(orders(role("worker", 2), role("ps", 1, kind="untracked"), policy="all"))
    sim.run(sim.all_running)
    for name in ("worker:0", "worker:1"):
        sim.finish(sim.agent(name), "succeeded")
    sim.run(lambda: sim.ended, 60)
    assert sim.reason() is EndReason.SUCCEEDED


@pytest.mark.parametrize("in_place", [True, False])
def test_a_killed_task_restarts(in_place: bool) -> None:
    sim = Simulation(orders(role("worker", 3), restart_in_place=in_place))
    sim.run(sim.all_running)
    sim.kill("worker:1")
    sim.run(sim.all_running)
    assert sim.job.epoch == (1 if in_place else 2)
    assert sim.starts[-1].restore
    assert len(sim.starts) == (4 if in_place else 6)
    # The old epoch's connections keep its ports: containers that are kept get new ones.
    kept = [m.ports for m in sim.starts[-1].members if m.task != "worker:1"]
    assert kept == ([(1,), (1,)] if in_place else [(9,), (9,)])
    assert run_to_end(sim) is EndReason.SUCCEEDED
    assert sim.job.restarts == 1


def test_preemptions_and_lost_nodes_are_not_counted() -> None:
    sim = Simulation(orders(role("worker", 2), max_restarts=1))
    for reason in ("preempted", "node_lost", "preempted", "agent_lost"):
        sim.run(sim.all_running)
        sim.kill("worker:0", reason)
    sim.run(sim.all_running)
    sim.finish(sim.agent("worker:1"), "program_error", exit_code=3, detail="no luck")
    sim.run(lambda: sim.ended)
    assert sim.reason() is EndReason.PROGRAM_ERROR
    assert sim.job.verdict is not None
    assert sim.job.verdict.outcome.exit_code == 3
    assert "worker:1: no luck" in sim.job.verdict.outcome.detail


def test_permanent_failures_are_not_restarted() -> None:
    sim = Simulation(orders(role("worker", 2)))
    sim.run(sim.all_running)
    for agent in sim.agents.values():
        sim.finish(agent, "import_error", detail="No module named torch")
    sim.run(lambda: sim.ended)
    assert sim.reason() is EndReason.IMPORT_ERROR
    assert len(sim.starts) == 2
    sim = Simulation(orders(role("worker", 2)))
    sim.run(sim.all_running)
    sim.finish(sim.agent("worker:0"), "program_error", retry="no")
    sim.run(lambda: sim.ended)
    assert len(sim.starts) == 2


def test_the_event_of_a_restart_has_whole_sentences() -> None:
    sim = Simulation(orders(role("worker", 2), restart_in_place=True))
    sim.run(sim.all_running)
    sim.finish(sim.agent("worker:1"), "program_error", exit_code=1, detail="Exit code 1: oh")
    sim.run(lambda: len(sim.starts) == 3)
    (told,) = [note.detail for note in sim.notes if note.kind == "restart"]
    assert told == "worker:1: Exit code 1: oh. Restarting the task."


def test_a_lost_task_is_replaced_only_when_its_program_has_ended() -> None:
    sim = Simulation(orders(role("worker", 2), restart_in_place=True))
    sim.run(sim.all_running)
    cut = sim.agent("worker:1")
    cut.linked = False
    began = cut.acked
    sim.run(lambda: len(sim.starts) == 3)  # Asserts that the old program does not run.
    assert sim.now >= began + LOST_AFTER + 2.0
    assert run_to_end(sim) is EndReason.SUCCEEDED


def test_a_task_that_restarts_alone_receives_the_new_address_of_the_chief() -> None:
    sim = Simulation(orders(role("worker", 3), restart_in_place=True))
    sim.run(sim.all_running)
    sim.capacity = 2  # The chief's next container is granted later.
    sim.kill("worker:0")
    sim.finish(sim.agent("worker:1"), "program_error", exit_code=1)
    for _ in range(10):
        sim.step()
    assert len(sim.starts) == 3, "worker:1 was started with the address of the lost chief"
    sim.capacity, sim.ports = 3, [7]
    sim.run(sim.all_running)
    restarted = {sim.agents[start.seat].task: start for start in sim.starts[3:]}
    for start in restarted.values():
        assert [m.ports for m in start.members] == [(7,), (1,), (1,)]
    assert set(restarted) == {"worker:0", "worker:1"}
    assert run_to_end(sim) is EndReason.SUCCEEDED


def test_a_task_that_restarts_alone_does_not_wait_for_a_chief_that_has_ended() -> None:
    sim = Simulation(orders(role("worker", 2), restart_in_place=True, policy="all"))
    sim.run(sim.all_running)
    sim.finish(sim.agent("worker:0"), "succeeded", exit_code=0)
    sim.step()
    sim.kill("worker:0")
    sim.finish(sim.agent("worker:1"), "program_error", exit_code=1)
    sim.run(lambda: len(sim.starts) == 3, 20)


def test_a_reconnect_in_time_is_no_fault() -> None:
    sim = Simulation(orders(role("worker", 2)))
    sim.run(sim.all_running)
    cut = sim.agent("worker:1")
    cut.linked = False
    sim.handle({"type": "unlinked", "seat": cut.seat})
    for _ in range(40):
        sim.step()
    epoch, attempt = cut.running or (0, 0)
    sim.register(cut, {"epoch": epoch, "attempt": attempt, "state": "running"})
    assert run_to_end(sim) is EndReason.SUCCEEDED
    assert len(sim.starts) == 2


def test_a_gang_timeout_releases_all_containers_and_repeats() -> None:
    sim = Simulation(orders(role("worker", 4, gpus=1), gang_timeout=30.0, gang_retries=2))
    sim.capacity = 2
    released = 0
    while not sim.ended:
        sim.step()
        resting = sim.job.phase is JobPhase.BACKOFF
        if resting:
            held = [a for a in sim.agents.values() if a.alive and not a.over]
            released += not held
        assert sim.now < 2000
    assert released > 0
    assert sim.reason() is EndReason.GANG_TIMED_OUT
    assert sim.job.verdict is not None
    sentence = sim.job.verdict.outcome.detail
    assert sentence == "2 of 4 containers, waiting 30 s for 2 with 1 GPU each."
    assert sim.job.gang_tries == 3


def test_localizing_does_not_count_for_the_gang_timeout() -> None:
    archives = {"worker": "Python environment (1.4 GB)"}
    workers = role("worker", 2, gpus=1)
    sim = Simulation(orders(workers, localizes=archives, gang_timeout=30.0, gang_retries=0))
    job = sim.job
    sim.capacity = 1
    sim.step()
    (task, seat), *_ = sim.pending_requests
    sentence = waiting_sentence(job, sim.now)
    assert sentence.startswith("1 of 2 containers, waiting")
    sim.pending_requests.clear()  # Granted, but the agent does not register yet.
    sim.handle({"type": "placed", "seat": seat, "node": "node7:8042"})
    assert sim.state is State.STARTING
    assert missing_containers(job) == []
    for _ in range(200):
        sim.step()
    assert job.verdict is None, "the time for localizing was counted as waiting for containers"
    assert waiting_sentence(job, sim.now) == (
        "localizing on node7 for 1 min 30 s: Python environment (1.4 GB); 1 of 2 tasks is ready"
    )
    assert LOCALIZED not in [note.kind for note in sim.notes]
    sim.capacity = 2
    sim.pending_requests.append((task, seat))
    assert run_to_end(sim) is EndReason.SUCCEEDED
    states = [note.state for note in sim.notes if note.state is not None]
    assert states[:2] == [State.STARTING, State.RUNNING]
    assert [note.kind for note in sim.notes].count(LOCALIZED) == 1


def test_unpacking_does_not_count_for_the_gang_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent registers before it unpacks the environment, and is ready after that."""
    sim = Simulation(orders(role("worker", 2), gang_timeout=30.0, gang_retries=0))
    say, unpacking = sim.say, []

    def say_unless_ready(agent: Agent, **line: Any) -> None:
        if agent.task == "worker:1" and line.get("state") == "ready":
            unpacking.append(agent)
        else:
            say(agent, **line)

    monkeypatch.setattr(sim, "say", say_unless_ready)
    for _ in range(200):
        sim.step()
    assert sim.job.verdict is None
    assert sim.starts == []
    assert [event["type"] for event in sim.events].count("register") == 2, "no other container"
    (agent,) = unpacking
    say(agent, type="state", state="ready")
    assert run_to_end(sim) is EndReason.SUCCEEDED


def test_the_gang_starts_with_its_minimum_after_a_wait() -> None:
    sim = Simulation(orders(role("worker", 4, least=2)))
    sim.capacity = 3
    sim.run(lambda: len(sim.starts) == 3, 60)
    assert [m.task for m in sim.starts[0].members] == ["worker:0", "worker:1", "worker:2"]
    assert sim.now >= 10
    for agent in sim.agents.values():
        sim.finish(agent, "succeeded")
    sim.run(lambda: sim.ended)
    assert sim.reason() is EndReason.SUCCEEDED


@pytest.mark.parametrize("lacking", ["node0:0", "node2:0"])
def test_roles_without_a_minimum_start_with_those_that_have_room(lacking: str) -> None:
    """As the probes of ``doctor --nodes``: one role for each node, also without the first one."""
    roles = [role(f"node{number}", 1, least=0) for number in range(3)]
    sim = Simulation(orders(*roles, policy="fraction", gang_retries=0, gang_timeout=90.0))
    sim.pending_requests.sort(key=lambda request: request[0] == lacking)
    sim.capacity = 2
    sim.run(lambda: len(sim.starts) == 2, 60)
    assert lacking not in [member.task for member in sim.starts[0].members]
    for agent in sim.agents.values():
        sim.finish(agent, "succeeded")
    sim.run(lambda: sim.ended, 60)
    assert sim.reason() is EndReason.SUCCEEDED


def test_roles_start_in_order() -> None:
    sim = Simulation(orders(role("worker", 2, after=["ps"]), role("ps", 1, kind="untracked")))
    sim.run(sim.all_running)
    assert sim.agents[sim.starts[0].seat].task == "ps:0"


def test_a_failing_sidecar_does_not_affect_the_job() -> None:
    sim = Simulation(orders(role("worker", 1), role("tensorboard", 1, kind="sidecar")))
    sim.run(sim.all_running)
    for _ in range(6):
        sim.run(lambda: bool(sim.job.tasks["tensorboard:0"].seat in sim.agents), 50)
        sim.step()
        if sim.job.tasks["tensorboard:0"].stage is Stage.RUNNING:
            sim.finish(sim.agent("tensorboard:0"), "program_error")
        sim.step()
        sim.step()
    assert sim.job.epoch == 1
    assert sim.job.tasks["tensorboard:0"].failed
    sim.succeed()
    sim.run(lambda: sim.ended)
    assert sim.reason() is EndReason.SUCCEEDED


def test_a_job_with_only_a_tensorboard_ends_with_it() -> None:
    sim = Simulation(orders(role("tensorboard", 1, kind="sidecar")))
    sim.run(sim.all_running)
    for _ in range(100):
        sim.step()
    assert not sim.ended
    sim.handle({"type": "cancel", "by": "ada", "why": "seen enough"})
    sim.run(lambda: sim.ended)
    assert sim.reason() is EndReason.CANCELLED


@pytest.mark.parametrize("running", [True, False])
def test_an_expired_lease_ends_the_job_and_releases_all_containers(running: bool) -> None:
    """During training, and during the wait for containers."""
    sim = Simulation(orders(role("worker", 2)))
    if running:
        sim.run(sim.all_running)
    else:
        sim.capacity = 0
        sim.step()
    sim.handle({"type": "expired", "detail": "The job's lease was not renewed."})
    sim.handle({"type": "cancel", "by": "ada", "why": "too late"})
    sim.run(lambda: sim.ended)
    assert sim.reason() is EndReason.LEASE_EXPIRED
    assert not [agent for agent in sim.agents.values() if agent.running]


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
    sim = Simulation(config)
    sim.run(sim.all_running)
    for name in failures:
        sim.finish(sim.agent(name), "program_error", exit_code=1)
        sim.step()
    sim.succeed()
    sim.run(lambda: sim.ended)
    assert sim.reason() is expected


def test_a_node_that_has_failed_twice_is_avoided() -> None:
    sim = Simulation(orders(role("worker", 2), max_restarts=10), nodes=2)
    for _ in range(2):
        sim.run(sim.all_running)
        bad = next(a.task for a in sim.agents.values() if a.alive and a.node == "node0")
        sim.kill(bad)
    sim.run(sim.all_running)
    assert sim.job.node_faults["node0"] == 2
    assert all(sim.agent(task.name).node == "node1" for task in sim.job.gang)


def test_the_only_node_of_the_local_backend_is_not_avoided() -> None:
    sim = Simulation(orders(role("worker", 1), max_restarts=10), nodes=1)
    for _ in range(3):
        sim.run(sim.all_running)
        sim.job.tasks["worker:0"].node = "local"
        sim.kill("worker:0")
    sim.run(sim.all_running)
    assert not sim.job.node_faults


def test_refusals_of_nodes_are_bounded() -> None:
    sim = Simulation(orders(role("worker", 2, avoid=["node0"])), nodes=1)
    sim.run(sim.all_running)
    assert sum(note.kind == "refused" for note in sim.notes) == 24
    assert all(ask.delayed == (not ask.seat.endswith(".1")) for ask in sim.requests)
    sim = Simulation(orders(role("worker", 3, spread=True)), nodes=4)
    sim.run(sim.all_running)
    assert len({sim.agent(task.name).node for task in sim.job.gang}) == 3


def test_ports_in_use_are_renewed_and_not_counted() -> None:
    sim = Simulation(orders(role("worker", 2), max_restarts=0))
    sim.run(sim.all_running)
    sim.finish(sim.agent("worker:0"), "address_in_use", detail="Address already in use.")
    sim.step()
    sim.run(sim.all_running)
    assert sim.job.epoch == 2
    assert all(member.ports == (9,) for member in sim.starts[-1].members)
    for _ in range(20):
        if sim.job.verdict is not None:
            break
        sim.run(sim.all_running)
        sim.finish(sim.agent("worker:0"), "address_in_use")
        sim.step()
        sim.step()
    sim.run(lambda: sim.ended)
    assert sim.reason() is EndReason.ADDRESS_IN_USE


def test_a_job_ends_at_its_timeout() -> None:
    sim = Simulation(orders(role("worker", 2), timeout=60.0))
    sim.run(lambda: sim.ended)
    assert sim.reason() is EndReason.TIMED_OUT
    assert sim.now < 80


def test_an_agent_that_hangs_while_leaving_does_not_delay_the_job() -> None:
    sim = Simulation(orders(role("worker", 2), save_grace=30.0))
    sim.run(sim.all_running)
    sim.agent("worker:1").stubborn = True
    sim.finish(sim.agent("worker:0"), "succeeded")
    sim.run(lambda: sim.ended, 90)
    assert sim.reason() is EndReason.SUCCEEDED
    assert any("worker:1" in sentence for sentence in sim.job.missing)


def test_a_seat_has_one_agent() -> None:
    sim = Simulation(orders(role("worker", 1)))
    sim.run(sim.all_running)
    seat = sim.job.tasks["worker:0"].seat
    message = {"type": "register", "seat": seat, "nonce": "somebody else", "t": sim.now}
    actions = handle(sim.job, message)
    assert [a.line["type"] for a in actions if isinstance(a, SendMessage)] == ["refused"]


def gang_that_ends(met: bool, framework: str, **config: Any) -> Simulation:
    sim = Simulation(orders(role("worker", 2), framework=framework, policy="all", **config))
    sim.run(sim.all_running)
    if met:
        sim.say(sim.agent("worker:0"), type="state", state="met", epoch=1, attempt=1)
    for name in ("worker:0", "worker:1"):
        sim.finish(sim.agent(name), "succeeded")
    sim.run(lambda: sim.ended, 60)
    return sim


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
def test_a_gang_that_never_used_its_rendezvous(
    met: bool, framework: str, required: bool, expected: EndReason, warned: bool
) -> None:
    sim = gang_that_ends(met, framework, require_collective=required)
    assert sim.reason() is expected
    assert bool(sim.job.warnings) is warned
    assert [note.kind for note in sim.notes].count("warning") == int(warned)


def test_a_rendezvous_of_an_earlier_epoch_does_not_count() -> None:
    sim = Simulation(orders(role("worker", 2), framework="pytorch", policy="all"))
    sim.run(sim.all_running)
    sim.say(sim.agent("worker:0"), type="state", state="met", epoch=1, attempt=1)
    sim.kill("worker:1")
    sim.run(lambda: sim.job.epoch == 2 and sim.all_running())
    for name in ("worker:0", "worker:1"):
        sim.finish(sim.agent(name), "succeeded")
    sim.run(lambda: sim.ended, 60)
    assert "Trainer(num_nodes=2)" in sim.job.warnings[0]


@pytest.mark.parametrize("in_place", [True, False])
def test_a_restarted_coordinator_starts_nothing_before_its_claim_is_checked(in_place: bool) -> None:
    sim = Simulation(orders(role("worker", 2), restart_in_place=in_place))
    sim.run(sim.all_running)
    starts = len(sim.starts)
    sim.handle({"type": "resumed", "unchecked": True})
    for agent in sim.agents.values():
        agent.linked = False
    sim.kill("worker:1")
    for _ in range(60):
        sim.step()
    assert len(sim.starts) == starts
    sim.handle({"type": "checked"})
    sim.run(sim.all_running)
    assert len(sim.starts) > starts
    assert run_to_end(sim) is EndReason.SUCCEEDED
