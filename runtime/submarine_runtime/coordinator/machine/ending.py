"""End a job: the success policy, the verdict, and the shutdown of programs and agents.

The success policy is ``--success chief | all | any | fraction``. The functions change a
``JobState`` and add to its actions.
"""

from __future__ import annotations

from submarine_runtime.coordinator.machine.actions import FinishJob, ReleaseContainer, SendMessage
from submarine_runtime.coordinator.machine.state import (
    MONITORED,
    JobPhase,
    JobState,
    Outcome,
    Stage,
    Task,
    Verdict,
)
from submarine_runtime.frameworks import collective_tasks, not_collective_sentence, world_size
from submarine_runtime.protocol import EndReason, State
from submarine_runtime.translation import _

#: Seconds that the other tracked tasks have to end by themselves once the job has succeeded.
LINGER = 2.0
#: Seconds that a cancel leaves for saving.
CANCELLED_GRACE = 10.0
_EPSILON = 1e-9


def end_job(job: JobState, now: float, outcome: Outcome, task: str | None = None) -> None:
    """Set the verdict and begin the shutdown; later calls have no effect.

    Parameters
    ----------
    now
        Time in seconds.
    task
        The task that caused the outcome; None: no single task.
    """
    if job.verdict is not None:
        return
    if outcome.succeeded:
        outcome = _check_collective(job, outcome)
    job.verdict = Verdict(outcome, task)
    job.phase = JobPhase.ENDING
    config = job.config
    patience = config.save_grace
    if outcome.reason is EndReason.CANCELLED:
        patience = min(patience, CANCELLED_GRACE)
    job.leave_deadline = now + config.kill_grace + patience
    if outcome.reason is EndReason.SUCCEEDED:
        job.linger_until = now + LINGER
    job.add_event("verdict", outcome.detail, task, reason=outcome.reason.value)
    if job.running_since is not None:
        job.change_state(State.FINISHING)
    advance_shutdown(job, now)


def _check_collective(job: JobState, outcome: Outcome) -> Outcome:
    """Warn, or fail the job, if it succeeded and no program used the rendezvous port."""
    collective, config = collective_tasks(job.members), job.config
    if job.rendezvous_epoch == job.epoch or world_size(collective) < 2:
        return outcome
    sentence = not_collective_sentence(
        config.spec.framework, len(collective), config.spec.require_collective
    )
    if config.spec.require_collective:
        return Outcome(EndReason.NOT_COLLECTIVE, sentence)
    if sentence:
        job.warnings.append(sentence)
        job.add_event("warning", sentence)
    return outcome


def advance_shutdown(job: JobState, now: float) -> None:
    """Continue the shutdown of each task; finish the job when all containers are released."""
    if job.phase is not JobPhase.ENDING:
        return
    for task in job.tasks.values():
        _shut_down_task(job, task, now)
    if now >= job.leave_deadline:
        _release_remaining(job)
    if all(task.stage in (Stage.NONE, Stage.GONE) for task in job.tasks.values()):
        job.phase = JobPhase.ENDED
        job.actions.append(FinishJob())


def _shut_down_task(job: JobState, task: Task, now: float) -> None:
    if task.stage is Stage.REQUESTED:
        job.actions.append(ReleaseContainer(task.seat))
        task.stage = Stage.GONE
    elif task.stage in (Stage.STARTING, Stage.RUNNING):
        if not _may_end_by_itself(job, task, now):
            grace = job.config.kill_grace
            task.stage, task.stop_deadline, task.stop_requested = Stage.STOPPING, None, True
            why = job.verdict.outcome.reason.meaning.sentence if job.verdict else ""
            job.actions.append(SendMessage(task.seat, {"type": "stop", "why": why, "grace": grace}))
    elif task.stage in (Stage.PREPARING, Stage.READY, Stage.ENDED):
        task.stage = Stage.LEAVING
        job.actions.append(SendMessage(task.seat, {"type": "leave"}))


def _may_end_by_itself(job: JobState, task: Task, now: float) -> bool:
    """Whether to let a task end by itself; servers stay as long as a tracked task runs."""
    until = job.linger_until
    if until is None or now >= until or task.kind == "sidecar":
        return False
    return any(
        other.kind == "tracked" and other.stage in (Stage.STARTING, Stage.RUNNING)
        for other in job.tasks.values()
    )


def _release_remaining(job: JobState) -> None:
    for task in job.tasks.values():
        if task.stage in MONITORED:
            job.missing.append(
                _("{task} did not leave in time: its log may lack its end.").format(task=task.name)
            )
            job.actions.append(ReleaseContainer(task.seat))
            task.stage = Stage.GONE


def agent_left(job: JobState, task: Task, missing: str) -> None:
    """Release the task of an agent that left after the verdict."""
    task.stage, task.linked, task.saved = Stage.GONE, False, not missing
    if missing:
        job.missing.append(f"{task.name}: {missing}"[:500])


def after_success(job: JobState) -> Outcome | None:
    """Return the job's outcome after the success of a task; None: the job continues."""
    policy, chief = job.config.policy, job.chief
    tracked = _tracked(job)
    good = [task for task in tracked if _succeeded(task)]
    if policy == "chief" and chief.kind == "tracked":
        return chief.outcome if _succeeded(chief) else None
    if policy == "any":
        return good[0].outcome if good else None
    if all(_succeeded(task) or task.failed for task in tracked):
        best = chief if _succeeded(chief) else good[0] if good else None
        return best.outcome if best is not None else None
    return None


def after_failure(job: JobState, task: Task, outcome: Outcome) -> Outcome | None:
    """Return the job's outcome after ``task`` has failed permanently; None: the job continues."""
    policy = job.config.policy
    tracked = _tracked(job)
    if task.kind != "tracked" or policy not in ("any", "fraction"):
        return _outcome_of_task(task, outcome)
    failed = sum(other.failed for other in tracked)
    if policy == "any":
        return _outcome_of_task(task, outcome) if failed == len(tracked) else after_success(job)
    allowed = job.config.spec.allowed_failures * len(tracked) + _EPSILON
    return _outcome_of_task(task, outcome) if failed > allowed else after_success(job)


def _tracked(job: JobState) -> list[Task]:
    """Return the tracked tasks; of a gang that started with fewer tasks, only those in it."""
    tracked = [task for task in job.tasks.values() if task.kind == "tracked"]
    return [task for task in tracked if task.name in job.members_by_task or task.failed] or tracked


def _succeeded(task: Task) -> bool:
    outcome = task.outcome
    return outcome is not None and outcome.reason is EndReason.SUCCEEDED and not task.failed


def _outcome_of_task(task: Task, outcome: Outcome) -> Outcome:
    detail = (
        f"{task.name}: {outcome.detail}"
        if outcome.detail
        else _("{task} failed.").format(task=task.name)
    )
    return Outcome(
        outcome.reason, detail, outcome.exit_code, outcome.signal, failure=outcome.failure
    )
