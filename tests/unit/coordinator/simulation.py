"""Simulation of the agents, containers and links around the state machine of a job."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from submarine_runtime.coordinator.machine import (
    Action,
    ChooseRestorePoint,
    FinishJob,
    JobState,
    RecordEvent,
    ReleaseContainer,
    RequestContainer,
    SendMessage,
    Stage,
    StartTask,
    handle,
    lost_agent_events,
    new_job_state,
    record_heartbeat,
)
from submarine_runtime.protocol import CoordinatorConfig, EndReason, Role, State
from submarine_runtime.restore_points import RestorePoint
from tests.configurations import make_coordinator_config, make_role

LOST_AFTER = 25.0
#: Seconds in which an agent without a link ends its program; less than the margin.
KILLING = 1.9


def orders(*roles: Role, **config: Any) -> CoordinatorConfig:
    return make_coordinator_config(roles, kill_grace=2.0, **config)


def role(name: str, instances: int = 1, **more: Any) -> Role:
    return make_role(name, instances, **more)


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


class Simulation:
    """Containers, agents and links with one clock."""

    def __init__(self, config: CoordinatorConfig, nodes: int = 3) -> None:
        self.job: JobState = new_job_state(config)
        self.now = 0.0
        self.agents: dict[str, Agent] = {}
        self.pending_requests: list[tuple[str, str]] = []
        self.requests: list[RequestContainer] = []
        self.capacity = 1000
        self.nodes = nodes
        self.notes: list[RecordEvent] = []
        self.surveys: list[int] = []
        self.answers = True
        self.points: dict[int, RestorePoint] = {}
        self.starts: list[StartTask] = []
        self.events: list[dict[str, Any]] = []
        self.ended = False
        self.ports = [1]
        self.synced = True
        self.handle({"type": "begin"})

    def handle(self, event: dict[str, Any]) -> None:
        # The journal holds JSON only.
        event = json.loads(json.dumps({**event, "t": self.now}))
        actions = handle(self.job, event)
        self.events.append(event)
        for action in actions:
            self.do(action)

    def do(self, action: Action) -> None:
        if isinstance(action, RequestContainer):
            assert all(seat != action.seat for _, seat in self.pending_requests)
            self.pending_requests.append((action.task, action.seat))
            self.requests.append(action)
        elif isinstance(action, ReleaseContainer):
            self.pending_requests = [(t, s) for t, s in self.pending_requests if s != action.seat]
            agent = self.agents.get(action.seat)
            if agent is not None and agent.linked:
                agent.alive, agent.running, agent.linked = False, None, False
        elif isinstance(action, StartTask):
            self.start(action)
        elif isinstance(action, SendMessage):
            agent = self.agents.get(action.seat)
            if agent is not None and agent.linked and agent.alive:
                self.obey(agent, action.line)
        elif isinstance(action, ChooseRestorePoint):
            self.surveys.append(action.epoch)
        elif isinstance(action, RecordEvent):
            self.notes.append(action)
        elif isinstance(action, FinishJob):
            self.ended = True

    def start(self, start: StartTask) -> None:
        assert self.job.verdict is None, "a program was started after the verdict"
        self.starts.append(start)
        agent = self.agents[start.seat]
        mine = self.job.tasks[agent.task]
        for other in self.agents.values():
            if other.running is None or other is agent:
                continue
            assert other.task != agent.task, "two programs of one task run at once"
            theirs = self.job.tasks[other.task]
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
            if self.synced:
                self.say(agent, type="synced", epoch=epoch, attempt=attempt)

    def register(self, agent: Agent, running: Any = None) -> None:
        agent.linked = agent.alive = True
        agent.acked = self.now
        words: dict[str, Any] = {
            "task": agent.task,
            "host": agent.node,
            "node": agent.node,
            "nonce": agent.seat,
        }
        words.update(address="10.0.0.1", ports=self.ports, gpus=[], running=running)
        self.handle({"type": "register", "seat": agent.seat, **words})

    def step(self, seconds: float = 0.5) -> None:
        """Advance the clock: place containers, deliver messages, end agents that are cut off."""
        self.now += seconds
        held = sum(agent.alive and not agent.over for agent in self.agents.values())
        while self.pending_requests and held < self.capacity:
            task, seat = self.pending_requests.pop(0)
            node = f"node{len(self.agents) % self.nodes}"
            self.agents[seat] = agent = Agent(seat, task, node)
            held += 1
            self.register(agent)
            if agent.linked:
                self.say(agent, type="state", state="ready")
        for agent in list(self.agents.values()):
            if agent.alive and agent.linked:
                agent.acked = self.now
                record_heartbeat(self.job, agent.seat, self.now)
                lines, agent.outbox = agent.outbox, []
                for line in lines:
                    self.handle(line)
            elif agent.alive and self.now - agent.acked >= LOST_AFTER + KILLING:
                agent.running = None  # The silence watchdog of the agent.
        while self.surveys and self.answers:
            epoch = self.surveys.pop(0)
            choice = self.points.get(epoch, RestorePoint()).to_json()
            self.handle({"type": "restore_point", "epoch": epoch, "choice": choice})
        for event in lost_agent_events(self.job, self.now):
            self.handle(event)
        self.handle({"type": "tick"})

    def run(self, until: Callable[[], bool], seconds: float = 5000.0) -> None:
        end = self.now + seconds
        while not until():
            assert self.now < end, f"still {self.job.phase}, {[t.stage for t in self.tasks]}"
            self.step()

    @property
    def state(self) -> State:
        return self.job.state

    @property
    def tasks(self) -> list[Any]:
        return list(self.job.tasks.values())

    def agent(self, task: str) -> Agent:
        return self.agents[self.job.tasks[task].seat]

    def all_running(self) -> bool:
        return all(task.stage is Stage.RUNNING for task in self.job.gang)

    def kill(self, task: str, reason: str = "agent_lost") -> None:
        agent = self.agent(task)
        agent.alive, agent.linked, agent.running = False, False, None
        self.handle({"type": "unlinked", "seat": agent.seat})
        self.handle({"type": "gone", "seat": agent.seat, "reason": reason, "detail": "x"})

    def succeed(self) -> None:
        for agent in self.agents.values():
            self.finish(agent, "succeeded", exit_code=0)

    def reason(self) -> EndReason:
        assert self.job.verdict is not None
        return self.job.verdict.outcome.reason


def run_to_end(sim: Simulation) -> EndReason:
    sim.run(sim.all_running)
    sim.succeed()
    sim.run(lambda: sim.ended)
    return sim.reason()
