"""Random faults in a distributed job: it ends, and no two attempts run at once."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import example, given, settings, strategies as st

from submarine_runtime.coordinator.machine import (
    JobPhase,
    Stage,
    faults as faults_of_tasks,
    handle,
    new_job_state,
)
from submarine_runtime.protocol import CoordinatorConfig
from submarine_runtime.restore_points import Progress
from tests.random_examples import examples
from tests.unit.coordinator.simulation import Simulation, orders, role

FAULTS = st.tuples(
    st.integers(0, 60),
    st.sampled_from(
        [
            "kill",
            "preempt",
            "fail",
            "abort",
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
    st.integers(0, 4),
)


def disturb(sim: Simulation, fault: str, index: int) -> None:
    names = list(sim.job.tasks)
    task = sim.job.tasks[names[index % len(names)]]
    agent = sim.agents.get(task.seat)
    if fault == "squeeze":
        sim.capacity = 2 + index * 3
    elif fault == "cancel":
        if index == 0:
            sim.handle({"type": "cancel", "by": "ada", "why": ""})
    elif fault == "expire":
        if index == 0:
            sim.handle({"type": "expired", "detail": "The job's lease was not renewed."})
    elif agent is None or not agent.alive:
        return
    elif fault in ("kill", "preempt"):
        sim.kill(task.name, "preempted" if fault == "preempt" else "agent_lost")
    elif fault == "cut":
        agent.linked = False
        sim.handle({"type": "unlinked", "seat": agent.seat})
    elif fault == "back" and not agent.linked:
        words = None
        if agent.running is not None:
            words = {"epoch": agent.running[0], "attempt": agent.running[1], "state": "running"}
        sim.register(agent, words)
    elif fault == "stubborn":
        agent.stubborn = True
    elif agent.linked and not agent.over:
        reasons = {"fail": "program_error", "port": "address_in_use", "succeed": "succeeded"}
        if fault == "abort":
            sim.finish(agent, "killed_by_signal", signal=6)
        elif fault in reasons:
            sim.finish(agent, reasons[fault])


#: A node is cut off while the gang's containers are released after ``gang_timeout``.
CUT_AT_RELEASE = [
    (11, "fail", 0),
    (2, "stubborn", 4),
    (56, "cut", 1),
    (49, "squeeze", 1),
    (10, "preempt", 1),
    (36, "cut", 4),
    (51, "abort", 2),
]


@pytest.mark.slow
@example(CUT_AT_RELEASE, True, "fraction", 40.0, None, None, Progress.SNAPSHOT)
@settings(max_examples=examples(200))
@given(
    st.lists(FAULTS, min_size=2, max_size=25),
    st.booleans(),
    st.sampled_from(["chief", "all", "any", "fraction"]),
    st.sampled_from([None, 40.0]),
    st.sampled_from([None, 2]),
    st.sampled_from([None, 2]),
    st.sampled_from(Progress),
)
def test_random_faults_end_the_job_and_no_two_attempts_run_at_once(
    faults: list[tuple[int, str, int]],
    in_place: bool,
    policy: str,
    gang_timeout: float | None,
    least: int | None,
    max_restarts: int | None,
    progress: Progress,
) -> None:
    config = orders(
        role("worker", 3, least=least),
        role("ps", 1, kind="untracked"),
        role("evaluator", 1),
        policy=policy,
        allowed_failures=0.5,
        restart_in_place=in_place,
        gang_timeout=gang_timeout,
        max_restarts=max_restarts,
    )
    with patch.object(faults_of_tasks, "progress_since_start", lambda job: progress):
        _play_to_the_end(config, faults)


def _play_to_the_end(config: CoordinatorConfig, faults: list[tuple[int, str, int]]) -> None:
    sim = Simulation(config)
    for pause, fault, index in faults:
        for _ in range(pause):
            sim.step()
        disturb(sim, fault, index)
    sim.capacity = 1000
    end = sim.now + 4000
    while not sim.ended:
        sim.step()
        if all(task.stage in (Stage.RUNNING, Stage.ENDED, Stage.GONE) for task in sim.job.gang):
            sim.succeed()
        assert sim.now < end, [(t.name, t.stage, t.linked) for t in sim.tasks]
    assert sim.job.restarts <= (3 if config.spec.max_restarts is None else 2)
    # A replay of the journal gives the same state.
    again = new_job_state(config)
    for message in sim.events:
        handle(again, message)
    assert again.verdict == sim.job.verdict
    assert (again.epoch, again.restarts) == (sim.job.epoch, sim.job.restarts)
    assert again.phase is JobPhase.ENDED
