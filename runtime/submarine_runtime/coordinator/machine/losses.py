"""Tasks that are lost, containers that are gone, requests that can never be met.

Pure: changes a ``Play`` and adds to its actions.
"""

from __future__ import annotations

from typing import Any, Mapping

from submarine_runtime.coordinator.machine import registration as arrivals
from submarine_runtime.coordinator.machine.faults import fault
from submarine_runtime.coordinator.machine.gang import drop
from submarine_runtime.coordinator.machine.state import (
    ACTIVE,
    ATTENDED,
    Act,
    Outcome,
    Play,
    Stage,
    Task,
)
from submarine_runtime.protocol.layout import attempt_name
from submarine_runtime.protocol.reasons import EndReason

#: Seconds from a container's grant to its agent's first word: localising may take long.
ARRIVAL_PATIENCE = 900.0

Message = Mapping[str, Any]


def look_at(play: Play, task: Task, now: float) -> None:
    """Notice what did not happen."""
    if task.stage is Stage.STOPPING and task.stop_by is not None and now >= task.stop_by:
        _lose(play, task, now, now, "Its program did not end when it was told to.")
    elif task.stage is Stage.ASKED and now - (task.placed_at or now) > ARRIVAL_PATIENCE:
        detail = f"Its agent said nothing for {ARRIVAL_PATIENCE:.0f} s after it was placed."
        drop(play, task)
        fault(play, task, now, Outcome(EndReason.LAUNCH_FAILED, detail))


def _lose(play: Play, task: Task, now: float, heard: float, detail: str) -> None:
    """The container may still run: nothing replaces its program before its agent has ended it.

    Heartbeats are in no journal, so that ``heard`` comes from messages only.
    """
    config, was = play.config, task.stage
    _miss(play, task)
    if was in ACTIVE:
        late = max(now, heard + config.lost_after) + config.lost_margin
        play.fences[task.seat] = (late, task.name)
    ended_well = was is Stage.ENDED and task.outcome is not None and task.outcome.succeeded
    drop(play, task)
    if play.verdict is None and (not ended_well or play.act is Act.GATHERING):
        fault(play, task, now, Outcome(EndReason.TASK_LOST, detail))


def _miss(play: Play, task: Task) -> None:
    """What an agent had not shipped when it was lost is lost too."""
    if task.stage in ATTENDED and task.epoch:
        attempt = attempt_name(task.epoch, task.attempt)
        play.missing.append(f"{task.name}/{attempt} was lost: its log may lack its end.")


def silent(play: Play, now: float) -> list[dict[str, Any]]:
    """A message for each task whose agent was not heard for too long; changes nothing."""
    late = now - play.config.lost_after
    return [
        {"type": "lost", "seat": task.seat, "t": now, "heard": task.heard}
        for task in play.tasks.values()
        if task.stage in ATTENDED and task.heard < late
    ]


def lost(play: Play, message: Message, now: float) -> None:
    """Nothing was heard of an agent since ``heard``."""
    task = arrivals.holder(play, message)
    if task is not None and task.stage in ATTENDED:
        heard = float(message["heard"])
        _lose(play, task, now, heard, f"Nothing was heard of it for {now - heard:.0f} s.")


def gone(play: Play, message: Message, now: float) -> None:
    """A container has ended for certain: it writes no more."""
    seat = str(message["seat"])
    play.fences.pop(seat, None)
    play.departing.pop(seat, None)
    task = play.seats.pop(seat, None)
    if task is None or task.seat != seat or task.stage in (Stage.NONE, Stage.GONE):
        return
    was = task.stage
    _miss(play, task)
    task.stage, task.linked, task.member = Stage.GONE, False, None
    if play.verdict is not None:
        return
    done = was is Stage.ENDED and task.outcome is not None
    failed = play.deciding is not None and task.name in dict(play.deciding.failures)
    if done and play.act is Act.PLAYING and not failed:
        return  # its program had ended, well or for good
    reason = EndReason(message.get("reason") or EndReason.AGENT_LOST)
    detail = str(message.get("detail") or "Its container ended.")
    fault(play, task, now, Outcome(reason, detail[:1000]))


def refused(play: Play, message: Message, now: float) -> None:
    """A request will never be met."""
    task = arrivals.holder(play, message)
    if task is not None and task.stage is Stage.ASKED:
        task.stage = Stage.GONE
        reason = EndReason(message.get("reason") or EndReason.NEVER_FITS)
        detail = str(message.get("detail") or "")[:1000]
        fault(play, task, now, Outcome(reason, detail), retry=False)
