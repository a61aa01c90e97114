"""What a fault of one task does to the job: nothing, one task again, the whole gang, or the end.

Pure: changes a ``Play`` and adds to its actions.
"""

from __future__ import annotations

from submarine_runtime.coordinator.actions import Send
from submarine_runtime.coordinator.gang import ask, drop, gather
from submarine_runtime.coordinator.leaving import decide
from submarine_runtime.coordinator.play import ACTIVE, Act, Outcome, Play, Stage, Task
from submarine_runtime.coordinator.policy import after_failure
from submarine_runtime.protocol.reasons import EndReason
from submarine_runtime.protocol.states import State

#: Nobody's fault: made good without being counted.
UNCOUNTED = frozenset({EndReason.PREEMPTED, EndReason.NODE_LOST})
#: Would come again.
PERMANENT = frozenset(
    {EndReason.IMPORT_ERROR, EndReason.INPUT_MISSING, EndReason.NEVER_FITS, EndReason.TIMED_OUT}
)
#: What a node may be to blame for.
OF_NODES = frozenset(
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
NODE_FAULTS = 2
#: The only node of the local backend: there is no other to go to.
LOCAL_NODE = "local"
#: Faults that are not counted have an end all the same.
MAX_FREE_RESTARTS = 100
MAX_PORT_RENEWALS = 5
MAX_SIDECAR_RESTARTS = 3


def fault(play: Play, task: Task, now: float, outcome: Outcome, retry: bool = True) -> None:
    """A task has ended otherwise than it should, or is lost."""
    if play.verdict is not None:
        return
    task.outcome, reason = outcome, outcome.reason
    if reason in OF_NODES and task.node not in ("", LOCAL_NODE):
        play.blamed[task.node] = play.blamed.get(task.node, 0) + 1
        if play.blamed[task.node] == NODE_FAULTS:
            play.note("warning", f"{task.node} has failed twice and is avoided from now on.")
    if not task.in_gang:
        _sidecar(play, task, now, outcome)
        return
    if reason is EndReason.ADDRESS_IN_USE and play.port_renewals < MAX_PORT_RENEWALS:
        _renew_ports(play, task, now, outcome)
        return
    free = reason in UNCOUNTED and play.free_restarts < MAX_FREE_RESTARTS
    hopeless = not retry or reason in PERMANENT
    if hopeless or not (free or play.restarts < play.config.max_restarts):
        _give_up(play, task, now, outcome)
        return
    play.free_restarts += free
    play.restarts += not free
    _restart(play, task, now, outcome)


def _give_up(play: Play, task: Task, now: float, outcome: Outcome) -> None:
    task.failed, task.wanted = True, False
    if task.stage is Stage.PREPARING:
        drop(play, task)
    play.note("task_failed", outcome.detail, task.name, reason=outcome.reason.value)
    end = after_failure(play, task, outcome)
    if end is not None:
        decide(play, now, end, task.name)


def _ended(detail: str) -> str:
    """``detail`` as a sentence: it may end with a line of the program."""
    return detail if not detail or detail.endswith((".", "!", "?", ":")) else f"{detail}."


def _restart(play: Play, task: Task, now: float, outcome: Outcome) -> None:
    task.restarts += 1
    alone = play.config.restart_in_place and play.act is Act.PLAYING
    how = "the task" if alone or play.act is not Act.PLAYING else "the gang"
    play.note(
        "restart",
        f"{task.name}: {_ended(outcome.detail)} Restarting {how}.",
        task.name,
        reason=outcome.reason.value,
        restarts=play.restarts,
        epoch=play.epoch,
    )
    if _spoiled(play, task):
        drop(play, task)
    if play.act is Act.PLAYING and not alone:
        restart_gang(play, now)
        return
    if task.stage in (Stage.NONE, Stage.GONE) and play.act is not Act.RESTING:
        ask(play, task, now)
    task.wanted = alone


def _spoiled(play: Play, task: Task) -> bool:
    """Whether the task's container is no place for another attempt."""
    if task.stage is Stage.ENDED and task.linked and task.epoch:
        return play.blamed.get(task.node, 0) >= NODE_FAULTS
    return True


def restart_gang(play: Play, now: float) -> None:
    """Everything stops; the gang starts again in a new epoch once it stands.

    On new ports: connections of the old epoch keep its ports busy for a minute (TIME_WAIT).
    """
    play.epoch += 1
    play.become(State.RESTARTING)
    for task in play.gang:
        task.wanted = False
        if task.stage in (Stage.STARTING, Stage.RUNNING):
            stop(play, task, now, "the gang restarts")
    _want_ports(play)
    gather(play, now)


def stop(play: Play, task: Task, now: float, why: str) -> None:
    """Tell a task's program to end; its agent stays."""
    grace = play.config.kill_grace
    task.stage, task.stopped = Stage.STOPPING, True
    task.stop_by = now + grace + play.config.lost_after
    play.out.append(Send(task.seat, {"type": "stop", "why": why, "grace": grace}))


def _renew_ports(play: Play, task: Task, now: float, outcome: Outcome) -> None:
    play.port_renewals += 1
    play.note("ports", f"{task.name}: {outcome.detail} The gang gets new ports.", task.name)
    if play.act is Act.PLAYING:
        restart_gang(play, now)
    else:
        _want_ports(play)


def _want_ports(play: Play) -> None:
    """Every container of the gang that is kept reserves new ports."""
    for other in play.gang:
        if other.member is not None and other.stage is not Stage.GONE:
            other.ports_wanted = True
            if other.stage not in ACTIVE:
                play.out.append(Send(other.seat, {"type": "ports"}))


def _sidecar(play: Play, task: Task, now: float, outcome: Outcome) -> None:
    if task.restarts >= MAX_SIDECAR_RESTARTS:
        task.failed, task.wanted = True, False
        play.note("warning", f"{task.name} is given up: {outcome.detail}", task.name)
        return
    task.restarts += 1
    play.note("restart", f"{task.name}: {_ended(outcome.detail)} Restarting it.", task.name)
    if _spoiled(play, task):
        drop(play, task)
        ask(play, task, now)
    task.wanted = True
