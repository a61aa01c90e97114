"""What a fault of one task does to the job: nothing, one task again, the whole gang, or the end.

Lost containers restart the job; an error of the program restarts it only if the job has made
progress since it last started. The cause of an error is looked for when the other tasks have ended
(``causes``). Pure: changes a ``Play`` and adds to its actions.
"""

from __future__ import annotations

from dataclasses import replace

from submarine_runtime.coordinator.machine.actions import Send
from submarine_runtime.coordinator.machine.causes import cause_of, identity, is_abort
from submarine_runtime.coordinator.machine.ending import decide
from submarine_runtime.coordinator.machine.gang import ask, drop, gather
from submarine_runtime.coordinator.machine.restore_point import Progress
from submarine_runtime.coordinator.machine.restore_state import gained
from submarine_runtime.coordinator.machine.state import (
    ACTIVE,
    Act,
    Deciding,
    Outcome,
    Play,
    Stage,
    Task,
)
from submarine_runtime.coordinator.machine.success_policy import after_failure
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
#: Counted restarts of a job for which ``--max-restarts`` was not given.
MAX_RESTARTS = 3
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
    hopeless = not retry or reason in PERMANENT
    if not hopeless and _has_other_causes(play, task, outcome):
        _collect(play, task, now, outcome)
        return
    if reason is EndReason.ADDRESS_IN_USE and play.port_renewals < MAX_PORT_RENEWALS:
        _renew_ports(play, task, now, outcome)
        return
    if hopeless:
        _give_up(play, task, now, outcome, "permanent")
        return
    _restart_within_limit(play, task, now, outcome)


def _restart_within_limit(
    play: Play, task: Task, now: float, outcome: Outcome, why: str = "", rule: str = "counted"
) -> None:
    """Restart unless the limit is reached; faults of ``UNCOUNTED`` are not counted.

    Parameters
    ----------
    why
        Sentence on the rule that applied, for events and record; empty: none is needed.
    rule
        One word for it, for the data of the event.
    """
    limit = MAX_RESTARTS if play.config.max_restarts is None else play.config.max_restarts
    free = outcome.reason in UNCOUNTED and play.free_restarts < MAX_FREE_RESTARTS
    used = task.faults if task.restarts_alone else play.restarts
    if not free and used >= limit:
        reached = f"Not restarted: the limit of {limit} restarts is reached." if why else ""
        _give_up(play, task, now, outcome, "limit", reached)
        return
    play.free_restarts += free
    if task.restarts_alone:
        task.faults += not free
    else:
        play.restarts += not free
    if free:
        rule = "uncounted"
    elif why:
        why = f"{why}; restart {play.restarts} of {limit}."
    _restart(play, task, now, outcome, why, rule)


def _give_up(
    play: Play, task: Task, now: float, outcome: Outcome, rule: str, why: str = ""
) -> None:
    task.failed, task.wanted = True, False
    if task.stage is Stage.PREPARING:
        drop(play, task)
    play.note("task_failed", outcome.detail, task.name, reason=outcome.reason.value, rule=rule)
    if why:
        outcome = replace(outcome, detail=f"{_ended(outcome.detail)} {why}".strip())
    end = after_failure(play, task, outcome)
    if end is not None:
        decide(play, now, end, task.name)


def _has_other_causes(play: Play, task: Task, outcome: Outcome) -> bool:
    """Whether the failure of another task may be the cause of this one.

    An error of the program, out-of-memory and SIGABRT may follow from a peer that was lost. With
    ``--max-restarts``, or where the framework restarts one task in place, the cause is not needed.
    """
    if play.config.max_restarts is not None or play.config.restart_in_place:
        return False
    if task.restarts_alone or play.act is not Act.PLAYING or task.stage is not Stage.ENDED:
        return False
    own = outcome.reason in (EndReason.PROGRAM_ERROR, EndReason.OUT_OF_MEMORY)
    return own or is_abort(outcome)


def _collect(play: Play, task: Task, now: float, outcome: Outcome) -> None:
    """Keep a failure until the cause is known."""
    if play.deciding is None:
        wait = play.config.lost_after + play.config.lost_margin
        play.deciding = Deciding(now + wait)
        plan = f"A restart is decided when the other tasks have ended, in {wait:g} s at the latest."
        detail = f"{_ended(outcome.detail)} {plan}".strip()
    else:
        detail = _ended(outcome.detail)
    play.deciding.failures.append((task.name, outcome))
    play.note("failure", detail, task.name, reason=outcome.reason.value)


