"""React to programs that show no activity, and to idle GPUs: ``--stall`` and ``--idle-gpu``.

Agents report that a limit is exceeded. The stacks of all tasks then tell whether a task hangs or
waits for another one that computes. The functions change a ``JobState`` and add to its actions.
"""

from __future__ import annotations

from submarine_runtime.coordinator.machine.actions import TakeStacks
from submarine_runtime.coordinator.machine.ending import end_job
from submarine_runtime.coordinator.machine.faults import restart_stalled
from submarine_runtime.coordinator.machine.registration import is_current, task_of_seat
from submarine_runtime.coordinator.machine.state import (
    Event,
    JobPhase,
    JobState,
    Outcome,
    Stage,
)
from submarine_runtime.protocol import EndReason
from submarine_runtime.record import idle_gpu_sentence

#: Seconds from the first report to the stacks: other tasks may report in the meantime.
SETTLE_SECONDS = 2.0


def idle_reported(job: JobState, event: Event, now: float) -> None:
    """Handle ``idle``: a limit of a task is exceeded, or there is activity again."""
    task = task_of_seat(job, event)
    if task is None or not is_current(task, event) or task.stage is not Stage.RUNNING:
        return
    idle = float(event["seconds"]) > 0
    if event["what"] == "gpus":
        task.gpus_idle = idle
        _check_gpus(job, now, float(event["seconds"]))
        return
    task.quiet = idle
    schedule_check(job, now)


def schedule_check(job: JobState, now: float) -> None:
    """Plan to take the stacks if a task is quiet and this is not reported yet."""
    if not any(task.quiet for task in job.gang):
        job.stall_reported, job.stall_check = False, None
    elif not job.stall_reported and job.stall_check is None:
        job.stall_check = now + SETTLE_SECONDS


def take_stacks_if_due(job: JobState, now: float) -> None:
    """Take the stacks of all tasks if that is planned for this time."""
    if job.stall_check is None or now < job.stall_check or job.verdict is not None:
        return
    job.stall_check = None
    if job.phase is not JobPhase.RUNNING or not any(task.quiet for task in job.gang):
        return
    training = [task for task in job.gang if task.in_collective]
    running = [task.name for task in training if task.stage is Stage.RUNNING]
    ended = [task.name for task in training if task.stage is Stage.ENDED]
    job.actions.append(TakeStacks(job.epoch, tuple(running), tuple(ended)))


def stacks_taken(job: JobState, event: Event, now: float) -> None:
    """Handle ``stacks``: the report on the stacks of an epoch."""
    quiet = [task for task in job.gang if task.quiet]
    if event["epoch"] != job.epoch or job.verdict is not None or not quiet:
        return
    if not event["stalled"]:
        job.stall_check = now + float(event["again"])
        return
    job.stall_reported = True
    sentence = str(event["sentence"])
    named = [job.tasks[name] for name in event["tasks"] if name in job.tasks] or quiet
    task = named[0]
    job.add_event("stall", sentence, None, tasks=[one.name for one in named], **event["data"])
    if job.config.spec.stall.action == "restart" and job.phase is JobPhase.RUNNING:
        restart_stalled(job, task, now, Outcome(EndReason.STALLED, sentence))


def _check_gpus(job: JobState, now: float, seconds: float) -> None:
    """Warn or end the job when all of its GPUs are idle."""
    users = [
        task
        for task in job.tasks.values()
        if task.role.resources.gpus and task.stage in (Stage.STARTING, Stage.RUNNING)
    ]
    if not users or not all(task.gpus_idle for task in users):
        job.gpus_reported = False
        return
    if job.gpus_reported or job.verdict is not None:
        return
    job.gpus_reported = True
    sentence = idle_gpu_sentence(seconds, [task.name for task in users])
    if job.config.spec.idle_gpu.action == "end":
        end_job(job, now, Outcome(EndReason.IDLE_GPU, sentence))
    else:
        job.add_event("idle_gpu", sentence)
