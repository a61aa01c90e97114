"""Agents that come, come back, or are not wanted. Pure: changes a ``Play``, adds to its actions."""

from __future__ import annotations

from typing import Any, Mapping

from submarine_runtime.coordinator.machine import restore_state
from submarine_runtime.coordinator.machine.actions import Release, Send
from submarine_runtime.coordinator.machine.faults import NODE_FAULTS
from submarine_runtime.coordinator.machine.gang import ask, start_line
from submarine_runtime.coordinator.machine.state import ACTIVE, Outcome, Play, Stage, Task
from submarine_runtime.protocol.link import Member
from submarine_runtime.protocol.reasons import EndReason

#: Containers of one task that are given back because of their node, before any node will do.
MAX_REFUSALS = 12
MAX_PORTS = 64

Message = Mapping[str, Any]


def holder(play: Play, message: Message) -> Task | None:
    """The task whose present seat speaks."""
    task = play.seats.get(str(message.get("seat")))
    return task if task is not None and task.seat == message.get("seat") else None


def current(task: Task, message: Message) -> bool:
    """Whether a message is about the attempt that counts."""
    return message.get("epoch") == task.epoch and message.get("attempt") == task.attempt


def outcome_of(message: Message) -> Outcome:
    """How a program ended, in an agent's words; an unknown reason is the program's own error."""
    try:
        reason = EndReason(message.get("reason"))
    except ValueError:
        reason = EndReason.PROGRAM_ERROR
    failure = message.get("failure")
    return Outcome(
        reason,
        str(message.get("detail") or "")[:2000],
        _number(message.get("exit_code")),
        _number(message.get("signal")),
        dict(failure) if isinstance(failure, Mapping) else None,
    )


def placed(play: Play, message: Message, now: float) -> None:
    """A container was granted; its agent may take a while."""
    task = holder(play, message)
    if task is not None and task.stage is Stage.ASKED and task.placed_at is None:
        task.placed_at, task.placed_on = now, str(message.get("node") or "")[:256]


def unlinked(play: Play, message: Message, now: float) -> None:
    """A connection broke; its agent has until it is lost to come back."""
    task = holder(play, message)
    if task is not None:
        task.linked = False


def ports(play: Play, message: Message, now: float) -> None:
    """New ports were reserved."""
    task = holder(play, message)
    if task is not None and task.member is not None:
        task.ports_wanted = False
        task.member = Member(**{**task.member.to_json(), "ports": port_numbers(message)})


def register(play: Play, message: Message, now: float) -> None:
    """An agent says who it is: welcome it, take it back, or refuse it."""
    seat, nonce = str(message.get("seat")), str(message.get("nonce") or "")
    task = holder(play, message)
    if task is None or task.stage in (Stage.NONE, Stage.GONE):
        _refuse(play, seat, "this place was given to another container")
    elif task.nonce and task.nonce != nonce:
        _refuse(play, seat, "another agent has this place")
    elif task.stage is Stage.ASKED:
        _first(play, task, message, nonce, now)
    else:
        _again(play, task, message, now)


def _refuse(play: Play, seat: str, why: str) -> None:
    play.out.append(Send(seat, {"type": "refused", "why": why}))


def _first(play: Play, task: Task, message: Message, nonce: str, now: float) -> None:
    node = str(message.get("node") or message.get("host") or "")[:256]
    host = str(message.get("host") or "")[:256]
    why = _unwanted(play, task, node, host)
    if why and task.refusals < MAX_REFUSALS and play.verdict is None:
        task.refusals += 1
        _refuse(play, task.seat, why)
        play.note("refused", f"{task.name} on {node}: {why}", task.name)
        old = task.seat
        ask(play, task, now, elsewhere=True)
        play.seats.pop(old, None)
        play.out.append(Release(old))
        return
    task.nonce, task.node, task.member = nonce, node, member_of(task, message)
    task.linked, task.heard, task.stage = True, now, Stage.PREPARING
    task.waiting_since = None
    _welcome(play, task)


def _welcome(play: Play, task: Task) -> None:
    config = play.config
    line = {"type": "welcome", "heartbeat": config.heartbeat, "lost_after": config.lost_after}
    play.out.append(Send(task.seat, line))


def _unwanted(play: Play, task: Task, node: str, host: str) -> str:
    if host in task.orders.avoid or node in task.orders.avoid:
        return "the job avoids this node"
    if play.blamed.get(node, 0) >= NODE_FAULTS:
        return "this node has failed twice"
    if task.orders.spread:
        for other in play.tasks.values():
            same = other.orders is task.orders and other is not task
            if same and other.node == node and other.member is not None:
                return f"{other.name} is there already, and the role is spread out"
    return ""


def _again(play: Play, task: Task, message: Message, now: float) -> None:
    """An agent that we know has come back: both sides may have missed something meanwhile."""
    task.linked, task.heard = True, now
    task.member = member_of(task, message)
    _welcome(play, task)
    running = message.get("running")
    running = running if isinstance(running, Mapping) else None
    same = running is not None and current(task, running)
    if task.stage is Stage.STARTING and not same and not play.unchecked:
        play.out.append(start_line(play, task))
    if same and running is not None and running.get("synced"):
        task.synced = True
    restore_state.again(play, task)
    if task.stage is Stage.STOPPING:
        if running is None:
            task.stage, task.stop_by = Stage.ENDED, None
        else:
            grace = play.config.kill_grace
            play.out.append(Send(task.seat, {"type": "stop", "why": "", "grace": grace}))
    elif task.stage is Stage.LEAVING:
        play.out.append(Send(task.seat, {"type": "leave"}))
    if task.ports_wanted and task.stage not in ACTIVE:
        play.out.append(Send(task.seat, {"type": "ports"}))


def member_of(task: Task, message: Message) -> Member:
    """What the other tasks learn of this one."""
    extra = message.get("extra")
    gpus = message.get("gpus")
    return Member(
        task=task.name,
        role=task.orders.name,
        index=task.index,
        host=str(message.get("host") or "")[:256],
        address=str(message.get("address") or "")[:64],
        ports=port_numbers(message),
        gpus=len(gpus) if isinstance(gpus, (list, tuple)) else int(gpus or 0),
        kind=task.kind,
        processes=max(1, int(message.get("processes") or 1)),
        extra=dict(extra) if isinstance(extra, Mapping) else {},
    )


def port_numbers(message: Message) -> tuple[int, ...]:
    """The ports in a message."""
    numbers = message.get("ports")
    return tuple(int(port) for port in numbers[:MAX_PORTS]) if isinstance(numbers, list) else ()


def _number(value: Any) -> int | None:
    return int(value) if isinstance(value, int) else None
