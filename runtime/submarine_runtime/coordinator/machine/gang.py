"""The gang: containers for all, programs only when every one is ready, and patience with an end.

Pure: changes a ``Play`` and adds to its actions.
"""

from __future__ import annotations

import random

from submarine_runtime.coordinator.machine import restore_state
from submarine_runtime.coordinator.machine.actions import Ask, Release, Send, Start
from submarine_runtime.coordinator.machine.state import (
    ACTIVE,
    ATTENDED,
    Act,
    Outcome,
    Play,
    Stage,
    Task,
)
from submarine_runtime.protocol.reasons import EndReason
from submarine_runtime.yarn import localizing

#: Seconds that a gang which has its minimum waits for the rest.
ENOUGH_PATIENCE = 10.0
#: Seconds that an agent told to leave may take, when nobody waits for its outputs.
DEPARTURE = 30.0
LONGEST_REST = 120.0


def ask(play: Play, task: Task, now: float, elsewhere: bool = False) -> None:
    """Ask for a container for ``task``, whatever it had before."""
    task.asks += 1
    role, index = task.orders.name, task.index
    task.seat, task.nonce, task.node = f"{role}-{index}.{task.asks}", "", ""
    task.stage, task.member, task.linked = Stage.ASKED, None, False
    task.placed_at, task.placed_on, task.stop_by = None, "", None
    task.ports_wanted, task.synced = False, True
    if task.waiting_since is None:
        task.waiting_since = now
    play.seats[task.seat] = task
    play.out.append(Ask(task.name, task.seat, elsewhere))


def drop(play: Play, task: Task) -> None:
    """Give up the seat of ``task``; its container goes, its agent is refused from now on."""
    if task.stage not in (Stage.NONE, Stage.GONE):
        play.out.append(Release(task.seat))
        play.seats.pop(task.seat, None)
    task.stage, task.linked, task.member = Stage.GONE, False, None


def gather(play: Play, now: float) -> None:
    """Wait for a whole gang: ask for what is missing, keep what is there."""
    play.act, play.enough_since, play.complete = Act.GATHERING, None, False
    play.allocated = False
    for task in play.gang:
        if task.stage in (Stage.NONE, Stage.GONE):
            ask(play, task, now)


def advance(play: Play, now: float) -> None:
    """Start the gang if it stands and no lost container can still be writing."""
    if play.act is not Act.GATHERING:
        return
    chosen = _chosen(play, now)
    if chosen is None or any(moment > now for moment, _ in play.fences.values()):
        return
    if not restore_state.ready(play):
        return
    for task in play.gang:
        if task not in chosen:
            drop(play, task)
            task.waiting_since = None
    play.act = Act.PLAYING
    play.cast = {task.name: task.member for task in chosen if task.member is not None}
    play.members = tuple(play.cast.values())
    for task in chosen:
        task.epoch, task.attempt, task.wanted, task.outcome = play.epoch, 0, True, None
    play.note("gang", f"{len(chosen)} tasks start.", epoch=play.epoch, restarts=play.restarts)


def _chosen(play: Play, now: float) -> list[Task] | None:
    """The tasks to start with, or None while it is worth to wait."""
    gang = play.gang
    if gang and all(task.startable for task in gang):
        return gang
    chosen: list[Task] = []
    for role in play.config.roles:
        own = [task for task in gang if task.orders is role]
        ready = 0
        while ready < len(own) and own[ready].startable:
            ready += 1
        if ready < min(role.least if role.least is not None else len(own), len(own)):
            play.enough_since = None
            return None
        chosen += own[:ready]
    if not chosen:
        return None
    if play.enough_since is None:
        play.enough_since = now
    # Whoever has a container will be ready soon and is not left behind.
    late = [task for task in gang if task.stage in (Stage.PREPARING, Stage.STOPPING)]
    return chosen if now - play.enough_since >= ENOUGH_PATIENCE and not late else None


def release_starts(play: Play, now: float) -> None:
    """Start the programs that are wanted, each after the roles that it wants to come after."""
    if play.verdict is not None:
        return
    for task in play.tasks.values():
        if task.wanted and task.startable and _may_start(play, task, now):
            _start(play, task)


def _may_start(play: Play, task: Task, now: float) -> bool:
    if task.in_gang and play.act is not Act.PLAYING:
        return False
    if any(moment > now and whose == task.name for moment, whose in play.fences.values()):
        return False
    if task.in_gang and task.attempt and _addresses_missing(play, task):
        return False
    names = {role for role in task.orders.after if role != task.orders.name}
    before = [other for other in play.gang if other.orders.name in names and other is not task]
    return all(other.stage is Stage.RUNNING or other.outcome is not None for other in before)


def _addresses_missing(play: Play, task: Task) -> bool:
    """Whether the chief or a serving task is being replaced, so that its new address is unknown.

    A task that restarts alone connects to these tasks. With an old address it would wait until its
    own timeout.
    """
    for other in play.gang:
        serves = other is play.chief or other.kind == "untracked"
        if serves and other is not task and other.name in play.cast:
            replaced = other.wanted and not other.startable
            if replaced or (other.stage in ATTENDED and not other.linked):
                return True
    return False


def _start(play: Play, task: Task) -> None:
    task.attempt += 1
    if not task.in_gang:
        task.epoch = task.epoch or play.epoch
    task.stage, task.wanted, task.outcome = Stage.STARTING, False, None
    task.stopped = task.synced = task.saved = False
    play.out.append(start_line(play, task))


