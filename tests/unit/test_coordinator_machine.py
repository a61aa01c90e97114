"""The machine of a distributed job against a simulated world: agents, containers, cut links."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submarine_runtime.coordinator import machine
from submarine_runtime.coordinator.actions import Action, Ask, End, Note, Release, Send, Start
from submarine_runtime.coordinator.gang import waiting_sentence
from submarine_runtime.coordinator.losses import silent
from submarine_runtime.coordinator.play import Act, Play, Stage, new_play
from submarine_runtime.protocol.coordination import CoordinatorConfig, RoleOrders
from submarine_runtime.protocol.launch import JobStore
from submarine_runtime.protocol.reasons import EndReason
from submarine_runtime.protocol.states import State

LOST_AFTER = 25.0
#: Seconds that an agent which was cut off takes to end its program; less than the margin.
KILLING = 1.9


def orders(*roles: RoleOrders, **config: Any) -> CoordinatorConfig:
    return CoordinatorConfig(
        job_id="play-20261121-0a1b",
        name="play",
        user="ada",
        backend="local",
        intent="1",
        created=0.0,
        store=JobStore("local", "."),
        job_dir=".",
        roles=list(roles),
        kill_grace=2.0,
        **config,
    )


def role(name: str, instances: int = 1, **more: Any) -> RoleOrders:
    return RoleOrders(name, name, instances, **more)


@dataclass
class Agent:
    seat: str
    task: str
    node: str
    linked: bool = True
    alive: bool = True
    acked: float = 0.0
    running: tuple[int, int] | None = None
    over: bool = False
    stubborn: bool = False
    outbox: list[dict[str, Any]] = field(default_factory=list)


class World:
    """Containers, agents and links as they would behave, with one clock for all."""

    def __init__(self, config: CoordinatorConfig, nodes: int = 3) -> None:
        self.play: Play = new_play(config)
        self.now = 0.0
        self.agents: dict[str, Agent] = {}
        self.asked: list[tuple[str, str]] = []
        self.asks: list[Ask] = []
        self.capacity = 1000
        self.nodes = nodes
        self.notes: list[Note] = []
        self.starts: list[Start] = []
        self.told: list[dict[str, Any]] = []
        self.ended = False
        self.tell({"type": "begin"})

    def tell(self, message: dict[str, Any]) -> None:
        message = {**message, "t": self.now}
        message = json.loads(json.dumps(message))  # a journal holds nothing else
        actions = machine.apply(self.play, message)
        self.told.append(message)
        for action in actions:
            self.do(action)

    def do(self, action: Action) -> None:
        if isinstance(action, Ask):
            assert all(seat != action.seat for _, seat in self.asked)
            self.asked.append((action.task, action.seat))
            self.asks.append(action)
        elif isinstance(action, Release):
            self.asked = [(t, s) for t, s in self.asked if s != action.seat]
            agent = self.agents.get(action.seat)
            if agent is not None and agent.linked:
                agent.alive, agent.running, agent.linked = False, None, False
        elif isinstance(action, Start):
            self.start(action)
        elif isinstance(action, Send):
            agent = self.agents.get(action.seat)
            if agent is not None and agent.linked and agent.alive:
                self.obey(agent, action.line)
        elif isinstance(action, Note):
            self.notes.append(action)
        elif isinstance(action, End):
            self.ended = True

    def start(self, start: Start) -> None:
        assert self.play.verdict is None, "a program was started after the verdict"
        self.starts.append(start)
        agent = self.agents[start.seat]
        mine = self.play.tasks[agent.task]
        for other in self.agents.values():
            if other.running is None or other is agent:
                continue
            assert other.task != agent.task, "two programs of one task run at once"
            theirs = self.play.tasks[other.task]
            if mine.in_gang and theirs.in_gang and other.running[0] != start.epoch:
                pytest.fail("programs of two epochs run at once")
        assert agent.running is None
        if agent.linked and agent.alive:
            agent.running = (start.epoch, start.attempt)
            self.say(agent, type="state", state="running", epoch=start.epoch, attempt=start.attempt)

    def obey(self, agent: Agent, line: dict[str, Any]) -> None:
        if line["type"] == "stop" and not agent.stubborn:
            self.finish(agent, "killed_by_signal")
        elif line["type"] == "leave":
            self.finish(agent, "killed_by_signal")
            agent.over = True
            self.say(agent, type="left")
        elif line["type"] == "refused":
            agent.alive, agent.running, agent.linked = False, None, False
        elif line["type"] == "ports":
            self.say(agent, type="ports", ports=[9])

    def say(self, agent: Agent, **line: Any) -> None:
        agent.outbox.append({"seat": agent.seat, **line})

    def finish(self, agent: Agent, reason: str, **more: Any) -> None:
        if agent.running is not None:
            epoch, attempt = agent.running
            agent.running = None
            words = {"epoch": epoch, "attempt": attempt, "reason": reason, **more}
            self.say(agent, type="state", state="ended", **words)

    def register(self, agent: Agent, running: Any = None) -> None:
        agent.linked = agent.alive = True
        agent.acked = self.now
        words = {"task": agent.task, "host": agent.node, "node": agent.node, "nonce": agent.seat}
        words.update(address="10.0.0.1", ports=[1], gpus=[], running=running)
        self.tell({"type": "register", "seat": agent.seat, **words})

    def step(self, seconds: float = 0.5) -> None:
        """Time goes by: containers come, agents speak and beat, those cut off end by themselves."""
        self.now += seconds
        held = sum(agent.alive and not agent.over for agent in self.agents.values())
        while self.asked and held < self.capacity:
            task, seat = self.asked.pop(0)
            node = f"node{len(self.agents) % self.nodes}"
            self.agents[seat] = agent = Agent(seat, task, node)
            held += 1
            self.register(agent)
            if agent.linked:
                self.say(agent, type="state", state="ready")
        for agent in list(self.agents.values()):
            if agent.alive and agent.linked:
                agent.acked = self.now
                machine.heard(self.play, agent.seat, self.now)
                lines, agent.outbox = agent.outbox, []
                for line in lines:
                    self.tell(line)
            elif agent.alive and self.now - agent.acked >= LOST_AFTER + KILLING:
                agent.running = None  # its deadman
        for message in silent(self.play, self.now):
            self.tell(message)
        self.tell({"type": "tick"})

    def run(self, until: Callable[[], bool], seconds: float = 5000.0) -> None:
        end = self.now + seconds
        while not until():
            assert self.now < end, f"still {self.play.act}, {[t.stage for t in self.tasks]}"
            self.step()

    @property
    def tasks(self) -> list[Any]:
        return list(self.play.tasks.values())

    def agent(self, task: str) -> Agent:
        return self.agents[self.play.tasks[task].seat]

    def all_running(self) -> bool:
        return all(task.stage is Stage.RUNNING for task in self.play.gang)

    def kill(self, task: str, reason: str = "agent_lost") -> None:
        agent = self.agent(task)
        agent.alive, agent.linked, agent.running = False, False, None
        self.tell({"type": "unlinked", "seat": agent.seat})
        self.tell({"type": "gone", "seat": agent.seat, "reason": reason, "detail": "x"})

    def succeed(self) -> None:
        for agent in self.agents.values():
            self.finish(agent, "succeeded", exit_code=0)

    def reason(self) -> EndReason:
        assert self.play.verdict is not None
        return self.play.verdict.outcome.reason


def run_to_end(world: World) -> EndReason:
    world.run(world.all_running)
    world.succeed()
    world.run(lambda: world.ended)
    return world.reason()


def test_programs_start_together_and_only_when_every_task_is_ready() -> None:
    world = World(orders(role("worker", 3), role("ps", 1, kind="untracked")))
    world.capacity = 3
    for _ in range(40):
        world.step()
    assert not world.starts
    assert world.play.state is State.PENDING
    assert waiting_sentence(world.play, world.now).startswith("3 of 4 containers, waiting 20 s for")
    world.capacity = 4
    world.run(world.all_running)
    assert [start.epoch for start in world.starts] == [1, 1, 1, 1]
    assert {m.task for m in world.starts[0].members} == {"worker:0", "worker:1", "worker:2", "ps:0"}
    assert world.play.state is State.RUNNING
    world.succeed()
    world.run(lambda: world.ended)
    assert world.reason() is EndReason.SUCCEEDED
    assert not world.play.missing


def test_a_ps_never_keeps_a_job_alive() -> None:
    world = World(orders(role("worker", 2), role("ps", 1, kind="untracked"), policy="all"))
    world.run(world.all_running)
    for name in ("worker:0", "worker:1"):
        world.finish(world.agent(name), "succeeded")
    world.run(lambda: world.ended, 60)
    assert world.reason() is EndReason.SUCCEEDED


@pytest.mark.parametrize("in_place", [True, False])
def test_a_killed_task_is_made_good(in_place: bool) -> None:
    world = World(orders(role("worker", 3), restart_in_place=in_place))
    world.run(world.all_running)
    world.kill("worker:1")
    world.run(world.all_running)
    assert world.play.epoch == (1 if in_place else 2)
    assert world.starts[-1].restore
    assert len(world.starts) == (4 if in_place else 6)
    # The old epoch's connections keep its ports: containers that are kept get new ones.
    kept = [m.ports for m in world.starts[-1].members if m.task != "worker:1"]
    assert kept == ([(1,), (1,)] if in_place else [(9,), (9,)])
    assert run_to_end(world) is EndReason.SUCCEEDED
    assert world.play.restarts == 1


def test_faults_are_counted_but_not_those_of_nobody() -> None:
    world = World(orders(role("worker", 2), max_restarts=1))
    for reason in ("preempted", "node_lost", "preempted", "agent_lost"):
        world.run(world.all_running)
        world.kill("worker:0", reason)
    world.run(world.all_running)
    world.finish(world.agent("worker:1"), "program_error", exit_code=3, detail="no luck")
    world.run(lambda: world.ended)
    assert world.reason() is EndReason.PROGRAM_ERROR
    assert world.play.verdict is not None
    assert world.play.verdict.outcome.exit_code == 3
    assert "worker:1: no luck" in world.play.verdict.outcome.detail


def test_what_would_come_again_is_not_tried_again() -> None:
    world = World(orders(role("worker", 2)))
    world.run(world.all_running)
    for agent in world.agents.values():
        world.finish(agent, "import_error", detail="No module named torch")
    world.run(lambda: world.ended)
    assert world.reason() is EndReason.IMPORT_ERROR
    assert len(world.starts) == 2
    world = World(orders(role("worker", 2)))
    world.run(world.all_running)
    world.finish(world.agent("worker:0"), "program_error", retry="no")
    world.run(lambda: world.ended)
    assert len(world.starts) == 2


def test_a_restart_is_told_in_sentences() -> None:
    world = World(orders(role("worker", 2), restart_in_place=True))
    world.run(world.all_running)
    world.finish(world.agent("worker:1"), "program_error", exit_code=1, detail="Exit code 1: oh")
    world.run(lambda: len(world.starts) == 3)
    (told,) = [note.detail for note in world.notes if note.kind == "restart"]
    assert told == "worker:1: Exit code 1: oh. Restarting the task."


def test_a_lost_task_is_replaced_only_when_its_program_has_ended() -> None:
    world = World(orders(role("worker", 2), restart_in_place=True))
    world.run(world.all_running)
    cut = world.agent("worker:1")
    cut.linked = False
    began = cut.acked
    world.run(lambda: len(world.starts) == 3)  # asserts that the old program does not run
    assert world.now >= began + LOST_AFTER + 2.0
    assert run_to_end(world) is EndReason.SUCCEEDED


def test_a_link_that_comes_back_in_time_costs_nothing() -> None:
    world = World(orders(role("worker", 2)))
    world.run(world.all_running)
    cut = world.agent("worker:1")
    cut.linked = False
    world.tell({"type": "unlinked", "seat": cut.seat})
    for _ in range(40):
        world.step()
    epoch, attempt = cut.running or (0, 0)
    world.register(cut, {"epoch": epoch, "attempt": attempt, "state": "running"})
    assert run_to_end(world) is EndReason.SUCCEEDED
    assert len(world.starts) == 2


def test_the_gang_lets_go_tries_again_and_gives_up() -> None:
    world = World(orders(role("worker", 4, gpus=1), gang_timeout=30.0, gang_retries=2))
    world.capacity = 2
    released = 0
    while not world.ended:
        world.step()
        resting = world.play.act is Act.RESTING
        if resting:
            held = [a for a in world.agents.values() if a.alive and not a.over]
            released += not held
        assert world.now < 2000
    assert released > 0
    assert world.reason() is EndReason.GANG_TIMED_OUT
    assert world.play.verdict is not None
    sentence = world.play.verdict.outcome.detail
    assert sentence == "2 of 4 containers, waiting 30 s for 2 with 1 GPU each."
    assert world.play.gang_tries == 3


def test_the_minimum_is_enough_after_a_while() -> None:
    world = World(orders(role("worker", 4, least=2)))
    world.capacity = 3
    world.run(lambda: len(world.starts) == 3, 60)
    assert [m.task for m in world.starts[0].members] == ["worker:0", "worker:1", "worker:2"]
    assert world.now >= 10
    for agent in world.agents.values():
        world.finish(agent, "succeeded")
    world.run(lambda: world.ended)
    assert world.reason() is EndReason.SUCCEEDED


def test_roles_start_in_order() -> None:
    world = World(orders(role("worker", 2, after=["ps"]), role("ps", 1, kind="untracked")))
    world.run(world.all_running)
    assert world.agents[world.starts[0].seat].task == "ps:0"


def test_a_sidecar_is_nobodys_business() -> None:
    world = World(orders(role("worker", 1), role("tensorboard", 1, kind="sidecar")))
    world.run(world.all_running)
    for _ in range(6):
        world.run(lambda: bool(world.play.tasks["tensorboard:0"].seat in world.agents), 50)
        world.step()
        if world.play.tasks["tensorboard:0"].stage is Stage.RUNNING:
            world.finish(world.agent("tensorboard:0"), "program_error")
        world.step()
        world.step()
    assert world.play.epoch == 1
    assert world.play.tasks["tensorboard:0"].failed
    world.succeed()
    world.run(lambda: world.ended)
    assert world.reason() is EndReason.SUCCEEDED


def test_a_job_of_a_tensorboard_alone_lives_as_long_as_it() -> None:
    world = World(orders(role("tensorboard", 1, kind="sidecar")))
    world.run(world.all_running)
    for _ in range(100):
        world.step()
    assert not world.ended
    world.tell({"type": "cancel", "by": "ada", "why": "seen enough"})
    world.run(lambda: world.ended)
    assert world.reason() is EndReason.CANCELLED


@pytest.mark.parametrize("running", [True, False])
def test_a_job_whose_lease_is_over_ends_and_gives_everything_back(running: bool) -> None:
    """While it trains, and while it still waits for containers."""
    world = World(orders(role("worker", 2)))
    if running:
        world.run(world.all_running)
    else:
        world.capacity = 0
        world.step()
    world.tell({"type": "expired", "detail": "Nobody gave a sign of life."})
    world.tell({"type": "cancel", "by": "ada", "why": "too late"})
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
    world = World(config)
    world.run(world.all_running)
    for name in failures:
        world.finish(world.agent(name), "program_error", exit_code=1)
        world.step()
    world.succeed()
    world.run(lambda: world.ended)
    assert world.reason() is expected


def test_a_node_that_has_failed_twice_is_avoided() -> None:
    world = World(orders(role("worker", 2), max_restarts=10), nodes=2)
    for _ in range(2):
        world.run(world.all_running)
        bad = next(a.task for a in world.agents.values() if a.alive and a.node == "node0")
        world.kill(bad)
    world.run(world.all_running)
    assert world.play.blamed["node0"] == 2
    assert all(world.agent(task.name).node == "node1" for task in world.play.gang)


def test_the_only_node_of_the_local_backend_is_not_avoided() -> None:
    world = World(orders(role("worker", 1), max_restarts=10), nodes=1)
    for _ in range(3):
        world.run(world.all_running)
        world.play.tasks["worker:0"].node = "local"
        world.kill("worker:0")
    world.run(world.all_running)
    assert not world.play.blamed


def test_avoiding_and_spreading_are_bounded() -> None:
    world = World(orders(role("worker", 2, avoid=["node0"])), nodes=1)
    world.run(world.all_running)
    assert sum(note.kind == "refused" for note in world.notes) == 24
    assert all(ask.elsewhere == (not ask.seat.endswith(".1")) for ask in world.asks)
    world = World(orders(role("worker", 3, spread=True)), nodes=4)
    world.run(world.all_running)
    assert len({world.agent(task.name).node for task in world.play.gang}) == 3


def test_taken_ports_are_renewed_and_not_counted() -> None:
    world = World(orders(role("worker", 2), max_restarts=0))
    world.run(world.all_running)
    world.finish(world.agent("worker:0"), "address_in_use", detail="Address already in use.")
    world.step()
    world.run(world.all_running)
    assert world.play.epoch == 2
    assert all(member.ports == (9,) for member in world.starts[-1].members)
    for _ in range(20):
        if world.play.verdict is not None:
            break
        world.run(world.all_running)
        world.finish(world.agent("worker:0"), "address_in_use")
        world.step()
        world.step()
    world.run(lambda: world.ended)
    assert world.reason() is EndReason.ADDRESS_IN_USE


def test_a_job_that_runs_too_long_ends() -> None:
    world = World(orders(role("worker", 2), timeout=60.0))
    world.run(lambda: world.ended)
    assert world.reason() is EndReason.TIMED_OUT
    assert world.now < 80


def test_an_agent_that_hangs_in_leaving_does_not_keep_the_job() -> None:
    world = World(orders(role("worker", 2), save_grace=30.0))
    world.run(world.all_running)
    world.agent("worker:1").stubborn = True
    world.finish(world.agent("worker:0"), "succeeded")
    world.run(lambda: world.ended, 90)
    assert world.reason() is EndReason.SUCCEEDED
    assert any("worker:1" in sentence for sentence in world.play.missing)


def test_a_seat_has_one_agent() -> None:
    world = World(orders(role("worker", 1)))
    world.run(world.all_running)
    seat = world.play.tasks["worker:0"].seat
    message = {"type": "register", "seat": seat, "nonce": "somebody else", "t": world.now}
    actions = machine.apply(world.play, message)
    assert [a.line["type"] for a in actions if isinstance(a, Send)] == ["refused"]


FAULTS = st.tuples(
    st.integers(0, 60),
    st.sampled_from(
        [
            "kill",
            "preempt",
            "fail",
            "cut",
            "back",
            "port",
            "stubborn",
            "cancel",
            "expire",
            "succeed",
            "squeeze",
        ]
    ),
    st.integers(0, 3),
)


def disturb(world: World, fault: str, index: int) -> None:
    names = list(world.play.tasks)
    task = world.play.tasks[names[index % len(names)]]
    agent = world.agents.get(task.seat)
    if fault == "squeeze":
        world.capacity = 2 + index * 3
    elif fault == "cancel":
        if index == 0:
            world.tell({"type": "cancel", "by": "ada", "why": ""})
    elif fault == "expire":
        if index == 0:
            world.tell({"type": "expired", "detail": "Nobody gave a sign of life."})
    elif agent is None or not agent.alive:
        return
    elif fault in ("kill", "preempt"):
        world.kill(task.name, "preempted" if fault == "preempt" else "agent_lost")
    elif fault == "cut":
        agent.linked = False
        world.tell({"type": "unlinked", "seat": agent.seat})
    elif fault == "back" and not agent.linked:
        words = None
        if agent.running is not None:
            words = {"epoch": agent.running[0], "attempt": agent.running[1], "state": "running"}
        world.register(agent, words)
    elif fault == "stubborn":
        agent.stubborn = True
    elif agent.linked and not agent.over:
        reasons = {"fail": "program_error", "port": "address_in_use", "succeed": "succeeded"}
        if fault in reasons:
            world.finish(agent, reasons[fault])


@settings(max_examples=200)
@given(
    st.lists(FAULTS, min_size=2, max_size=25),
    st.booleans(),
    st.sampled_from(["chief", "all", "any", "fraction"]),
    st.sampled_from([None, 40.0]),
    st.sampled_from([None, 2]),
)
def test_whatever_happens_the_job_ends_and_no_two_attempts_run_at_once(
    faults: list[tuple[int, str, int]],
    in_place: bool,
    policy: str,
    gang_timeout: float | None,
    least: int | None,
) -> None:
    config = orders(
        role("worker", 3, least=least),
        role("ps", 1, kind="untracked"),
        policy=policy,
        allowed_failures=0.5,
        restart_in_place=in_place,
        gang_timeout=gang_timeout,
        max_restarts=2,
    )
    world = World(config)
    for pause, fault, index in faults:
        for _ in range(pause):
            world.step()
        disturb(world, fault, index)
    world.capacity = 1000
    end = world.now + 4000
    while not world.ended:
        world.step()
        if all(task.stage in (Stage.RUNNING, Stage.ENDED, Stage.GONE) for task in world.play.gang):
            world.succeed()
        assert world.now < end, [(t.name, t.stage, t.linked) for t in world.tasks]
    assert world.play.restarts <= 2
    # The journal alone leads to the same job.
    again = new_play(config)
    for message in world.told:
        machine.apply(again, message)
    assert again.verdict == world.play.verdict
    assert (again.epoch, again.restarts) == (world.play.epoch, world.play.restarts)
    assert again.act is Act.OVER
