"""Choose the restore point of a gang from the snapshots of its tasks.

``choose_restore_point`` applies the rules of ``--restore``: every task restores the chief's
snapshot (``chief``), the files of all tasks of one moment (``union``), or its own files of one
common step or round (``own``). ``progress`` compares two restore points. This module reads no file
and keeps no state; ``survey`` finds the snapshots.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Collection, Iterable, Mapping, Sequence

from submarine_runtime.protocol import to_json
from submarine_runtime.restore_points.contents import (
    EACH,
    LISTED,
    Contents,
    Snapshot,
    Step,
    StepNames,
    TaskRestore,
    counted_files,
    step_text,
)
from submarine_runtime.restore_points.union import find_union, parts_in_tasks
from submarine_runtime.translation import _, ngettext

#: The rule of libraries whose tasks write parts of one checkpoint.
UNION = "union"


@dataclass(frozen=True)
class RestorePoint:
    """The restore point of a gang.

    Parameters
    ----------
    rule
        ``chief``, ``union`` (every task the files of all tasks), ``own`` (a common step), ``round``
        (a common round), ``each`` (each task its own newest snapshot), ``beginning`` (nothing is
        common) or ``none`` (there is no snapshot).
    step, round
        The common step or round; None: there is none.
    source
        The task that provides the files for tasks without files of their own; empty: none.
    parts
        Task -> what it restores; a task that is not named restores nothing. With ``union``: task ->
        what it provides.
    warnings
        Sentences for event, card and ``show``. One that repeats has the same words each time.
    failure
        Why the job cannot start under ``strict``; empty: it can.
    changing
        Name with each number as ``#`` -> which of its numbers change between snapshots: the first
        snapshot after the restart cannot show it.
    shared
        With ``union`` the tasks whose files every task restores, the first one first: of files with
        the same name, the first is taken.
    """

    rule: str = "none"
    step: tuple[int, ...] | None = None
    round: int | None = None
    source: str = ""
    parts: Mapping[str, TaskRestore] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    failure: str = ""
    changing: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    shared: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether every task starts from the beginning."""
        return not self.parts

    def sentence(self) -> str:
        """Return one sentence that describes the restore point."""
        at = _(" at step {step}").format(step=step_text(self.step)) if self.step is not None else ""
        first = next(iter(self.parts.values())).snapshot if self.parts else None
        if first is None:
            return _("The gang starts from the beginning.")
        if self.rule == "chief":
            return _("All tasks restore {label}{at} (rule chief).").format(label=first.label, at=at)
        if self.rule == UNION and self.round is not None:
            return _(
                "Each task restores the files of all tasks of snapshot round {round} (rule union)."
            ).format(round=self.round)
        if self.rule == UNION:
            return _("Each task restores the files of all tasks{at} (rule union).").format(at=at)
        if self.rule == EACH:
            return _("Each task restores its own newest checkpoints.")
        if self.rule == "round":
            return _(
                "Each task restores its own files of snapshot round {round} (rule own)."
            ).format(round=self.round)
        return _("Each task restores its own files{at} (rule own).").format(at=at)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values; the names of the files are not part of it."""
        parts = {task: part.without_files() for task, part in self.parts.items()}
        plain: dict[str, Any] = to_json(replace(self, parts=parts))
        return plain


@dataclass(frozen=True)
class RestoreQuery:
    """What the choice for one epoch depends on besides the snapshots.

    Parameters
    ----------
    tasks
        The tasks that take part, by rank, the chief first.
    optional
        Tasks that need no files of their own.
    independent
        Tasks that restore their own newest files only (evaluators).
    damaged
        Keys of snapshots that could not be restored.
    completed
        Task -> newest snapshot round that it has answered.
    """

    epoch: int
    tasks: tuple[str, ...]
    chief: str
    policy: str = "auto"
    optional: frozenset[str] = frozenset()
    independent: tuple[str, ...] = ()
    damaged: frozenset[tuple[Any, ...]] = frozenset()
    completed: Mapping[str, int] = field(default_factory=dict)
    restore_from: str | None = None
    checkpoint_path: str | None = None


class Progress(Enum):
    """How a restore point compares with the one that an epoch started from."""

    #: Not later.
    NONE = "none"
    #: A newer snapshot without a step.
    SNAPSHOT = "snapshot"
    #: A higher step.
    STEP = "step"


def progress(candidate: RestorePoint, started_from: RestorePoint | None) -> Progress:
    """Whether ``candidate`` is later than the choice that the failed epoch started from.

    Parameters
    ----------
    started_from
        None, or an empty choice: the epoch started from the beginning.
    """
    if candidate.empty:
        return Progress.NONE
    before = started_from if started_from is not None else RestorePoint()
    if candidate.step is not None and (before.empty or before.step is not None):
        later = before.step is None or candidate.step > before.step
        return Progress.STEP if later else Progress.NONE
    now = {part.snapshot.key for part in candidate.parts.values()}
    then = {part.snapshot.key for part in before.parts.values()}
    return Progress.SNAPSHOT if now != then else Progress.NONE


def choose_restore_point(
    snapshots: Mapping[str, Sequence[Snapshot]],
    policy: str = "auto",
    *,
    tasks: Sequence[str],
    chief: str,
    others: Sequence[str] = (),
    optional: Collection[str] = (),
    completed: Mapping[str, int] | None = None,
    changing: Mapping[str, Sequence[int]] | None = None,
) -> RestorePoint:
    """Choose the restore point of a gang.

    Parameters
    ----------
    snapshots
        Task -> its complete snapshots of one training run, the oldest first.
    policy
        ``auto``, ``chief``, ``union``, ``own`` or ``strict``; or ``each`` for tasks that restart
        alone: each restores its own newest snapshot.
    tasks
        The tasks that take part, by rank; evaluators and sidecars do not.
    others
        Tasks with snapshots that are not in the gang now; only the rule ``union`` restores them.
    optional
        Tasks that may be without files of their own without a warning (parameter servers).
    completed
        Task -> newest snapshot round that it has answered; without an entry, the round of its
        newest snapshot counts.
    changing
        ``changing`` of the choice before this one.
    """
    names = StepNames(snapshots, changing)
    by_task = {
        task: [
            Contents(snapshot, names)
            for snapshot in snapshots.get(task, ())
            if counted_files(snapshot.files)
        ]
        for task in (*tasks, *others)
    }
    everything = {task: task_contents for task, task_contents in by_task.items() if task_contents}
    contents = {task: everything[task] for task in tasks if task in everything}
    if policy == UNION or (policy in ("auto", "strict") and parts_in_tasks(everything)):
        return _union(everything, names.changing, policy)
    writers = list(contents)
    if not writers:
        return RestorePoint()
    source = chief if chief in writers else writers[0]
    newest = contents[source][-1]
    if policy == EACH:
        alone = {task: contents.get(task, contents[source])[-1].part(None) for task in tasks}
        return RestorePoint(EACH, None, None, source, alone, changing=names.changing)
    same = all(contents[task][-1].shapes <= newest.shapes for task in writers)
    if policy == "chief" or (same and policy != "own"):
        part = newest.part(None)
        parts = dict.fromkeys(tasks, part)
        return RestorePoint("chief", newest.newest, None, source, parts, changing=names.changing)
    chosen = replace(_common(contents, writers, completed or {}), changing=names.changing)
    if not chosen.empty:
        chosen = _share(chosen, tasks, source, optional)
    if policy == "strict" and chosen.warnings:
        chosen = replace(chosen, failure=" ".join(chosen.warnings))
    return chosen


def _union(
    contents: Mapping[str, Sequence[Contents]],
    changing: Mapping[str, tuple[int, ...]],
    policy: str,
) -> RestorePoint:
    found = find_union(contents)
    if found is None and not contents:
        return RestorePoint()
    if found is None:
        steps = "; ".join(
            _("{task} has {offers}").format(
                task=task, offers=_listed(set().union(*(item.offers() for item in several))) or "-"
            )
            for task, several in list(contents.items())[:LISTED]
        )
        sentence = _(
            "The tasks have no complete checkpoint of all tasks in common, so the gang starts from "
            "the beginning: {steps}."
        ).format(steps=steps)
        choice = RestorePoint("beginning", changing=changing, warnings=(sentence,))
    else:
        warnings: tuple[str, ...] = ()
        if found.conflicts:
            more = _(" and others") if len(found.conflicts) > LISTED else ""
            listed = ", ".join(sorted(found.conflicts)[:LISTED]) + more
            warnings = (
                _(
                    "Several tasks wrote different files of the same name, and those of {source} "
                    "are restored: {listed}."
                ).format(source=next(iter(found.parts)), listed=listed),
            )
        choice = RestorePoint(
            UNION,
            found.step,
            found.round,
            next(iter(found.parts)),
            found.parts,
            warnings,
            changing=changing,
            shared=tuple(found.parts),
        )
    if policy == "strict" and choice.warnings:
        choice = replace(choice, failure=" ".join(choice.warnings))
    return choice


def _common(
    contents: Mapping[str, Sequence[Contents]],
    writers: Sequence[str],
    completed: Mapping[str, int],
) -> RestorePoint:
    """Apply rules 2 and 3: the newest step, or the newest round, that all writing tasks have."""
    if len(writers) == 1:  # There is nothing to compare.
        newest = contents[writers[0]][-1]
        return RestorePoint("own", newest.newest, None, "", {writers[0]: newest.part(None)})
    offers = {task: set().union(*(item.offers() for item in contents[task])) for task in writers}
    if all(offers.values()):
        common = set.intersection(*offers.values())
        if not common:
            listed = "; ".join(
                _("{task} has {offers}").format(task=task, offers=_listed(offers[task]))
                for task in writers
            )
            sentence = _(
                "The tasks' checkpoints have no step in common, so the gang starts from the "
                "beginning: {listed}."
            ).format(listed=listed)
            return RestorePoint("beginning", warnings=(sentence,))
        step = max(common)
        parts = {task: _at_step(contents[task], step) for task in writers}
        return RestorePoint("own", step, None, "", parts)
    why = _("The tasks' checkpoints carry no steps that can be compared")
    rounds = {task: _rounds(contents[task], completed.get(task)) for task in writers}
    last = min(max(task_rounds, default=0) for task_rounds in rounds.values())
    parts = {}
    for task in writers:
        before = [item for item in contents[task] if 0 <= item.snapshot.round <= last]
        if before:
            parts[task] = _in_round(before, last).part(None)
    if last < 1 or len(parts) < len(writers):
        sentence = _("and no snapshot round is complete, so the gang starts from the beginning.")
        return RestorePoint("beginning", warnings=(f"{why}, {sentence}",))
    rule = _(
        "the tasks restore their newest common snapshot round, in which their steps may differ."
    )
    return RestorePoint("round", None, last, "", parts, (f"{why}: {rule}",))


def _listed(steps: Iterable[Step]) -> str:
    ordered = sorted(steps)
    shown = ", ".join(step_text(step) for step in ordered[-LISTED:])
    return f"..., {shown}" if len(ordered) > LISTED else shown


def _at_step(task_contents: Sequence[Contents], step: Step) -> TaskRestore:
    """Return the snapshot that ends with ``step``, else the newest with it and later steps."""
    exact = [contents for contents in task_contents if contents.newest == step]
    if exact:
        return exact[-1].part(step)
    newest = next(item for item in reversed(task_contents) if step in item.offers())
    return newest.part(step)


def _rounds(task_contents: Sequence[Contents], answered: int | None) -> set[int]:
    rounds = {max(item.snapshot.round, item.snapshot.answered) for item in task_contents}
    return rounds | {answered} if answered is not None else rounds


def _in_round(before: Sequence[Contents], last: int) -> Contents:
    """Return the first snapshot of round ``last``, else the newest of an earlier round."""
    return next((item for item in before if item.snapshot.round == last), before[-1])


def _share(
    chosen: RestorePoint, tasks: Sequence[str], source: str, optional: Collection[str]
) -> RestorePoint:
    """Assign the source's files to tasks that have never written any."""
    parts = dict(chosen.parts)
    without = [task for task in tasks if task not in parts]
    parts.update(dict.fromkeys(without, parts[source]))
    warnings = list(chosen.warnings)
    named = [task for task in without if task not in optional]
    if named:
        listed = ", ".join(named[:LISTED]) + (_(" and others") if len(named) > LISTED else "")
        have = "has" if len(named) == 1 else "have"
        lacking = ngettext("no checkpoints of its own", "no checkpoints of their own", len(named))
        warnings.append(
            _("{listed} {have} {lacking} and the files of {source} are restored there.").format(
                listed=listed, have=have, lacking=lacking, source=source
            )
        )
    ordered = {task: parts[task] for task in tasks}
    return replace(chosen, source=source, parts=ordered, warnings=tuple(warnings))
