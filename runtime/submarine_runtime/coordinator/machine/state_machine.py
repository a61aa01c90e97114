"""Deterministic state machine of a job: events in, actions out.

An event is a JSON object with ``type`` and ``t`` (seconds of a monotonic clock). The same events
give the same actions, so a restarted coordinator replays them from its journal.

Events of the coordinator and of placers:

``begin``
    Request the gang. ``again``: why the job starts again, empty at the first start; ``fences``:
    container of an earlier attempt of the application -> seconds.
``tick``
    Time has passed. ``why``: what the cluster reports about missing containers.
``resumed``, ``checked``
    The journal was replayed and all links are closed. ``unchecked``: no program starts before
    ``checked``, because claim and record are not checked yet.
``suspended``
    This machine was suspended for ``seconds``.
``cancel``, ``expired``
    A user cancelled the job (``by``, ``why``); its lease has expired (``detail``).
``placed``, ``gone``, ``refused``
    The container of ``seat`` was granted (``node``), has ended (``reason``, ``detail``), or can
    never be placed (``detail``).
``unlinked``, ``lost``
    The link of ``seat`` was closed; no heartbeat came since ``heard``.
``stacks``
    The stacks that ``TakeStacks`` of ``epoch`` asked for: the fields of ``stacks.Report``.
``restore_point``, ``survey_failed``
    The restore point of ``epoch`` was chosen (``choice``) or could not be (``detail``).

Events of agents, see ``protocol.link``: ``register``, ``state``, ``ports``, ``left``, ``snapshot``,
``synced`` and ``idle``, each with ``seat``.
"""

from __future__ import annotations

from typing import Callable

from submarine_runtime.coordinator import machine
from submarine_runtime.coordinator.machine import losses, registration, restore_state
from submarine_runtime.coordinator.machine.actions import Action, ReleaseContainer, SendMessage
from submarine_runtime.coordinator.machine.ending import (
    CANCELLED_GRACE,
    advance_shutdown,
    after_success,
    agent_left,
    end_job,
)
from submarine_runtime.coordinator.machine.faults import decide_restart, handle_fault, restart_gang
from submarine_runtime.coordinator.machine.gang import (
    check_gang_timeout,
    request_container,
    start_action,
    start_gang_if_ready,
    start_gathering,
    start_pending_tasks,
)
from submarine_runtime.coordinator.machine.state import (
    ACTIVE,
    Event,
    JobPhase,
    JobState,
    Outcome,
    Stage,
    Task,
)
from submarine_runtime.protocol import LOCALIZED, EndReason, State, cancel_sentence
from submarine_runtime.translation import _


def handle(job: JobState, event: Event) -> list[Action]:
    """Change ``job`` by ``event``; return the actions to execute, in order."""
    now = float(event["t"])
    handler = _HANDLERS.get(str(event["type"]))
    if handler is not None and job.phase is not JobPhase.ENDED:
        handler(job, event, now)
        if not job.claim_unchecked:
            decide_restart(job, now)
            start_gang_if_ready(job, now)
            start_pending_tasks(job, now)
        _update_completeness(job)
        advance_shutdown(job, now)
    actions, job.actions = job.actions, []
    return actions


def record_heartbeat(job: JobState, seat: str, now: float) -> Task | None:
    """Record a heartbeat; return its task, or None if the seat is not current.

    Heartbeats are too frequent for the journal, so they are no events.
    """
    task = job.seats.get(seat)
    if task is None or task.seat != seat or not task.linked:
        return None
    task.last_contact = now
    return task


def _update_completeness(job: JobState) -> None:
    gang = job.gang
    if job.complete or not gang or job.phase not in (JobPhase.GATHERING, JobPhase.RUNNING):
        return
    started = job.phase is JobPhase.RUNNING
    if not job.allocated and (
        started or all(task.stage is not Stage.REQUESTED or task.localizing for task in gang)
    ):
        job.allocated = True
        if job.state is State.PENDING:
            job.change_state(
                State.STARTING, _("{count} containers are allocated.").format(count=len(gang))
            )
    if started or all(task.stage is not Stage.REQUESTED for task in gang):
        job.complete = True
        if job.state is State.STARTING:
            job.add_event(LOCALIZED)