def decide_restart(play: Play, now: float) -> None:
    """Decide about a restart once the cause of the failures can be known."""
    deciding, epoch = play.deciding, play.epoch
    if deciding is None or play.verdict is not None:
        return
    if play.act is not Act.PLAYING:
        play.deciding = None  # the gang starts again anyway
        return
    if now < deciding.until and any(_may_tell_more(task) for task in play.gang):
        return
    play.deciding = None
    found = cause_of(deciding.failures)
    name, outcome = found or deciding.failures[0]
    task = play.tasks[name]
    if found is None:
        why = "Only errors of connections between tasks were found"
        _restart_within_limit(play, task, now, outcome, why, "connection")
    elif is_abort(outcome):
        _restart_within_limit(play, task, now, outcome)
    else:
        _restart_after_error(play, task, now, outcome)
    for name, outcome in deciding.failures:
        # Without a restart the other tasks have failed for good too, where the job goes on at all.
        if play.verdict is None and play.epoch == epoch and not play.tasks[name].failed:
            _give_up(play, play.tasks[name], now, outcome, "peer")


def _may_tell_more(task: Task) -> bool:
    """Whether a task may still report a failure, or a checkpoint that its program has left."""
    if task.stage in ACTIVE:
        return task.in_collective
    return task.stage is Stage.ENDED and task.linked and not task.synced


def _restart_after_error(play: Play, task: Task, now: float, outcome: Outcome) -> None:
    """Restart after an error of the program, if the job has made progress since it last started."""
    progress = gained(play)
    if progress is Progress.STEP and play.free_restarts < MAX_FREE_RESTARTS:
        play.free_restarts += 1
        why = "The job has made progress since it last started; not counted."
        _restart(play, task, now, outcome, why, "progress")
    elif progress is not Progress.NONE:
        why = "The job has a later restore point than the one that it last started from"
        _restart_within_limit(play, task, now, outcome, why, "snapshot")
    elif play.epoch == 1:
        why = "Not restarted: the job has made no progress since it started."
        _give_up(play, task, now, outcome, "no_progress", why)
    elif play.last_cause == identity(outcome):
        why = "Not restarted: the same error again, and no progress since the job last started."
        _give_up(play, task, now, outcome, "same_cause", why)
    else:
        why = "No progress since the job last started, but another error than the last time"
        _restart_within_limit(play, task, now, outcome, why, "other_cause")


def _ended(detail: str) -> str:
    """``detail`` as a sentence: it may end with a line of the program."""
    return detail if not detail or detail.endswith((".", "!", "?", ":")) else f"{detail}."


def _restart(play: Play, task: Task, now: float, outcome: Outcome, why: str, rule: str) -> None:
    task.restarts += 1
    in_place = play.config.restart_in_place or task.restarts_alone
    alone = in_place and play.act is Act.PLAYING
    how = "the task" if alone or play.act is not Act.PLAYING else "the gang"
    words = [f"{task.name}:", _ended(outcome.detail), why, f"Restarting {how}."]
    play.note(
        "restart",
        " ".join(filter(None, words)),
        task.name,
        reason=outcome.reason.value,
        rule=rule,
        restarts=play.restarts,
        epoch=play.epoch,
    )
    if _spoiled(play, task):
        drop(play, task)
    if play.act is Act.PLAYING and not alone:
        play.last_cause = identity(outcome)
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
    play.deciding = None
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
    whose = "It" if task.restarts_alone else "The gang"
    detail = f"{task.name}: {_ended(outcome.detail)} {whose} gets new ports."
    play.note("ports", detail, task.name)
    if task.restarts_alone:
        task.wanted = play.act is Act.PLAYING
        _want_ports_of(play, task)
    elif play.act is Act.PLAYING:
        play.last_cause = identity(outcome)
        restart_gang(play, now)
    else:
        _want_ports(play)


def _want_ports(play: Play) -> None:
    """Every container of the gang that is kept reserves new ports."""
    for other in play.gang:
        _want_ports_of(play, other)


def _want_ports_of(play: Play, task: Task) -> None:
    if task.member is not None and task.stage is not Stage.GONE:
        task.ports_wanted = True
        if task.stage not in ACTIVE:
            play.out.append(Send(task.seat, {"type": "ports"}))


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
