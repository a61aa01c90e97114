"""Durations, facts and notes of a job, for its text and its HTML.

``status`` has the sentence on its state.

Returns raw strings, which callers must sanitize (``submarine_jobs.text``).
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from submarine_jobs.display.task_rows import times
from submarine_jobs.model import JobView, failed_task
from submarine_jobs.text import duration, memory, one_line, running_duration, size, timestamp
from submarine_runtime.protocol import PHASES, JobRecord, TaskRecord
from submarine_runtime.translation import _, ngettext

PHASE_WORDS = {name: name.replace("_", " ") for name in PHASES}
_MAX_PHASES = 12
#: Longest name of an output in a label.
_MAX_NAME = 64
_MAX_OUTPUTS_NAMED = 5
#: Maximum number of tasks that are listed by name.
_MAX_TASKS_NAMED = 4
MAX_WARNINGS = 25


@dataclass(frozen=True)
class PhaseTime:
    """The duration of a phase.

    Parameters
    ----------
    seconds
        Its duration; until now if ``open``.
    alone
        The part that does not overlap earlier phases.
    """

    name: str
    seconds: float
    open: bool = False
    alone: float = 0.0


def now_of(view: JobView, now: float | None) -> float:
    """Return the time of the description: the job's end, else ``now``, else the current time."""
    if view.record.finished is not None:
        return view.record.finished
    return time.time() if now is None else now


def elapsed(view: JobView, now: float | None = None) -> float | None:
    """Return the job's duration: seconds from the start of its submission to its end, or to now.

    All front ends show this duration; the phases divide it. None if the start, or the end of an
    ended job, is unknown.
    """
    created, finished = view.record.created, view.record.finished
    if created is None or (finished is None and view.record.state.ended):
        return None
    return max(now_of(view, now) - created, 0.0)


def format_elapsed(view: JobView, now: float | None = None) -> str:
    """Return the formatted duration, in whole seconds while the job runs; empty if unknown."""
    seconds = elapsed(view, now)
    if seconds is None:
        return ""
    return duration(seconds) if view.record.state.ended else running_duration(seconds)


def phases(view: JobView, now: float | None = None) -> list[PhaseTime]:
    """Return the phases with their durations; an open phase lasts until now."""
    until = now_of(view, now)
    ends = [
        (phase, until if phase.end is None else phase.end)
        for phase in view.record.phases[:_MAX_PHASES]
    ]
    shown, reached = [], -math.inf
    for phase, end in sorted(ends, key=lambda pair: (pair[0].start, pair[1])):
        shown.append(
            PhaseTime(
                PHASE_WORDS.get(phase.name, phase.name),
                max(end - phase.start, 0.0),
                phase.end is None and not view.record.state.ended,
                max(end - max(phase.start, reached), 0.0),
            )
        )
        reached = max(reached, end)
    return shown


def progress(record: JobRecord) -> float | None:
    """Return the progress between 0 and 1; None if the program reports none."""
    value = record.progress
    if value is None or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return min(max(float(value), 0.0), 1.0)


def freshness(view: JobView) -> str:
    """Return a sentence on the age of the view; empty if it is live or final."""
    behind = view.record.behind
    if behind and behind > 0 and not view.record.state.ended:
        return _("This view may be {duration} behind the program.").format(
            duration=duration(behind)
        )
    return ""


def notes(view: JobView) -> list[tuple[str, str]]:
    """Return label and sentence of warnings, notes, missing information and hints."""
    record = view.record
    found = [(_("Warning"), words) for words in record.warnings[:MAX_WARNINGS]]
    found += [(_("Note"), words) for words in (*record.notes[:5], *record.missing[:5])]
    if behind := freshness(view):
        found.append((_("Note"), behind))
    return found + [(_("Hint"), words) for words in view.record.hints[:5]]


def failing(view: JobView) -> str:
    """Return task and rank of the displayed traceback; empty if the job has only one process."""
    record = view.record
    rank = record.failure.rank if record.failure is not None else None
    task = failed_task(record)
    if task is None or (len(record.tasks) < 2 and rank is None):
        return ""
    if rank is None:
        return task.task
    return _("{task}, rank {rank}").format(task=task.task, rank=rank)


