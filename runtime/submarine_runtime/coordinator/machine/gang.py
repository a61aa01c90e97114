"""Form the gang: request containers for all tasks and start the programs when all are ready.

The functions change a ``JobState`` and add to its actions.
"""

from __future__ import annotations

import random
from collections import Counter

from submarine_runtime.coordinator.machine import restore_state
from submarine_runtime.coordinator.machine.actions import (
    ReleaseContainer,
    RequestContainer,
    SendMessage,
    StartTask,
)
from submarine_runtime.coordinator.machine.state import (
    ACTIVE,
    MONITORED,
    JobPhase,
    JobState,
    Outcome,
    Stage,
    Task,
)
from submarine_runtime.protocol import EndReason, Resources
from submarine_runtime.translation import _, ngettext
from submarine_runtime.yarn import localizing_sentence

#: Seconds for which a gang with its minimum of tasks waits for the others.
MINIMUM_GANG_WAIT = 10.0
#: Seconds for an agent to leave when its outputs are not needed.
LEAVE_SECONDS = 30.0
MAX_BACKOFF = 120.0


def request_container(job: JobState, task: Task, now: float, delayed: bool = False) -> None:
    """Request a new container for ``task``.

    Parameters
    ----------
    now
        Time in seconds.
    delayed
        See ``RequestContainer``.
    """
    task.request_count += 1
    role, index = task.role.name, task.index
    task.seat, task.nonce, task.node = f"{role}-{index}.{task.request_count}", "", ""
    task.stage, task.member, task.linked = Stage.REQUESTED, None, False
    task.placed_at, task.placed_on, task.stop_deadline = None, "", None
    task.ports_requested, task.synced, task.quiet = False, True, False
    if task.waiting_since is None:
        task.waiting_since = now
    job.seats[task.seat] = task
    job.actions.append(RequestContainer(task.name, task.seat, delayed))


def release_container(job: JobState, task: Task) -> None:
    """Release the container of ``task``; its agent is refused from now on."""
    if task.stage not in (Stage.NONE, Stage.GONE):
        job.actions.append(ReleaseContainer(task.seat))
        job.seats.pop(task.seat, None)
    task.stage, task.linked, task.member = Stage.GONE, False, None


def start_gathering(job: JobState, now: float) -> None:
    """Request the missing containers of the gang and keep the others."""
    job.phase, job.minimum_since, job.complete = JobPhase.GATHERING, None, False
    job.allocated = False
    for task in job.gang:
        if task.stage in (Stage.NONE, Stage.GONE):
            request_container(job, task, now)


def start_gang_if_ready(job: JobState, now: float) -> None:
    """Start the gang if it is complete and no lost container can still write."""
    if job.phase is not JobPhase.GATHERING:
        return
    chosen = _tasks_to_start(job, now)
    if chosen is None or any(until > now for until, _ in job.fences.values()):
        return
    if not restore_state.restore_point_known(job):
        return
    for task in job.gang:
        if task not in chosen:
            release_container(job, task)
            task.waiting_since = None
    job.phase = JobPhase.RUNNING
    job.members_by_task = {task.name: task.member for task in chosen if task.member is not None}
    job.members = tuple(job.members_by_task.values())
    for task in chosen:
        task.epoch, task.attempt, task.start_requested, task.outcome = job.epoch, 0, True, None
    job.add_event(
        "gang",
        _("{count} tasks start.").format(count=len(chosen)),
        epoch=job.epoch,
        restarts=job.restarts,
    )


def _tasks_to_start(job: JobState, now: float) -> list[Task] | None:
    """Return the tasks to start, or None while the gang is incomplete."""
    gang = job.gang
    if gang and all(task.startable for task in gang):
        return gang
    chosen: list[Task] = []
    for role in job.config.spec.roles:
        own = [task for task in gang if task.role is role]
        ready = 0
        while ready < len(own) and own[ready].startable:
            ready += 1
        if ready < min(role.least if role.least is not None else len(own), len(own)):
            job.minimum_since = None
            return None
        chosen += own[:ready]
    if not chosen:
        return None
    if job.minimum_since is None:
        job.minimum_since = now
    # Tasks that have a container will be ready soon: wait for them.
    late = [task for task in gang if task.stage in (Stage.PREPARING, Stage.STOPPING)]
    return chosen if now - job.minimum_since >= MINIMUM_GANG_WAIT and not late else None