def _begin(job: JobState, event: Event, now: float) -> None:
    for key, seconds in dict(event.get("fences") or {}).items():
        job.fences[key] = (now + float(seconds), "")
    if event.get("again"):
        job.change_state(State.RESTARTING, str(event["again"]))
    for task in job.tasks.values():
        if not task.in_gang:
            task.start_requested = True
            request_container(job, task, now)
    start_gathering(job, now)


def _tick(job: JobState, event: Event, now: float) -> None:
    for seat, (until, _unused) in list(job.fences.items()):
        if until <= now:
            del job.fences[seat]
    for seat, deadline in list(job.release_deadlines.items()):
        if deadline <= now:
            del job.release_deadlines[seat]
            job.actions.append(ReleaseContainer(seat))
    for task in list(job.tasks.values()):
        losses.check_deadlines(job, task, now)
    if job.phase is JobPhase.BACKOFF and now >= job.backoff_until:
        start_gathering(job, now)
    restore_state.request_round_if_due(job, now)
    if job.stall_check is not None:
        machine.take_stacks_if_due(job, now)
    timeout = job.config.spec.timeout
    if timeout is not None and job.running_since is not None and now - job.running_since >= timeout:
        end_job(
            job,
            now,
            Outcome(EndReason.TIMED_OUT, _("It ran for {timeout:g} s.").format(timeout=timeout)),
        )
    outcome = check_gang_timeout(job, now, str(event.get("why") or ""))
    if outcome is not None:
        end_job(job, now, outcome)


def _resumed(job: JobState, event: Event, now: float) -> None:
    job.claim_unchecked = bool(event.get("unchecked"))
    for task in job.tasks.values():
        task.linked, task.last_contact = False, now
    if any(task.quiet for task in job.gang):
        machine.schedule_check(job, now)


def _checked(job: JobState, event: Event, now: float) -> None:
    job.claim_unchecked = False
    for task in job.tasks.values():
        if task.stage is Stage.STARTING and task.linked:
            # An agent ignores an order that it has received already.
            job.actions.append(start_action(job, task))


def _suspended(job: JobState, event: Event, now: float) -> None:
    """Give each agent ``lost_after`` seconds: what it has sent meanwhile is not read yet."""
    for task in job.tasks.values():
        task.last_contact = now
        if task.stop_deadline is not None:
            task.stop_deadline = max(task.stop_deadline, now + job.config.lost_after)
    detail = _("The coordinator's machine was suspended for {seconds:.0f} s.").format(
        seconds=float(event["seconds"])
    )
    job.add_event("warning", detail)


def _cancel(job: JobState, event: Event, now: float) -> None:
    detail = cancel_sentence(event)
    job.add_event("cancel_requested", detail)
    job.leave_deadline = min(job.leave_deadline, now + CANCELLED_GRACE)
    end_job(job, now, Outcome(EndReason.CANCELLED, detail))


def _expired(job: JobState, event: Event, now: float) -> None:
    end_job(job, now, Outcome(EndReason.LEASE_EXPIRED, str(event.get("detail") or "")))


def _no_port(job: JobState, event: Event, now: float) -> None:
    end_job(job, now, Outcome(EndReason.LAUNCH_FAILED, str(event.get("detail") or "")))


def _state(job: JobState, event: Event, now: float) -> None:
    task = registration.task_of_seat(job, event)
    if task is None:
        return
    task.last_contact = now
    state = event.get("state")
    if state == "ready" and task.stage is Stage.PREPARING:
        task.stage = Stage.READY
    elif state == "running" and registration.is_current(task, event):
        _running(job, task, event, now)
    elif state == "met" and registration.is_current(task, event):
        job.rendezvous_epoch = task.epoch
    elif state == "ended":
        _ended(job, task, event, now)


