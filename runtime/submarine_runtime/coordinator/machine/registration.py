"""Registration of agents: accept an agent, accept it again after a disconnect, or refuse it.

The functions change a ``JobState`` and add to its actions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Mapping

from submarine_runtime.coordinator.machine import restore_state
from submarine_runtime.coordinator.machine.actions import ReleaseContainer, SendMessage
from submarine_runtime.coordinator.machine.faults import MAX_NODE_FAULTS
from submarine_runtime.coordinator.machine.gang import request_container, start_action
from submarine_runtime.coordinator.machine.state import (
    ACTIVE,
    Event,
    JobState,
    Outcome,
    Stage,
    Task,
)
from submarine_runtime.protocol import EndReason, Member
from submarine_runtime.translation import _

#: Containers of one task that are released because of their node; then any node is accepted.
MAX_REFUSALS = 12
MAX_PORTS = 64


def task_of_seat(job: JobState, event: Event) -> Task | None:
    """Return the task that the event's seat belongs to now; None for any other seat."""
    task = job.seats.get(str(event.get("seat")))
    return task if task is not None and task.seat == event.get("seat") else None


def is_current(task: Task, event: Event) -> bool:
    """Whether an event is about the current attempt of the task."""
    return event.get("epoch") == task.epoch and event.get("attempt") == task.attempt


def outcome_of(event: Event) -> Outcome:
    """Return how a program ended; an unknown reason counts as ``program_error``."""
    word = event.get("reason")
    reason = next((known for known in EndReason if known == word), EndReason.PROGRAM_ERROR)
    failure = event.get("failure")
    return Outcome(
        reason,
        str(event.get("detail") or "")[:2000],
        _number(event.get("exit_code")),
        _number(event.get("signal")),
        dict(failure) if isinstance(failure, Mapping) else None,
        float(failed) if isinstance(failed := event.get("failed"), (int, float)) else None,
    )


def container_placed(job: JobState, event: Event, now: float) -> None:
    """Handle ``placed``: a container was granted; its agent is not there yet."""
    task = task_of_seat(job, event)
    if task is not None and task.stage is Stage.REQUESTED and task.placed_at is None:
        task.placed_at, task.placed_on = now, str(event.get("node") or "")[:256]


def link_closed(job: JobState, event: Event, now: float) -> None:
    """Handle ``unlinked``: a link was closed; the agent may connect again until it is lost."""
    task = task_of_seat(job, event)
    if task is not None:
        task.linked = False


def ports_reserved(job: JobState, event: Event, now: float) -> None:
    """Handle ``ports``: the agent has reserved new ports."""
    task = task_of_seat(job, event)
    if task is not None and task.member is not None:
        task.ports_requested = False
        task.member = replace(task.member, ports=port_numbers(event))


def register_agent(job: JobState, event: Event, now: float) -> None:
    """Handle ``register``: accept an agent, accept it again, or refuse it."""
    seat, nonce = str(event.get("seat")), str(event.get("nonce") or "")
    task = task_of_seat(job, event)
    if task is None or task.stage in (Stage.NONE, Stage.GONE):
        _refuse_agent(job, seat, _("this seat was assigned to another container"))
    elif task.nonce and task.nonce != nonce:
        _refuse_agent(job, seat, _("another agent has this seat"))
    elif task.stage is Stage.REQUESTED:
        _register_first(job, task, event, nonce, now)
    else:
        _register_again(job, task, event, now)


def _refuse_agent(job: JobState, seat: str, why: str) -> None:
    job.actions.append(SendMessage(seat, {"type": "refused", "why": why}))


def _register_first(job: JobState, task: Task, event: Event, nonce: str, now: float) -> None:
    node = str(event.get("node") or event.get("host") or "")[:256]
    host = str(event.get("host") or "")[:256]
    why = _rejection_reason(job, task, node, host)
    if why and task.refusals < MAX_REFUSALS and job.verdict is None:
        task.refusals += 1
        _refuse_agent(job, task.seat, why)
        job.add_event(
            "refused",
            _("{task} on {node}: {why}").format(task=task.name, node=node, why=why),
            task.name,
        )
        old = task.seat
        request_container(job, task, now, delayed=True)
        job.seats.pop(old, None)
        job.actions.append(ReleaseContainer(old))
        return
    task.nonce, task.node, task.member = nonce, node, member_of(task, event)
    task.linked, task.last_contact, task.stage = True, now, Stage.PREPARING
    task.waiting_since = None
    _welcome(job, task)


def _welcome(job: JobState, task: Task) -> None:
    config = job.config
    line = {"type": "welcome", "heartbeat": config.heartbeat, "lost_after": config.lost_after}
    job.actions.append(SendMessage(task.seat, line))


def _rejection_reason(job: JobState, task: Task, node: str, host: str) -> str:
    if host in task.role.avoid or node in task.role.avoid:
        return _("the job avoids this node")
    if job.node_faults.get(node, 0) >= MAX_NODE_FAULTS:
        return _("this node has failed twice")
    if task.role.spread:
        for other in job.tasks.values():
            same = other.role is task.role and other is not task
            if same and other.node == node and other.member is not None:
                return _("{other} runs on this node already, and the role is spread out").format(
                    other=other.name
                )
    return ""


def _register_again(job: JobState, task: Task, event: Event, now: float) -> None:
    """Accept an agent again and repeat the messages that it may have missed."""
    task.linked, task.last_contact = True, now
    task.member = member_of(task, event)
    _welcome(job, task)
    running = event.get("running")
    running = running if isinstance(running, Mapping) else None
    same = running is not None and is_current(task, running)
    if task.stage is Stage.STARTING and not same and not job.claim_unchecked:
        job.actions.append(start_action(job, task))
    if same and running is not None and running.get("synced"):
        task.synced = True
    restore_state.repeat_requests(job, task)
    if task.stage is Stage.STOPPING:
        if running is None:
            task.stage, task.stop_deadline = Stage.ENDED, None
        else:
            grace = job.config.kill_grace
            job.actions.append(SendMessage(task.seat, {"type": "stop", "why": "", "grace": grace}))
    elif task.stage is Stage.LEAVING:
        job.actions.append(SendMessage(task.seat, {"type": "leave"}))
    if task.ports_requested and task.stage not in ACTIVE:
        job.actions.append(SendMessage(task.seat, {"type": "ports"}))


def member_of(task: Task, event: Event) -> Member:
    """Return the gang member that the other tasks receive."""
    extra = event.get("extra")
    gpus = event.get("gpus")
    return Member(
        task=task.name,
        role=task.role.name,
        index=task.index,
        host=str(event.get("host") or "")[:256],
        address=str(event.get("address") or "")[:64],
        ports=port_numbers(event),
        gpus=len(gpus) if isinstance(gpus, (list, tuple)) else int(gpus or 0),
        kind=task.kind,
        processes=max(1, int(event.get("processes") or 1)),
        extra=dict(extra) if isinstance(extra, Mapping) else {},
    )


def port_numbers(event: Event) -> tuple[int, ...]:
    """Return the ports in an event."""
    numbers = event.get("ports")
    return tuple(int(port) for port in numbers[:MAX_PORTS]) if isinstance(numbers, list) else ()


def _number(value: Any) -> int | None:
    return int(value) if isinstance(value, int) else None