def start_pending_tasks(job: JobState, now: float) -> None:
    """Start the requested programs, each after the roles in its ``after``."""
    if job.verdict is not None:
        return
    for task in job.tasks.values():
        if task.start_requested and task.startable and _may_start(job, task, now):
            _start(job, task)


def _may_start(job: JobState, task: Task, now: float) -> bool:
    if task.in_gang and job.phase is not JobPhase.RUNNING:
        return False
    if any(until > now and name == task.name for until, name in job.fences.values()):
        return False
    if task.in_gang and task.attempt and _addresses_missing(job, task):
        return False
    names = {role for role in task.role.after if role != task.role.name}
    before = [other for other in job.gang if other.role.name in names and other is not task]
    return all(other.stage is Stage.RUNNING or other.outcome is not None for other in before)


def _addresses_missing(job: JobState, task: Task) -> bool:
    """Whether the chief or a serving task is being replaced, so that its new address is unknown.

    A task that restarts alone connects to these tasks. With an old address it would wait until its
    own timeout.
    """
    for other in job.gang:
        serves = other is job.chief or other.kind == "untracked"
        if serves and other is not task and other.name in job.members_by_task:
            replaced = other.start_requested and not other.startable
            if replaced or (other.stage in MONITORED and not other.linked):
                return True
    return False


def _start(job: JobState, task: Task) -> None:
    task.attempt += 1
    if not task.in_gang:
        task.epoch = task.epoch or job.epoch
    task.stage, task.start_requested, task.outcome = Stage.STARTING, False, None
    task.stop_requested = task.synced = task.saved = False
    job.actions.append(start_action(job, task))


def start_action(job: JobState, task: Task) -> StartTask:
    """Return the action that starts ``task`` in its present state."""
    members = job.members
    new_member = task.member is not None and job.members_by_task.get(task.name) is not task.member
    if new_member or task.attempt > 1:
        # A sidecar, a task in a new container, or a restart after another task got one: running
        # programs keep their addresses, this one receives the newest.
        newest = dict(job.members_by_task)
        for other in job.tasks.values():
            if other.member is not None and (other is task or other.name in newest):
                newest[other.name] = other.member
        members = tuple(newest[name] for name in job.tasks if name in newest)
        if task.in_gang:
            job.members_by_task, job.members = newest, members
    restore = restore_state.restore_order(job, task)
    alone = restore_state.restores_alone(job, task)
    return StartTask(task.seat, task.epoch, task.attempt, members, restore, alone)


def waiting_sentence(job: JobState, now: float) -> str:
    """Return ``5 of 8 containers, waiting 40 s for 3 with 1 GPU each``; empty: all are present."""
    if job.verdict is not None:
        return ""
    gang = job.gang
    waiting = [task for task in gang if task.stage is Stage.REQUESTED]
    if job.phase is JobPhase.BACKOFF:
        left = max(0.0, job.backoff_until - now)
        return _(
            "The cluster did not give all containers in time; the next try is in {left:.0f} s."
        ).format(left=left)
    localizes = _localizing_part(job, now)
    waiting = [task for task in waiting if not task.localizing]
    if not waiting:
        return localizes
    starts = [task.waiting_since for task in waiting if task.waiting_since is not None]
    since = min(starts, default=now)
    counts = Counter(task.role.resources for task in waiting)
    have = len(gang) - len(waiting)
    what = " and ".join(f"{count} {_size(size, count)}" for size, count in counts.items())
    passed = f" {now - since:.0f} s" if now - since >= 1.0 else ""
    sentence = _("{have} of {count} containers, waiting{passed} for {what}").format(
        have=have, count=len(gang), passed=passed, what=what
    )
    return f"{sentence}; {localizes}" if localizes else sentence


