"""Decide what a fault of one task causes: nothing, a restart of the task or the gang, or the end.

Lost containers restart the job; an error of the program restarts it only if the job has made
progress since it last started. The cause of an error is determined when the other tasks have ended
(``causes``). The functions change a ``JobState`` and add to its actions.
"""

from __future__ import annotations

from dataclasses import replace

from submarine_runtime.coordinator.machine.actions import SendMessage
from submarine_runtime.coordinator.machine.causes import (
    cause_key,
    cause_of,
    is_abort,
    is_connection_error,
)
from submarine_runtime.coordinator.machine.ending import after_failure, end_job
from submarine_runtime.coordinator.machine.gang import (
    release_container,
    request_container,
    start_gathering,
)
from submarine_runtime.coordinator.machine.restore_state import progress_since_start
from submarine_runtime.coordinator.machine.state import (
    ACTIVE,
    JobPhase,
    JobState,
    Outcome,
    PendingDecision,
    Stage,
    Task,
)
from submarine_runtime.protocol import EndReason, State
from submarine_runtime.restore_points import Progress
from submarine_runtime.translation import _

#: Restarts after these reasons are not counted.
UNCOUNTED = frozenset({EndReason.PREEMPTED, EndReason.NODE_LOST})
#: A restart would fail in the same way.
PERMANENT = frozenset(
    {EndReason.IMPORT_ERROR, EndReason.INPUT_MISSING, EndReason.NEVER_FITS, EndReason.TIMED_OUT}
)
#: Reasons that a defective node may cause.
NODE_REASONS = frozenset(
    {
        EndReason.TASK_LOST,
        EndReason.NODE_LOST,
        EndReason.AGENT_LOST,
        EndReason.LAUNCH_FAILED,
        EndReason.LOCALISATION_FAILED,
        EndReason.DISK_FULL,
        EndReason.KILLED_BY_SIGNAL,
    }
)
MAX_NODE_FAULTS = 2
#: The only node of the local backend; it cannot be avoided.
LOCAL_NODE = "local"
#: Limit of the restarts that are not counted.
MAX_FREE_RESTARTS = 100
MAX_PORT_RENEWALS = 5
MAX_SIDECAR_RESTARTS = 3


def handle_fault(
    job: JobState, task: Task, now: float, outcome: Outcome, retry: bool = True
) -> None:
    """Handle the failure or the loss of a task.

    Parameters
    ----------
    now
        Time in seconds.
    outcome
        Why the program or the container ended.
    retry
        Whether a restart may help.
    """
    if job.verdict is not None:
        return
    task.outcome, reason = outcome, outcome.reason
    if reason in NODE_REASONS and task.node not in ("", LOCAL_NODE):
        job.node_faults[task.node] = job.node_faults.get(task.node, 0) + 1
        if job.node_faults[task.node] == MAX_NODE_FAULTS:
            job.add_event(
                "warning",
                _("{node} has failed twice and is avoided from now on.").format(node=task.node),
            )
    if not task.in_gang:
        _handle_sidecar_fault(job, task, now, outcome)
        return
    permanent = not retry or reason in PERMANENT
    if not permanent and _may_be_consequence(job, task, outcome):
        _defer_decision(job, task, now, outcome)
        return
    if reason is EndReason.ADDRESS_IN_USE and job.port_renewals < MAX_PORT_RENEWALS:
        _renew_ports(job, task, now, outcome)
        return
    if permanent:
        _fail_task(job, task, now, outcome, "permanent")
        return
    _restart_within_limit(job, task, now, outcome)


def _restart_within_limit(
    job: JobState, task: Task, now: float, outcome: Outcome, why: str = "", rule: str = "counted"
) -> None:
    """Restart unless the limit is reached; faults of ``UNCOUNTED`` are not counted.

    Parameters
    ----------
    why
        Sentence on the rule that applied, for events and record; may be empty.
    rule
        Name of the rule, for the data of the event.
    """
    limit = job.config.spec.restart_limit
    free = outcome.reason in UNCOUNTED and job.free_restarts < MAX_FREE_RESTARTS
    used = task.faults if task.restarts_alone else job.restarts
    if not free and used >= limit:
        reached = (
            _("Not restarted: the limit of {limit} restarts is reached.").format(limit=limit)
            if why
            else ""
        )
        _fail_task(job, task, now, outcome, "limit", reached)
        return
    job.free_restarts += free
    if task.restarts_alone:
        task.faults += not free
    else:
        job.restarts += not free
    if free:
        rule = "uncounted"
    elif why:
        why = _("{why}; restart {restarts} of {limit}.").format(
            why=why, restarts=job.restarts, limit=limit
        )
    _restart(job, task, now, outcome, why, rule)


