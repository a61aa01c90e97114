"""Describe the state of an unfinished job in one sentence; facts of jobs with several tasks.

Returns raw strings, as ``summary`` does.
"""

from __future__ import annotations

from collections import Counter

from submarine_jobs.display.task_rows import times
from submarine_jobs.model import JobView
from submarine_runtime.protocol.record import JobRecord, TaskRecord
from submarine_runtime.protocol.states import State
from submarine_runtime.translation import _

#: Maximum number of tasks that are listed by name.
_NAMED = 4


def sentence(view: JobView) -> str:
    """Return the sentence on the state of an unfinished job."""
    record = view.record
    several = len(record.tasks) > 1
    where = _where(record)
    waits = _own_sentence(view.pending or record.pending)
    if record.state is State.PENDING:
        return waits or (
            _("It waits until the cluster has free containers for its tasks.")
            if several
            else _("It waits until the cluster has a free container for it.")
        )
    if record.state is State.RESTARTING:
        what = _("The tasks are") if several else _("The program is")
        why = waits or record.detail
        return (
            _("{what} being started again{where}. {why}")
            .format(what=what, where=where, why=why)
            .strip()
        )
    if record.state is State.RUNNING and several:
        return f"{_running(record)} {waits}".strip()
    if record.state is State.STARTING and waits.startswith("localizing"):
        return f"{waits[0].upper()}{waits[1:]}."
    words = {
        State.SUBMITTING: _("Its files are being uploaded and it is handed to the cluster."),
        State.STARTING: (
            _("{count} containers are being set up{where}.").format(
                count=len(record.tasks), where=where
            )
            if several
            else _("Its container is being set up{where}.").format(where=where)
        ),
        State.RUNNING: _("The program runs{where}.").format(where=where),
        State.FINISHING: (
            _("The programs have ended; their output is being saved.")
            if several
            else _("The program has ended; its output is being saved.")
        ),
    }[record.state]
    return f"{words} {waits}".strip()


def _own_sentence(waits: str) -> str:
    """Return why a job waits as a sentence of its own."""
    return _("It is {waits}").format(waits=waits) if waits.startswith("waiting for ") else waits


def _where(record: JobRecord) -> str:
    nodes = list(dict.fromkeys(task.host for task in record.tasks if task.host))
    if not nodes:
        return ""
    return (
        _(" on {nodes}").format(nodes=nodes[0])
        if len(nodes) == 1
        else _(" on {count} nodes").format(count=len(nodes))
    )


def _running(record: JobRecord) -> str:
    tasks = record.tasks
    running = [task for task in tasks if task.state is State.RUNNING]
    if len(running) == len(tasks):
        every = _("Both") if len(tasks) == 2 else _("All {count}").format(count=len(tasks))
        return _("{every} tasks run{where}.").format(every=every, where=_where(record))
    rest = [task for task in tasks if task.state is not State.RUNNING]
    if len(rest) <= _NAMED:
        others = ", ".join(
            _("{task} is {state}").format(task=task.task, state=task.state.value) for task in rest
        )
    else:
        counts = Counter(task.state.value for task in rest)
        others = ", ".join(f"{number} {state}" for state, number in counts.items())
    return _("{count} of {tasks} tasks run{where}; {others}.").format(
        count=len(running), tasks=len(tasks), where=_where(record), others=others
    )


def facts(record: JobRecord) -> list[tuple[str, str]]:
    """Return label and value of facts of jobs with several tasks or restarts."""
    rows = []
    if record.epoch > 1:
        again = times(record.epoch - 1)
        rows.append(
            (
                _("Epoch"),
                _("{epoch}: all tasks were started again {again}").format(
                    epoch=record.epoch, again=again
                ),
            )
        )
    if network := _network([task for task in record.tasks if task.network]):
        rows.append((_("Network"), network))
    return rows


def _network(tasks: list[TaskRecord]) -> str:
    """Return ``eth0: worker:0 10.0.0.7, worker:1 10.0.0.8``; of many tasks only the number."""
    found: dict[str, list[str]] = {}
    for task in tasks:
        interface, _space, address = (task.network or "").partition(" ")
        found.setdefault(interface, []).append(f"{task.task} {address}".strip())
    return "; ".join(
        f"{interface}: {', '.join(named)}"
        if len(named) <= _NAMED
        else _("{interface} on {count} tasks").format(interface=interface, count=len(named))
        for interface, named in list(found.items())[:8]
    )