def _localizing_part(job: JobState, now: float) -> str:
    """Return where and for how long YARN localizes files of the gang; empty: nowhere."""
    gang = job.gang
    found = [task for task in gang if task.localizing]
    if not found:
        return ""
    since = min(task.placed_at for task in found if task.placed_at is not None)
    archives = [job.config.localizes.get(task.role.name) for task in found]
    what = "; ".join(dict.fromkeys(filter(None, archives)))
    ready = len(gang) - sum(task.stage is Stage.REQUESTED for task in gang)
    progress = ngettext(
        "{ready} of {count} tasks is ready", "{ready} of {count} tasks are ready", ready
    ).format(ready=ready, count=len(gang))
    return localizing_sentence([task.placed_on for task in found], now - since, what, progress)


def _size(size: Resources, count: int) -> str:
    memory, vcores, gpus = size.memory, size.vcores, size.gpus
    each = " each" if count > 1 else ""
    if gpus:
        return ngettext("with {gpus} GPU{each}", "with {gpus} GPUs{each}", gpus).format(
            gpus=gpus, each=each
        )
    amount = _("{memory} MiB, ").format(memory=memory) if memory else ""
    return ngettext(
        "with {size}{vcores} vcore{each}", "with {size}{vcores} vcores{each}", vcores
    ).format(size=amount, vcores=vcores, each=each)


def check_gang_timeout(job: JobState, now: float, why: str = "") -> Outcome | None:
    """Release all containers after ``gang_timeout``; return the outcome after the last attempt.

    Parameters
    ----------
    why
        What the cluster reports about the missing containers.
    """
    timeout = job.config.gang_timeout
    if timeout is None or job.phase not in (JobPhase.GATHERING, JobPhase.RUNNING):
        return None
    waits = [
        task.waiting_since
        for task in job.gang
        if task.stage is Stage.REQUESTED and not task.localizing and task.waiting_since is not None
    ]
    if not waits or now - min(waits) < timeout:
        return None
    sentence = waiting_sentence(job, now) + (f": {why}" if why else "")
    job.gang_tries += 1
    retries = job.config.gang_retries
    if retries is not None and job.gang_tries > retries:
        return Outcome(EndReason.GANG_TIMED_OUT, f"{sentence}.")
    _release_gang(job, now)
    # The same configuration gives the same pauses, so that the journal can be replayed.
    jitter = random.Random(f"{job.config.record.job_id}:{job.config.intent}:{job.gang_tries}")  # noqa: S311
    base = min(MAX_BACKOFF, max(1.0, timeout / 4) * 2 ** (job.gang_tries - 1))
    job.phase, job.backoff_until = JobPhase.BACKOFF, now + base * jitter.uniform(0.5, 1.5)
    job.add_event(
        "gang",
        _("All containers are released: {sentence}.").format(sentence=sentence),
        tries=job.gang_tries,
    )
    return None


def _release_gang(job: JobState, now: float) -> None:
    """Release all containers; running programs are stopped and save their output first."""
    if any(task.stage in ACTIVE for task in job.gang):
        job.epoch += 1
    for task in job.gang:
        if task.stage in MONITORED and task.linked:
            dismiss_agent(job, task, now)
        else:
            if task.stage in ACTIVE:  # Its node may be cut off, so that the program still runs.
                late = now + job.config.lost_after + job.config.lost_margin
                job.fences[task.seat] = (late, task.name)
            release_container(job, task)
        task.waiting_since, task.start_requested = None, False


def dismiss_agent(job: JobState, task: Task, now: float) -> None:
    """Dismiss an agent because its task will continue in another container."""
    seat, grace = task.seat, job.config.kill_grace
    if task.stage in ACTIVE:
        job.actions.append(
            SendMessage(seat, {"type": "stop", "why": _("the gang restarts"), "grace": grace})
        )
        late = now + grace + job.config.lost_after + job.config.lost_margin
        job.fences[seat] = (late, task.name)
    # The task continues elsewhere: outputs of this container would mix with the new ones.
    job.actions.append(SendMessage(seat, {"type": "leave", "outputs": False}))
    job.release_deadlines[seat] = now + grace + LEAVE_SECONDS
    task.stage, task.linked, task.member = Stage.GONE, False, None