def _running(job: JobState, task: Task, event: Event, now: float) -> None:
    if task.stage is Stage.STARTING:
        task.stage, task.quiet, task.gpus_idle = Stage.RUNNING, False, False
        if task.in_gang and job.verdict is None:
            if job.running_since is None:
                job.running_since = now
            if job.phase is JobPhase.RUNNING:
                job.change_state(State.RUNNING)


def _ended(job: JobState, task: Task, event: Event, now: float) -> None:
    if task.stage is Stage.PREPARING and job.verdict is None:
        handle_fault(
            job, task, now, registration.outcome_of(event), retry=event.get("retry") != "no"
        )
        return
    if not (registration.is_current(task, event) and task.stage in ACTIVE):
        return
    expected = task.stage is Stage.STOPPING
    task.stage, task.stop_deadline, task.quiet = Stage.ENDED, None, False
    outcome = registration.outcome_of(event)
    task.saved = outcome.succeeded and not event.get("missing")
    if expected:
        if task.ports_requested:
            job.actions.append(SendMessage(task.seat, {"type": "ports"}))
        if outcome.succeeded or job.verdict is None:
            task.outcome = outcome
        return
    task.outcome = outcome
    if job.verdict is not None:
        return
    if (
        event.get("unrestored")
        and job.phase is JobPhase.RUNNING
        and restore_state.exclude_damaged(job, task, event)
    ):
        restart_gang(job, now)
        return
    if not outcome.succeeded:
        handle_fault(job, task, now, outcome, retry=event.get("retry") != "no")
        return
    if job.running_since is None:
        job.running_since = now
    if job.phase is JobPhase.RUNNING:
        job.change_state(State.RUNNING)
    end = after_success(job)
    if end is not None:
        end_job(job, now, end, task.name)


def _snapshot(job: JobState, event: Event, now: float) -> None:
    task = registration.task_of_seat(job, event)
    if task is not None:
        restore_state.snapshot_reported(job, task, event, now)


def _synced(job: JobState, event: Event, now: float) -> None:
    task = registration.task_of_seat(job, event)
    if task is not None:
        restore_state.last_snapshot_stored(job, task, event)


def _agent_left(job: JobState, event: Event, now: float) -> None:
    seat = str(event["seat"])
    job.release_deadlines.pop(seat, None)
    job.fences.pop(seat, None)
    task = registration.task_of_seat(job, event)
    missing = event.get("missing") or ""
    if isinstance(missing, (list, tuple)):
        missing = " ".join(str(part) for part in missing)
    if task is not None and task.stage is not Stage.GONE:
        if job.verdict is None:
            losses.container_ended(job, {**event, "detail": _("Its agent left.")}, now)
        else:
            agent_left(job, task, str(missing))


_HANDLERS: dict[str, Callable[[JobState, Event, float], None]] = {
    "begin": _begin,
    "tick": _tick,
    "resumed": _resumed,
    "checked": _checked,
    "suspended": _suspended,
    "cancel": _cancel,
    "expired": _expired,
    "no_port": _no_port,
    "placed": registration.container_placed,
    "gone": losses.container_ended,
    "lost": losses.agent_lost,
    "refused": losses.request_refused,
    "register": registration.register_agent,
    "unlinked": registration.link_closed,
    "ports": registration.ports_reserved,
    "state": _state,
    "left": _agent_left,
    "snapshot": _snapshot,
    "synced": _synced,
    # Few jobs need that module: it is loaded by the first of these calls.
    "idle": lambda job, event, now: machine.idle_reported(job, event, now),
    "stacks": lambda job, event, now: machine.stacks_taken(job, event, now),
    "restore_point": restore_state.restore_point_chosen,
    "survey_failed": restore_state.survey_failed,
}