def _fail_task(
    job: JobState, task: Task, now: float, outcome: Outcome, rule: str, why: str = ""
) -> None:
    task.failed, task.start_requested = True, False
    if task.stage is Stage.PREPARING:
        release_container(job, task)
    elif task.stage is Stage.RUNNING:  # It hangs.
        stop_task(job, task, now, _("it hangs"))
    job.add_event("task_failed", outcome.detail, task.name, reason=outcome.reason.value, rule=rule)
    if why:
        outcome = replace(outcome, detail=f"{_as_sentence(outcome.detail)} {why}".strip())
    end = after_failure(job, task, outcome)
    if end is not None:
        end_job(job, now, end, task.name)


def _may_be_consequence(job: JobState, task: Task, outcome: Outcome) -> bool:
    """Whether the failure of another task may be the cause of this one.

    An error of the program, out-of-memory and SIGABRT may follow from a peer that was lost. With
    ``--max-restarts`` only errors of connections wait for the cause, which is reported. Where the
    framework restarts one task in place, the cause is not needed.
    """
    if job.config.restart_in_place:
        return False
    if job.config.spec.max_restarts is not None and not (
        is_abort(outcome) or is_connection_error(outcome)
    ):
        return False
    if task.restarts_alone or job.phase is not JobPhase.RUNNING or task.stage is not Stage.ENDED:
        return False
    program_failed = outcome.reason in (EndReason.PROGRAM_ERROR, EndReason.OUT_OF_MEMORY)
    return program_failed or is_abort(outcome)


def _defer_decision(job: JobState, task: Task, now: float, outcome: Outcome) -> None:
    """Defer the decision about a failure until the cause is known."""
    if job.pending_decision is None:
        wait = job.config.lost_after + job.config.lost_margin
        job.pending_decision = PendingDecision(now + wait)
        plan = _(
            "A restart is decided when the other tasks have ended, in {wait:g} s at the latest."
        ).format(wait=wait)
        detail = f"{_as_sentence(outcome.detail)} {plan}".strip()
    else:
        detail = _as_sentence(outcome.detail)
    job.pending_decision.failures.append((task.name, outcome))
    job.add_event("failure", detail, task.name, reason=outcome.reason.value)


def decide_restart(job: JobState, now: float) -> None:
    """Decide about a restart when the cause of the failures can be determined."""
    pending_decision, epoch = job.pending_decision, job.epoch
    if pending_decision is None or job.verdict is not None:
        return
    if job.phase is not JobPhase.RUNNING:
        job.pending_decision = None  # The gang starts again anyway.
        return
    if now < pending_decision.until and any(_may_report_more(task) for task in job.gang):
        return
    job.pending_decision = None
    found = cause_of(pending_decision.failures)
    name, outcome = found or pending_decision.failures[0]
    task = job.tasks[name]
    if found is None:
        why = _("Only errors of connections between tasks were found")
        _restart_within_limit(job, task, now, outcome, why, "connection")
    elif is_abort(outcome) or job.config.spec.max_restarts is not None:
        _restart_within_limit(job, task, now, outcome)
    else:
        _restart_after_error(job, task, now, outcome)
    for name, outcome in pending_decision.failures:
        # Without a restart the other failed tasks have failed permanently, if the job continues.
        if job.verdict is None and job.epoch == epoch and not job.tasks[name].failed:
            _fail_task(job, job.tasks[name], now, outcome, "peer")


def _may_report_more(task: Task) -> bool:
    """Whether a task may still report a failure or the last checkpoint of its program."""
    if task.stage in ACTIVE:
        return task.in_collective
    return task.stage is Stage.ENDED and task.linked and not task.synced


def _restart_after_error(job: JobState, task: Task, now: float, outcome: Outcome) -> None:
    """Restart after an error of the program, if the job has made progress since it last started."""
    progress = progress_since_start(job)
    if progress is Progress.STEP and job.free_restarts < MAX_FREE_RESTARTS:
        job.free_restarts += 1
        why = _("The job has made progress since it last started; not counted.")
        _restart(job, task, now, outcome, why, "progress")
    elif progress is not Progress.NONE:
        why = _("The job has a later restore point than the one that it last started from")
        _restart_within_limit(job, task, now, outcome, why, "snapshot")
    elif job.epoch == 1:
        why = _("Not restarted: the job has made no progress since it started.")
        _fail_task(job, task, now, outcome, "no_progress", why)
    elif job.last_cause == cause_key(outcome):
        why = _("Not restarted: the same error again, and no progress since the job last started.")
        _fail_task(job, task, now, outcome, "same_cause", why)
    else:
        why = _("No progress since the job last started, but another error than the last time")
        _restart_within_limit(job, task, now, outcome, why, "other_cause")


