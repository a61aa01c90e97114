"""The end of a job: a verdict, programs stopped, agents sent home with all that they had to ship.

Pure: changes a ``Play`` and adds to its actions.
"""

from __future__ import annotations

from submarine_runtime.coordinator.machine.actions import End, Release, Send
from submarine_runtime.coordinator.machine.state import (
    ATTENDED,
    Act,
    Outcome,
    Play,
    Stage,
    Task,
    Verdict,
)
from submarine_runtime.frameworks import apart_sentence
from submarine_runtime.frameworks.ranks import crew_of, world_size
from submarine_runtime.protocol.reasons import EndReason, meaning_of
from submarine_runtime.protocol.states import State

#: Seconds that the other tracked tasks have to end by themselves once the job has succeeded.
LINGER = 2.0
#: Seconds that a cancel leaves for saving.
CANCELLED_GRACE = 10.0


def decide(play: Play, now: float, outcome: Outcome, task: str | None = None) -> None:
    """The job ends like this, whatever else happens; only the first verdict counts."""
    if play.verdict is not None:
        return
    if outcome.succeeded:
        outcome = _trained_together(play, outcome)
    play.verdict = Verdict(outcome, task)
    play.act = Act.ENDING
    config = play.config
    patience = config.save_grace
    if outcome.reason is EndReason.CANCELLED:
        patience = min(patience, CANCELLED_GRACE)
    play.leave_by = now + config.kill_grace + patience
    if outcome.reason is EndReason.SUCCEEDED:
        play.linger_until = now + LINGER
    play.note("verdict", outcome.detail, task, reason=outcome.reason.value)
    if play.run_since is not None:
        play.become(State.FINISHING)
    see_off(play, now)


def _trained_together(play: Play, outcome: Outcome) -> Outcome:
    """Warn, or fail the job, if it succeeded and its tasks never met."""
    crew, config = crew_of(play.members), play.config
    if play.met == play.epoch or world_size(crew) < 2:
        return outcome
    sentence = apart_sentence(config.framework, len(crew), config.require_collective)
    if config.require_collective:
        return Outcome(EndReason.NOT_COLLECTIVE, sentence)
    if sentence:
        play.warnings.append(sentence)
        play.note("warning", sentence)
    return outcome


def see_off(play: Play, now: float) -> None:
    """Bring everybody one step nearer to the door; ends the job when the house is empty."""
    if play.act is not Act.ENDING:
        return
    for task in play.tasks.values():
        _see_off(play, task, now)
    if now >= play.leave_by:
        _close_doors(play)
    if all(task.stage in (Stage.NONE, Stage.GONE) for task in play.tasks.values()):
        play.act = Act.OVER
        play.out.append(End())


def _see_off(play: Play, task: Task, now: float) -> None:
    if task.stage is Stage.ASKED:
        play.out.append(Release(task.seat))
        task.stage = Stage.GONE
    elif task.stage in (Stage.STARTING, Stage.RUNNING):
        if not _lingers(play, task, now):
            grace = play.config.kill_grace
            task.stage, task.stop_by, task.stopped = Stage.STOPPING, None, True
            why = meaning_of(play.verdict.outcome.reason).sentence if play.verdict else ""
            play.out.append(Send(task.seat, {"type": "stop", "why": why, "grace": grace}))
    elif task.stage in (Stage.PREPARING, Stage.READY, Stage.ENDED):
        task.stage = Stage.LEAVING
        play.out.append(Send(task.seat, {"type": "leave"}))


def _lingers(play: Play, task: Task, now: float) -> bool:
    """Whether a task may end by itself: its servers must stay as long as one does."""
    until = play.linger_until
    if until is None or now >= until or task.kind == "sidecar":
        return False
    return any(
        other.kind == "tracked" and other.stage in (Stage.STARTING, Stage.RUNNING)
        for other in play.tasks.values()
    )


def _close_doors(play: Play) -> None:
    for task in play.tasks.values():
        if task.stage in ATTENDED:
            play.missing.append(f"{task.name} did not leave in time: its log may lack its end.")
            play.out.append(Release(task.seat))
            task.stage = Stage.GONE


def left(play: Play, task: Task, missing: str) -> None:
    """An agent has gone, in peace."""
    task.stage, task.linked, task.saved = Stage.GONE, False, not missing
    if missing:
        play.missing.append(f"{task.name}: {missing}"[:500])
