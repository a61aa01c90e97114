"""The machine of a job: what it is told in, what it wants done out; same words, same wishes.

A message is a plain object with ``type`` and ``t`` (seconds of a monotonic clock), so that a
journal of them brings a job back after its coordinator was killed. From ``conductor`` and placers:

``begin`` (``again``: why the job starts again, empty for a first start; ``fences``: container of an
earlier attempt -> seconds) · ``tick`` · ``expired`` (``detail``: the lease is over) · ``resumed``
(the journal was read; links are away; ``unchecked``: claim and record are not checked yet, so that
nothing may start) · ``checked`` (now they are) · ``suspended`` (``seconds``: this machine was)
· ``cancel`` (``by why``) · ``placed`` (``seat node``)
· ``gone`` (``seat reason detail``: a container ended) · ``unlinked`` (``seat``) · ``lost`` (``seat
heard``: silent since then) · ``refused`` (``seat detail``: can never be placed) ·
``restore_point`` (``epoch choice``) · ``survey_failed`` (``epoch detail``)

From agents, as in ``protocol.link``, with ``seat``: ``register``, ``state``, ``ports``, ``left``,
``snapshot``, ``synced``.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping

from submarine_runtime.coordinator.machine import losses, registration as arrivals, restore_state
from submarine_runtime.coordinator.machine.actions import Action, Release, Send
from submarine_runtime.coordinator.machine.ending import CANCELLED_GRACE, decide, left, see_off
from submarine_runtime.coordinator.machine.faults import decide_restart, fault, restart_gang
from submarine_runtime.coordinator.machine.gang import (
    advance,
    ask,
    gather,
    look_at_patience,
    release_starts,
    start_line,
)
from submarine_runtime.coordinator.machine.state import ACTIVE, Act, Outcome, Play, Stage, Task
from submarine_runtime.coordinator.machine.success_policy import after_success
from submarine_runtime.protocol.reasons import EndReason
from submarine_runtime.protocol.record import LOCALIZED
from submarine_runtime.protocol.states import State

Message = Mapping[str, Any]


def apply(play: Play, message: Message) -> list[Action]:
    """Tell ``play`` of ``message``; what is to be done now, in order."""
    now = float(message["t"])
    act = _HANDLERS.get(str(message["type"]))
    if act is not None and play.act is not Act.OVER:
        act(play, message, now)
        if not play.unchecked:
            decide_restart(play, now)
            advance(play, now)
            release_starts(play, now)
        _note_completeness(play)
        see_off(play, now)
    out, play.out = play.out, []
    return out


def heard(play: Play, seat: str, now: float) -> Task | None:
    """A heartbeat: too many to be messages. The task, or None when the seat counts no more."""
    task = play.seats.get(seat)
    if task is None or task.seat != seat or not task.linked:
        return None
    task.heard = now
    return task


def _note_completeness(play: Play) -> None:
    gang = play.gang
    if play.complete or not gang or play.act not in (Act.GATHERING, Act.PLAYING):
        return
    playing = play.act is Act.PLAYING
    if not play.allocated and (
        playing or all(task.stage is not Stage.ASKED or task.localizing for task in gang)
    ):
        play.allocated = True
        if play.state is State.PENDING:
            play.become(State.STARTING, f"{len(gang)} containers are there.")
    if playing or all(task.stage is not Stage.ASKED for task in gang):
        play.complete = True
        if play.state is State.STARTING:
            play.note(LOCALIZED)


def _begin(play: Play, message: Message, now: float) -> None:
    for key, seconds in dict(message.get("fences") or {}).items():
        play.fences[key] = (now + float(seconds), "")
    if message.get("again"):
        play.become(State.RESTARTING, str(message["again"]))
    for task in play.tasks.values():
        if not task.in_gang:
            task.wanted = True
            ask(play, task, now)
    gather(play, now)


def _tick(play: Play, message: Message, now: float) -> None:
    for seat, (moment, _) in list(play.fences.items()):
        if moment <= now:
            del play.fences[seat]
    for seat, moment in list(play.departing.items()):
        if moment <= now:
            del play.departing[seat]
            play.out.append(Release(seat))
    for task in list(play.tasks.values()):
        losses.look_at(play, task, now)
    if play.act is Act.RESTING and now >= play.rest_until:
        gather(play, now)
    restore_state.look_at_rounds(play, now)
    timeout = play.config.timeout
    if timeout is not None and play.run_since is not None and now - play.run_since >= timeout:
        decide(play, now, Outcome(EndReason.TIMED_OUT, f"It ran for {timeout:g} s."))
    outcome, _ = look_at_patience(play, now, str(message.get("why") or ""))
    if outcome is not None:
        decide(play, now, outcome)


def _resumed(play: Play, message: Message, now: float) -> None:
    play.unchecked = bool(message.get("unchecked"))
    for task in play.tasks.values():
        task.linked, task.heard = False, now


def _checked(play: Play, message: Message, now: float) -> None:
    play.unchecked = False
    for task in play.tasks.values():
        if task.stage is Stage.STARTING and task.linked:
            play.out.append(start_line(play, task))  # an agent ignores an order that it knows


def _suspended(play: Play, message: Message, now: float) -> None:
    """Give each agent one ``lost_after``: what it sent meanwhile has not been read yet."""
    for task in play.tasks.values():
        task.heard = now
        if task.stop_by is not None:
            task.stop_by = max(task.stop_by, now + play.config.lost_after)
    detail = f"The coordinator's machine was suspended for {float(message['seconds']):.0f} s."
    play.note("warning", detail)


def _cancel(play: Play, message: Message, now: float) -> None:
    by, why = str(message.get("by") or ""), str(message.get("why") or "")
    detail = "Cancelled" + (f" by {by}" if by else "") + (f": {why}" if why else ".")
    play.note("cancel_requested", detail)
    play.leave_by = min(play.leave_by, now + CANCELLED_GRACE)
    decide(play, now, Outcome(EndReason.CANCELLED, detail))


def _expired(play: Play, message: Message, now: float) -> None:
    decide(play, now, Outcome(EndReason.LEASE_EXPIRED, str(message.get("detail") or "")))


def _state(play: Play, message: Message, now: float) -> None:
    task = arrivals.holder(play, message)
    if task is None:
        return
    task.heard = now
    word = message.get("state")
    if word == "ready" and task.stage is Stage.PREPARING:
        task.stage = Stage.READY
    elif word == "running" and arrivals.current(task, message):
        _running(play, task, message, now)
    elif word == "met" and arrivals.current(task, message):
        play.met = task.epoch
    elif word == "ended":
        _ended(play, task, message, now)


def _running(play: Play, task: Task, message: Message, now: float) -> None:
    if task.stage is Stage.STARTING:
        task.stage = Stage.RUNNING
        if task.in_gang and play.verdict is None:
            if play.run_since is None:
                play.run_since = now
            if play.act is Act.PLAYING:
                play.become(State.RUNNING)


def _ended(play: Play, task: Task, message: Message, now: float) -> None:
    if task.stage is Stage.PREPARING and play.verdict is None:
        fault(play, task, now, arrivals.outcome_of(message), retry=message.get("retry") != "no")
        return
    if not (arrivals.current(task, message) and task.stage in ACTIVE):
        return
    expected = task.stage is Stage.STOPPING
    task.stage, task.stop_by = Stage.ENDED, None
    outcome = arrivals.outcome_of(message)
    task.saved = outcome.succeeded and not message.get("missing")
    if expected:
        if task.ports_wanted:
            play.out.append(Send(task.seat, {"type": "ports"}))
        if outcome.succeeded or play.verdict is None:
            task.outcome = outcome
        return
    task.outcome = outcome
    if play.verdict is not None:
        return
    if message.get("unrestored") and play.act is Act.PLAYING and restore_state.damaged(play, task):
        restart_gang(play, now)
        return
    if not outcome.succeeded:
        fault(play, task, now, outcome, retry=message.get("retry") != "no")
        return
    if play.run_since is None:
        play.run_since = now
    if play.act is Act.PLAYING:
        play.become(State.RUNNING)
    end = after_success(play)
    if end is not None:
        decide(play, now, end, task.name)


def _snapshot(play: Play, message: Message, now: float) -> None:
    task = arrivals.holder(play, message)
    if task is not None:
        restore_state.reported(play, task, message, now)


def _synced(play: Play, message: Message, now: float) -> None:
    task = arrivals.holder(play, message)
    if task is not None:
        restore_state.synced(play, task, message)


def _left(play: Play, message: Message, now: float) -> None:
    seat = str(message["seat"])
    play.departing.pop(seat, None)
    play.fences.pop(seat, None)
    task = arrivals.holder(play, message)
    missing = message.get("missing") or ""
    if isinstance(missing, (list, tuple)):
        missing = " ".join(str(part) for part in missing)
    if task is not None and task.stage is not Stage.GONE:
        if play.verdict is None:
            losses.gone(play, {**message, "detail": "Its agent left."}, now)
        else:
            left(play, task, str(missing))


_HANDLERS: dict[str, Callable[[Play, Message, float], None]] = {
    "begin": _begin,
    "tick": _tick,
    "resumed": _resumed,
    "checked": _checked,
    "suspended": _suspended,
    "cancel": _cancel,
    "expired": _expired,
    "placed": arrivals.placed,
    "gone": losses.gone,
    "lost": losses.lost,
    "refused": losses.refused,
    "register": arrivals.register,
    "unlinked": arrivals.unlinked,
    "ports": arrivals.ports,
    "state": _state,
    "left": _left,
    "snapshot": _snapshot,
    "synced": _synced,
    "restore_point": restore_state.chosen,
    "survey_failed": restore_state.failed,
}