def _as_sentence(detail: str) -> str:
    """Return ``detail`` with a full stop; it may end with a line of the program."""
    return detail if not detail or detail.endswith((".", "!", "?", ":")) else f"{detail}."


def _restart(job: JobState, task: Task, now: float, outcome: Outcome, why: str, rule: str) -> None:
    task.restarts += 1
    stalled = outcome.reason is EndReason.STALLED
    in_place = (job.config.restart_in_place and not stalled) or task.restarts_alone
    alone = in_place and job.phase is JobPhase.RUNNING
    how = _("the task") if alone or job.phase is not JobPhase.RUNNING else _("the gang")
    parts = [
        f"{task.name}:",
        _as_sentence(outcome.detail),
        why,
        _("Restarting {how}.").format(how=how),
    ]
    job.add_event(
        "restart",
        " ".join(filter(None, parts)),
        task.name,
        reason=outcome.reason.value,
        rule=rule,
        restarts=job.restarts,
        epoch=job.epoch,
    )
    if not stalled and _needs_new_container(job, task):
        release_container(job, task)
    if job.phase is JobPhase.RUNNING and not alone:
        job.last_cause = cause_key(outcome)
        restart_gang(job, now)
        return
    if task.stage in (Stage.NONE, Stage.GONE) and job.phase is not JobPhase.BACKOFF:
        request_container(job, task, now)
    task.start_requested = alone


def restart_stalled(job: JobState, task: Task, now: float, outcome: Outcome) -> None:
    """Restart the gang in its containers because ``task`` hangs; end the job at the limit."""
    _restart_within_limit(job, task, now, outcome, _("--stall restarts the gang"), "stall")


def _needs_new_container(job: JobState, task: Task) -> bool:
    """Whether the next attempt of the task needs a new container."""
    if task.stage is Stage.ENDED and task.linked and task.epoch:
        return job.node_faults.get(task.node, 0) >= MAX_NODE_FAULTS
    return True


def restart_gang(job: JobState, now: float) -> None:
    """Stop all programs and start the gang in a new epoch when it is complete.

    The tasks use new ports: connections of the old epoch keep theirs busy (TIME_WAIT).
    """
    job.epoch += 1
    job.pending_decision = None
    job.stall_check, job.stall_reported = None, False
    job.change_state(State.RESTARTING)
    for task in job.gang:
        task.start_requested = task.quiet = False
        if task.stage in (Stage.STARTING, Stage.RUNNING):
            stop_task(job, task, now, _("the gang restarts"))
    _request_new_ports(job)
    start_gathering(job, now)


def stop_task(job: JobState, task: Task, now: float, why: str) -> None:
    """Stop the program of a task; its agent stays."""
    grace = job.config.kill_grace
    task.stage, task.stop_requested = Stage.STOPPING, True
    task.stop_deadline = now + grace + job.config.lost_after
    job.actions.append(SendMessage(task.seat, {"type": "stop", "why": why, "grace": grace}))


def _renew_ports(job: JobState, task: Task, now: float, outcome: Outcome) -> None:
    job.port_renewals += 1
    subject = "It" if task.restarts_alone else _("The gang")
    detail = _("{task}: {detail} {subject} gets new ports.").format(
        task=task.name, detail=_as_sentence(outcome.detail), subject=subject
    )
    job.add_event("ports", detail, task.name)
    if task.restarts_alone:
        task.start_requested = job.phase is JobPhase.RUNNING
        _request_new_ports_of(job, task)
    elif job.phase is JobPhase.RUNNING:
        job.last_cause = cause_key(outcome)
        restart_gang(job, now)
    else:
        _request_new_ports(job)


def _request_new_ports(job: JobState) -> None:
    """Let each kept container of the gang reserve new ports."""
    for other in job.gang:
        _request_new_ports_of(job, other)


def _request_new_ports_of(job: JobState, task: Task) -> None:
    if task.member is not None and task.stage is not Stage.GONE:
        task.ports_requested = True
        if task.stage not in ACTIVE:
            job.actions.append(SendMessage(task.seat, {"type": "ports"}))


def _handle_sidecar_fault(job: JobState, task: Task, now: float, outcome: Outcome) -> None:
    if task.restarts >= MAX_SIDECAR_RESTARTS:
        task.failed, task.start_requested = True, False
        job.add_event(
            "warning",
            _("{task} is not restarted again: {detail}").format(
                task=task.name, detail=outcome.detail
            ),
            task.name,
        )
        return
    task.restarts += 1
    job.add_event(
        "restart",
        _("{task}: {detail} Restarting it.").format(
            task=task.name, detail=_as_sentence(outcome.detail)
        ),
        task.name,
    )
    if _needs_new_container(job, task):
        release_container(job, task)
        request_container(job, task, now)
    task.start_requested = True
