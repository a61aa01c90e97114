"""The sentence on the state or the end of a job, the advice, and what a cancel discards.

Returns raw strings, which callers must sanitize (``submarine_jobs.text``).
"""

from __future__ import annotations

from collections import Counter

from submarine_jobs.model import KERNEL_ROLE, NOTEBOOK_ROLE, JobView
from submarine_jobs.text import size
from submarine_runtime.protocol import JobRecord, State
from submarine_runtime.translation import _, ngettext

_HOLDS_VARIABLES = (State.RUNNING, State.RESTARTING, State.FINISHING)
#: Maximum number of tasks that are listed by name.
_MAX_NAMED = 4


def sentence(view: JobView) -> str:
    """Return the sentence on the job's state, or on its end. All front ends show this sentence."""
    return _ended(view.record) if view.record.state.ended else _unfinished(view)


def _ended(record: JobRecord) -> str:
    if record.reason is not None:
        words = f"{record.reason.meaning.sentence} {_saved(record)}".strip()
    else:
        words = _("The job ended: no reason is known.")
    return f"{words} {_ending_detail(record, words)}".strip()


def _unfinished(view: JobView) -> str:
    record = view.record
    waits = view.pending or record.pending
    if waits.startswith("waiting for "):
        waits = _("The job is {waits}").format(waits=waits)
    if record.state is State.PENDING:
        return waits or _("The job is waiting for free resources on the cluster.")
    if record.state is State.STARTING and waits.startswith("localizing"):
        return f"{waits[0].upper()}{waits[1:]}."
    if record.state is State.RESTARTING:
        waits = waits or record.detail
    return f"{_activity(record)} {waits}".strip()


def _activity(record: JobRecord) -> str:
    several = len(record.tasks) > 1
    where = _where(record)
    match record.state:
        case State.SUBMITTING:
            return _("The files are being uploaded and the job is being submitted.")
        case State.STARTING if several:
            return _("{count} containers are being set up{where}.").format(
                count=len(record.tasks), where=where
            )
        case State.STARTING:
            return _("The container is being set up{where}.").format(where=where)
        case State.RESTARTING if several:
            return _("The tasks are being restarted{where}.").format(where=where)
        case State.RESTARTING:
            return _("The program is being restarted{where}.").format(where=where)
        case State.FINISHING if several:
            return _("The programs have ended; their output is being saved.")
        case State.FINISHING:
            return _("The program has ended; its output is being saved.")
    return _running(record) if several else _("The program is running{where}.").format(where=where)


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
    where = _where(record)
    rest = [task for task in tasks if task.state is not State.RUNNING]
    if not rest:
        return _("All {count} tasks are running{where}.").format(count=len(tasks), where=where)
    if len(rest) <= _MAX_NAMED:
        others = ", ".join(
            _("{task} is {state}").format(task=task.task, state=task.state.value) for task in rest
        )
    else:
        counts = Counter(task.state.value for task in rest)
        others = ", ".join(f"{number} {state}" for state, number in counts.items())
    return _("{count} of {tasks} tasks are running{where}; {others}.").format(
        count=len(tasks) - len(rest), tasks=len(tasks), where=where, others=others
    )


def _saved(record: JobRecord) -> str:
    """Return number and size of the saved files: ``Saved: 3 files, 1.2 MB.``; empty if none.

    The list in the record may be cut; the counts include all files.
    """
    if not record.state.ended or not record.outputs:
        return ""
    used = record.resources.get("used")
    used = used if isinstance(used, dict) else {}
    files, total = used.get("saved_files"), used.get("saved_bytes")
    if not isinstance(files, int) or not isinstance(total, int):
        files, total = len(record.outputs), sum(item.size for item in record.outputs)
    return ngettext(
        "Saved: {files:,} file, {size}.", "Saved: {files:,} files, {size}.", files
    ).format(files=files, size=size(total))


def _ending_detail(record: JobRecord, sentence: str) -> str:
    words = record.detail.strip()
    if words in sentence:
        words = ""
    if words and words[-1] not in ".!?:":
        words += "."
    if record.failure is None and record.exit_code and "exit code" not in words.lower():
        words = (
            _("{words} Exit code {exit_code}.")
            .format(words=words, exit_code=record.exit_code)
            .strip()
        )
    return words


def next_step(view: JobView) -> str:
    """Return the advice for the end reason; empty for other states."""
    record = view.record
    if record.state.ended and record.reason is not None:
        if record.state is State.SUCCEEDED:
            return ""
        return record.reason.meaning.next_step
    return ""


def lost_if_cancelled(record: JobRecord) -> str:
    """Return a sentence on variables that a cancel would lose; empty for other jobs."""
    requested = record.resources.get("requested")
    roles = set(requested) if isinstance(requested, dict) else set()
    roles |= {task.role for task in record.tasks}
    if record.state not in _HOLDS_VARIABLES:
        return ""
    if KERNEL_ROLE in roles:
        return _(
            "This job is a kernel: all variables of the notebook or console that uses it are lost."
        )
    if NOTEBOOK_ROLE in roles:
        return _("This job is a notebook server: all variables of its kernels are lost.")
    return ""