def start_line(play: Play, task: Task) -> Start:
    """The order to start ``task`` as it stands."""
    members = play.members
    moved = task.member is not None and play.cast.get(task.name) is not task.member
    if moved or task.attempt > 1:
        # A sidecar, a task that was placed again, or a restart beside tasks that were: running
        # programs keep the addresses that they were given, this one gets the newest.
        known = dict(play.cast)
        for other in play.tasks.values():
            if other.member is not None and (other is task or other.name in known):
                known[other.name] = other.member
        members = tuple(known[name] for name in play.tasks if name in known)
        if task.in_gang:
            play.cast, play.members = known, members
    restore = restore_state.order_of(play, task)
    alone = restore_state.alone(play, task)
    return Start(task.seat, task.epoch, task.attempt, members, restore, alone)


def waiting_sentence(play: Play, now: float) -> str:
    """``5 of 8 containers, waiting 40 s for 3 with 1 GPU each``; empty when nobody waits."""
    if play.verdict is not None:
        return ""
    gang = play.gang
    waiting = [task for task in gang if task.stage is Stage.ASKED]
    if play.act is Act.RESTING:
        left = max(0.0, play.rest_until - now)
        return f"The cluster did not give all containers in time; the next try is in {left:.0f} s."
    localizes = localizing_sentence(play, now)
    waiting = [task for task in waiting if not task.localizing]
    if not waiting:
        return localizes
    moments = [task.waiting_since for task in waiting if task.waiting_since is not None]
    since = min(moments, default=now)
    counts: dict[tuple[int, int, int], int] = {}
    for task in waiting:
        size = (task.orders.memory, task.orders.vcores, task.orders.gpus)
        counts[size] = counts.get(size, 0) + 1
    have = len(gang) - len(waiting)
    what = " and ".join(f"{count} {_size(*size, count)}" for size, count in counts.items())
    passed = f" {now - since:.0f} s" if now - since >= 1.0 else ""
    words = f"{have} of {len(gang)} containers, waiting{passed} for {what}"
    return f"{words}; {localizes}" if localizes else words


def localizing_sentence(play: Play, now: float) -> str:
    """Where YARN brings files of the gang to its nodes, and for how long; empty: nowhere."""
    gang = play.gang
    found = [task for task in gang if task.localizing]
    if not found:
        return ""
    since = min(task.placed_at for task in found if task.placed_at is not None)
    what = "; ".join(dict.fromkeys(t.orders.localizes for t in found if t.orders.localizes))
    ready = len(gang) - sum(task.stage is Stage.ASKED for task in gang)
    told = f"{ready} of {len(gang)} tasks {'is' if ready == 1 else 'are'} ready"
    return localizing([task.placed_on for task in found], now - since, what, told)


def _size(memory: int, vcores: int, gpus: int, count: int) -> str:
    each = " each" if count > 1 else ""
    if gpus:
        return f"with {gpus} GPU{'s' if gpus > 1 else ''}{each}"
    size = f"{memory} MiB, " if memory else ""
    return f"with {size}{vcores} vcore{'s' if vcores > 1 else ''}{each}"


def look_at_patience(play: Play, now: float, why: str = "") -> tuple[Outcome | None, bool]:
    """Whether the gang has waited for too long: (why the job ends, whether it let go).

    Parameters
    ----------
    why
        What the cluster says of the containers that are missing.
    """
    timeout = play.config.gang_timeout
    if timeout is None or play.act not in (Act.GATHERING, Act.PLAYING):
        return None, False
    waits = [
        task.waiting_since
        for task in play.gang
        if task.stage is Stage.ASKED and not task.localizing and task.waiting_since is not None
    ]
    if not waits or now - min(waits) < timeout:
        return None, False
    sentence = waiting_sentence(play, now) + (f": {why}" if why else "")
    play.gang_tries += 1
    retries = play.config.gang_retries
    if retries is not None and play.gang_tries > retries:
        return Outcome(EndReason.GANG_TIMED_OUT, f"{sentence}."), False
    _let_go(play, now)
    # The same orders give the same pauses, so that a journal can be played again.
    chance = random.Random(f"{play.config.job_id}:{play.config.intent}:{play.gang_tries}")  # noqa: S311
    base = min(LONGEST_REST, max(1.0, timeout / 4) * 2 ** (play.gang_tries - 1))
    play.act, play.rest_until = Act.RESTING, now + base * chance.uniform(0.5, 1.5)
    play.note("gang", f"All containers are given back: {sentence}.", tries=play.gang_tries)
    return None, True


def _let_go(play: Play, now: float) -> None:
    """Everything of the gang goes; what runs is stopped and ships what it has first."""
    if any(task.stage in ACTIVE for task in play.gang):
        play.epoch += 1
    for task in play.gang:
        if task.stage in ATTENDED and task.linked:
            depart(play, task, now)
        else:
            drop(play, task)
        task.waiting_since, task.wanted = None, False


def depart(play: Play, task: Task, now: float) -> None:
    """Send an agent away whose task goes on elsewhere."""
    seat, grace = task.seat, play.config.kill_grace
    if task.stage in ACTIVE:
        play.out.append(Send(seat, {"type": "stop", "why": "the gang restarts", "grace": grace}))
        late = now + grace + play.config.lost_after + play.config.lost_margin
        play.fences[seat] = (late, task.name)
    # Its task goes on elsewhere: outputs of this container would be written beside the new ones.
    play.out.append(Send(seat, {"type": "leave", "outputs": False}))
    play.departing[seat] = now + grace + DEPARTURE
    task.stage, task.linked, task.member = Stage.GONE, False, None
