"""Lost agents, ended containers and refused container requests.

The functions change a ``JobState`` and add to its actions.
"""

from __future__ import annotations

from typing import Any

from submarine_runtime.coordinator.machine import registration
from submarine_runtime.coordinator.machine.faults import handle_fault
from submarine_runtime.coordinator.machine.gang import release_container, request_container
from submarine_runtime.coordinator.machine.state import (
    ACTIVE,
    MONITORED,
    Event,
    JobPhase,
    JobState,
    Outcome,
    Stage,
    Task,
)
from submarine_runtime.protocol import EndReason
from submarine_runtime.protocol.layout import attempt_name
from submarine_runtime.translation import _

#: Seconds from the grant of a container to the registration of its agent; includes localizing.
REGISTRATION_TIMEOUT = 900.0


def check_deadlines(job: JobState, task: Task, now: float) -> None:
    """Handle a task if its program did not stop, or its agent did not register, in time."""
    if (
        task.stage is Stage.STOPPING
        and task.stop_deadline is not None
        and now >= task.stop_deadline
    ):
        _lose_task(job, task, now, now, _("Its program did not stop in time."))
    elif task.stage is Stage.REQUESTED and now - (task.placed_at or now) > REGISTRATION_TIMEOUT:
        detail = _("Its agent did not register within {registration_timeout:.0f} s.").format(
            registration_timeout=REGISTRATION_TIMEOUT
        )
        release_container(job, task)
        handle_fault(job, task, now, Outcome(EndReason.LAUNCH_FAILED, detail))


def _lose_task(job: JobState, task: Task, now: float, last_contact: float, detail: str) -> None:
    """Replace a task; its container may still run, so a fence delays the replacement's program.

    Heartbeats are not in the journal, so ``last_contact`` comes from an event.
    """
    config, was = job.config, task.stage
    _report_missing_log(job, task)
    if was in ACTIVE:
        late = max(now, last_contact + config.lost_after) + config.lost_margin
        job.fences[task.seat] = (late, task.name)
    ended_well = was is Stage.ENDED and task.outcome is not None and task.outcome.succeeded
    release_container(job, task)
    if job.verdict is None and (not ended_well or job.phase is JobPhase.GATHERING):
        handle_fault(job, task, now, Outcome(EndReason.TASK_LOST, detail))


def _report_missing_log(job: JobState, task: Task) -> None:
    """Note in the record that the end of the log may be missing."""
    if task.stage in MONITORED and task.epoch:
        attempt = attempt_name(task.epoch, task.attempt)
        job.missing.append(
            _("{task}/{attempt} was lost: its log may lack its end.").format(
                task=task.name, attempt=attempt
            )
        )


def lost_agent_events(job: JobState, now: float) -> list[dict[str, Any]]:
    """Return an event ``lost`` for each task without a heartbeat for ``lost_after`` seconds."""
    late = now - job.config.lost_after
    return [
        {"type": "lost", "seat": task.seat, "t": now, "heard": task.last_contact}
        for task in job.tasks.values()
        if task.stage in MONITORED and task.last_contact < late
    ]


def agent_lost(job: JobState, event: Event, now: float) -> None:
    """Handle ``lost``: no heartbeat came since ``heard``."""
    task = registration.task_of_seat(job, event)
    if task is not None and task.stage in MONITORED:
        last_contact = float(event["heard"])
        _lose_task(
            job,
            task,
            now,
            last_contact,
            _("No heartbeat for {now:.0f} s.").format(now=now - last_contact),
        )


def container_ended(job: JobState, event: Event, now: float) -> None:
    """Handle ``gone``: a container has ended and writes nothing more.

    With ``retry`` false, a container whose agent never registered would end so again.
    """
    seat = str(event["seat"])
    job.fences.pop(seat, None)
    job.release_deadlines.pop(seat, None)
    task = job.seats.pop(seat, None)
    if task is None or task.seat != seat or task.stage in (Stage.NONE, Stage.GONE):
        return
    was = task.stage
    _report_missing_log(job, task)
    task.stage, task.linked, task.member = Stage.GONE, False, None
    if job.verdict is not None:
        return
    done = was is Stage.ENDED and task.outcome is not None
    failed = job.pending_decision is not None and task.name in dict(job.pending_decision.failures)
    if done and job.phase is JobPhase.RUNNING and not failed:
        # The program had ended, and its end is handled already. A restart that waited for the
        # last checkpoint needs another container.
        if task.start_requested:
            request_container(job, task, now)
        return
    reason = EndReason(event.get("reason") or EndReason.AGENT_LOST)
    detail = str(event.get("detail") or _("Its container ended."))
    retry = was is not Stage.REQUESTED or bool(event.get("retry", True))
    handle_fault(job, task, now, Outcome(reason, detail[:1000]), retry)


def request_refused(job: JobState, event: Event, now: float) -> None:
    """Handle ``refused``: a container request can never be satisfied."""
    task = registration.task_of_seat(job, event)
    if task is not None and task.stage is Stage.REQUESTED:
        task.stage = Stage.GONE
        reason = EndReason(event.get("reason") or EndReason.NEVER_FITS)
        detail = str(event.get("detail") or "")[:1000]
        handle_fault(job, task, now, Outcome(reason, detail), retry=False)