def resources(record: JobRecord) -> str:
    """What was asked for and used: ``3 GiB, 1 vcore, 1 GPU; peak 812 MiB``."""
    requested = record.resources.get("requested")
    requested = requested if isinstance(requested, dict) else {}
    spark = record.resources.get("type") == "spark"
    parts = []
    for role, amounts in list(requested.items())[:8]:
        if isinstance(amounts, dict):
            number = sum(task.role == role for task in record.tasks)
            if spark and role == "executor":
                number = _whole(amounts.get("instances"))
            elif spark:
                role = _("driver")
            words = _format_size(amounts)
            words = (
                _("{number} of {words}").format(number=number, words=words) if number > 1 else words
            )
            parts.append(words if len(requested) == 1 else f"{role}: {words}")
    used = record.resources.get("used")
    peak = used.get("memory_peak") if isinstance(used, dict) else None
    if peak is None:
        peak = max((task.memory_peak or 0.0 for task in record.tasks), default=0.0) or None
    if isinstance(peak, (int, float)) and peak > 0:
        several = len(record.tasks) > 1
        words = _("peak {memory} in all") if several else _("peak {memory}")
        parts.append(words.format(memory=memory(peak)))
    return "; ".join(parts)


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _format_size(amounts: dict[str, object]) -> str:
    words = []
    mebibytes, vcores, gpus = (amounts.get(name) for name in ("memory", "vcores", "gpus"))
    if isinstance(mebibytes, (int, float)) and mebibytes > 0:
        words.append(memory(mebibytes))
    if isinstance(vcores, int) and vcores > 0:
        words.append(ngettext("{vcores} vcore", "{vcores} vcores", vcores).format(vcores=vcores))
    if isinstance(gpus, int) and gpus > 0:
        words.append(ngettext("{gpus} GPU", "{gpus} GPUs", gpus).format(gpus=gpus))
    return ", ".join(words)


def outputs(record: JobRecord, directory: str) -> str:
    """Return the output files below ``directory``: ``3 files (1.2 MB)``; empty if none."""
    found = [item for item in record.outputs if item.path.startswith(f"{directory}/")]
    if not found:
        return ""
    total = size(sum(item.size for item in found))
    if len(found) <= _MAX_OUTPUTS_NAMED:
        names = ", ".join(item.path[len(directory) + 1 :] for item in found)
        return f"{names} ({total})"
    return _("{count} files ({total})").format(count=len(found), total=total)


def facts(view: JobView, now: float | None = None) -> list[tuple[str, str]]:
    """Return label and value of the rows of a job, most important first."""
    record = view.record
    rows = []
    waited = next((p for p in phases(view, now) if p.name == "queue"), None)
    if record.created is not None:
        queue = (
            _(", {duration} in the queue").format(duration=duration(waited.seconds))
            if waited
            else ""
        )
        # A card may outlive the kernel that updates it, so it shows its time.
        updated = (
            ""
            if record.state.ended
            else _("; as of {timestamp}").format(timestamp=timestamp(now_of(view, now)).split()[1])
        )
        rows.append((_("Submitted"), f"{timestamp(record.created)}{queue}{updated}"))
    if record.workflow:
        rows.append((_("Workflow"), workflow(record)))
    location = [
        word
        for word in (record.backend, record.queue and _("queue {queue}").format(queue=record.queue))
        if word
    ]
    if record.application_id:
        location.append(record.application_id)
    if location:
        rows.append((_("Where"), ", ".join(str(word) for word in location)))
    if record.resources.get("type") == "spark":
        rows.append((_("Type"), "Spark"))
    if size_words := resources(record):
        rows.append((_("Resources"), size_words))
    rows += _distributed_facts(record)
    for saved in record.saved_outputs:
        words = ngettext("{count} file ({total})", "{count} files ({total})", saved.files)
        total = words.format(count=saved.files, total=size(saved.bytes))
        label = _("Output {name}").format(name=one_line(saved.name, _MAX_NAME))
        rows.append((label, f"{saved.uri}: {total}"))
    if own := outputs(record, "outputs"):
        rows.append((_("Outputs"), f"{record.job_dir}/outputs: {own}"))
    if model := outputs(record, "model"):
        rows.append(
            (_("Model"), _("{job_dir}/model: {model}").format(job_dir=record.job_dir, model=model))
        )
    elif record.job_dir:
        rows.append((_("Job directory"), record.job_dir))
    return rows


def _distributed_facts(record: JobRecord) -> list[tuple[str, str]]:
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
        if len(named) <= _MAX_TASKS_NAMED
        else _("{interface} on {count} tasks").format(interface=interface, count=len(named))
        for interface, named in list(found.items())[:8]
    )


def workflow(record: JobRecord) -> str:
    """Return ``nightly · run nightly-20261122-023000-1f0a · train``; empty without a workflow."""
    run = _("run {run}").format(run=record.workflow_run) if record.workflow_run else ""
    return " · ".join(word for word in (record.workflow, run, record.workflow_node) if word)


def submitted(record: JobRecord) -> str:
    """Return the formatted time of submission."""
    return timestamp(record.created)
