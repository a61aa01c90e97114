"""Choose the restore point of a gang from the snapshots of its tasks.

``choose_restore_point`` applies the rules of ``--restore``: every task restores the chief's
snapshot (``chief``), or every task restores its own files of one common step or round (``own``).
``progress`` compares two restore points. This module reads no file and keeps no state;
``job_directory.snapshot_survey`` finds the snapshots.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Collection, Iterable, Mapping, Sequence, Tuple

from submarine_runtime.protocol import to_json
from submarine_runtime.translation import _, ngettext

#: Training progress at which a file was written: one number or several, the most significant first.
Step = Tuple[int, ...]

#: The policy of tasks that restart alone; the others are ``coordinator_config.RESTORE_POLICIES``.
EACH = "each"
#: A snapshot that agents take while the program runs, the final checkpoints of an ended job, or a
#: checkpoint path.
SNAPSHOT, FINAL, PATH = "snapshot", "final", "path"

#: Round of the restore point from which an epoch started: complete before any that is requested.
FIRST_ROUND = 1

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
#: A word in front of a number that makes it a step: ``ckpt-12 step=12 epoch_12 checkpoint-12/``.
_STEP_WORD = re.compile(
    r"(?:^|[^a-z])(?:ckpt|checkpoint|(?:global_?)?step|epoch|iter|iteration)[-_=]?$", re.IGNORECASE
)
#: Directories in which the libraries write unfinished or unwanted checkpoints.
_TEMPORARY = re.compile(r"_temp$|^workertemp_\d+$")
#: TensorFlow's file that names the newest checkpoint; ``restore`` rewrites it for an older step.
STATE_FILE = "checkpoint"
#: A snapshot with more files of later steps than this offers its newest step only.
MAX_LEFT_OUT = 1000
#: Limits of the shapes of names that are stored with a restore point, and of their length.
MAX_SHAPES, MAX_SHAPE = 100, 300
#: Names and steps that a warning lists for each task.
_LISTED = 5


@dataclass(frozen=True)
class Snapshot:
    """A complete snapshot of one task's checkpoint directory.

    Parameters
    ----------
    origin
        ``snapshot``, ``final`` or ``path``.
    job
        Job directory that contains it, or the checkpoint path; empty: this job's directory.
    epoch, attempt, number
        Which snapshot of the task it is; 0 for ``final`` and ``path``.
    round, answered
        Numbers of the newest snapshot round that was requested before it was taken, and of the
        newest round that it answers; 0: none, negative: it cannot be compared with others.
    files
        Names below the checkpoint directory.
    digests
        Name -> CRC-32, where known.
    steps
        Name of a metadata file -> the step that a library wrote into it.
    until
        Files of later steps are not part of it; None: all files are.
    """

    task: str
    origin: str = SNAPSHOT
    job: str = ""
    epoch: int = 0
    attempt: int = 0
    number: int = 0
    round: int = 0
    answered: int = 0
    files: tuple[str, ...] = ()
    digests: Mapping[str, int] = field(default_factory=dict)
    steps: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    until: tuple[int, ...] | None = None

    @property
    def key(self) -> tuple[str, str, str, int, int, int]:
        """Identity of the snapshot."""
        return (self.origin, self.job, self.task, self.epoch, self.attempt, self.number)

    @property
    def label(self) -> str:
        """Its name in messages, ``snapshot 7 of worker:0 e1-a1``."""
        if self.origin == FINAL:
            return _("the final checkpoints of {task} of {job}").format(
                task=self.task, job=self.job.rpartition("/")[2]
            )
        if self.origin == PATH:
            return _("the files of {task} at {job}").format(task=self.task, job=self.job)
        return _("snapshot {number} of {task} e{epoch}-a{attempt}").format(
            number=self.number, task=self.task, epoch=self.epoch, attempt=self.attempt
        )


@dataclass(frozen=True)
class TaskRestore:
    """What one task restores: a snapshot, without the files and directories in ``left_out``."""

    snapshot: Snapshot
    left_out: tuple[str, ...] = ()

    def without_files(self) -> TaskRestore:
        """Return it without the names of the files."""
        return replace(self, snapshot=replace(self.snapshot, files=(), digests={}, steps={}))


@dataclass(frozen=True)
class RestorePoint:
    """The restore point of a gang.

    Parameters
    ----------
    rule
        ``chief``, ``own`` (a common step), ``round`` (a common round), ``each`` (each task its own
        newest snapshot), ``beginning`` (nothing is common) or ``none`` (there is no snapshot).
    step, round
        The common step or round; None: there is none.
    source
        The task that provides the files for tasks without files of their own; empty: none.
    parts
        Task -> what it restores; a task that is not named restores nothing.
    warnings
        Sentences for event, card and ``show``. One that repeats has the same words each time.
    failure
        Why the job cannot start under ``strict``; empty: it can.
    changing
        Name with each number as ``#`` -> which of its numbers change between snapshots: the first
        snapshot after the restart cannot show it.
    """

    rule: str = "none"
    step: tuple[int, ...] | None = None
    round: int | None = None
    source: str = ""
    parts: Mapping[str, TaskRestore] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    failure: str = ""
    changing: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

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


def step_text(step: Step) -> str:
    """Return ``12``, or ``3/500`` for epoch 3 and step 500."""
    return "/".join(str(number) for number in step)


def counted_files(files: Iterable[str]) -> tuple[str, ...]:
    """Return ``files`` without those in temporary directories of the libraries."""
    return tuple(
        name for name in files if not any(_TEMPORARY.search(part) for part in name.split("/"))
    )


class StepNames:
    """Separate the steps in file names from numbers that are part of the name.

    Parameters
    ----------
    snapshots
        Task -> its snapshots. A number that differs between two snapshots of one task is a step.
    changing
        ``changing`` of an earlier restore point.
    """

    def __init__(
        self,
        snapshots: Mapping[str, Sequence[Snapshot]],
        changing: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        self._changing = {shape: set(found) for shape, found in (changing or {}).items()}
        self._static: dict[tuple[str, str], set[int]] = {}
        self._split_names: dict[str, tuple[str, Step]] = {}
        for task, task_snapshots in snapshots.items():
            values: dict[str, list[list[set[str]]]] = {}
            for snapshot in task_snapshots:
                columns_of_shape: dict[str, list[set[str]]] = {}
                for name in counted_files(snapshot.files):
                    numbers = _NUMBER.findall(name)
                    shape = _NUMBER.sub("#", name)
                    columns = columns_of_shape.setdefault(shape, [set() for _ in numbers])
                    for column, number in zip(columns, numbers):
                        column.add(number)
                    digest = snapshot.digests.get(name)
                    if digest is not None:
                        self._static.setdefault((task, name), set()).add(digest)
                for shape, columns in columns_of_shape.items():
                    values.setdefault(shape, []).append(columns)
            for shape, occurrences in values.items():
                for position in range(len(occurrences[0])):
                    if any(
                        columns[position] != occurrences[0][position] for columns in occurrences
                    ):
                        self._changing.setdefault(shape, set()).add(position)
        self._occurrences = {
            (task, name): sum(name in snapshot.files for snapshot in task_snapshots)
            for task, task_snapshots in snapshots.items()
            for name in {name for snapshot in task_snapshots for name in snapshot.digests}
        }

    @property
    def changing(self) -> dict[str, tuple[int, ...]]:
        """Which numbers of names change, for later choices."""
        shapes = sorted(shape for shape in self._changing if len(shape) <= MAX_SHAPE)
        return {shape: tuple(sorted(self._changing[shape])) for shape in shapes[:MAX_SHAPES]}

    def split(self, name: str) -> tuple[str, Step]:
        """Return the name without its steps, and the steps in it (empty: none)."""
        found = self._split_names.get(name)
        if found is None:
            changing = self._changing.get(_NUMBER.sub("#", name), set())
            steps: list[int] = []
            shape, end = "", 0
            for position, match in enumerate(_NUMBER.finditer(name)):
                is_step = _STEP_WORD.search(name[: match.start()]) is not None
                if is_step or position in changing:
                    shape, end = shape + name[end : match.start()] + "#", match.end()
                    if "." not in match.group():
                        steps.append(int(match.group()))
                    elif is_step:  # ``ckpt-12.5``: the step, followed by another number
                        steps.append(int(match.group().partition(".")[0]))
            found = self._split_names[name] = (shape + name[end:], tuple(steps))
        return found

    def unchanged(self, task: str, name: str) -> bool:
        """Whether a file had the same bytes in several snapshots of a task."""
        return self._occurrences.get((task, name), 0) > 1 and len(self._static[task, name]) == 1


class _Contents:
    """The files of one snapshot, by shape and step."""

    def __init__(self, snapshot: Snapshot, names: StepNames) -> None:
        self.snapshot = snapshot
        by_directory = {name.rpartition("/")[0]: step for name, step in snapshot.steps.items()}
        self.shapes: set[str] = set()
        self._by_step: dict[Step, set[str]] = {}
        self._files: dict[str, Step] = {}
        self._fixed = True
        for name in counted_files(snapshot.files):
            shape, named = names.split(name)
            step = named or by_directory.get(name.rpartition("/")[0], ())
            if snapshot.until is not None and step > snapshot.until:
                continue
            self.shapes.add(shape)
            self._files[name] = step
            if step:
                self._by_step.setdefault(step, set()).add(shape)
            if not named and name.rpartition("/")[2] != STATE_FILE:
                self._fixed = self._fixed and names.unchanged(snapshot.task, name)

    @property
    def newest(self) -> Step | None:
        return max(self._by_step, default=None)

    def offers(self) -> set[Step]:
        """Return the steps at which this snapshot can be restored.

        An older step is complete if it has all kinds of files of the newest one, and if no file
        without a step in its name has changed meanwhile.
        """
        newest = self.newest
        if newest is None:
            return set()
        if not self._fixed:
            return {newest}
        whole = self._by_step[newest]
        return {
            step
            for step, shapes in self._by_step.items()
            if shapes >= whole and len(self._left_out(step)) <= MAX_LEFT_OUT
        }

    def _left_out(self, step: Step) -> list[str]:
        later = {name for name, own in self._files.items() if own > step}
        if not later:
            return []
        kept: set[str] = set()
        for name in self._files:
            if name not in later:
                parts = name.split("/")
                kept.update("/".join(parts[:depth]) for depth in range(1, len(parts)))
        found = set()
        for name in later:
            parts = name.split("/")
            for depth in range(1, len(parts) + 1):
                prefix = "/".join(parts[:depth])
                if prefix not in kept:
                    found.add(prefix)
                    break
        return sorted(found)

    def part(self, step: Step | None) -> TaskRestore:
        """Return the part of the snapshot at ``step``; None: all of it."""
        snapshot = self.snapshot
        if step is None or step == self.newest:
            # A snapshot that is restored up to an older step already keeps that limit.
            left_out = self._hidden() if snapshot.until is not None else ()
            return TaskRestore(snapshot, left_out)
        hidden = [*self._hidden(), *self._left_out(step)]
        return TaskRestore(replace(snapshot, until=step), tuple(hidden))

    def _hidden(self) -> tuple[str, ...]:
        missing = set(counted_files(self.snapshot.files)) - set(self._files)
        return tuple(sorted(missing))


def choose_restore_point(
    snapshots: Mapping[str, Sequence[Snapshot]],
    policy: str = "auto",
    *,
    tasks: Sequence[str],
    chief: str,
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
        ``auto``, ``chief``, ``own`` or ``strict``; or ``each`` for tasks that restart alone: each
        restores its own newest snapshot.
    tasks
        The tasks that take part, by rank; evaluators and sidecars do not.
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
            _Contents(snapshot, names)
            for snapshot in snapshots.get(task, ())
            if counted_files(snapshot.files)
        ]
        for task in tasks
    }
    contents = {task: task_contents for task, task_contents in by_task.items() if task_contents}
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


def _common(
    contents: Mapping[str, Sequence[_Contents]],
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
            )
            return RestorePoint(
                "beginning",
                warnings=(
                    _("{sentence}beginning: {listed}.").format(sentence=sentence, listed=listed),
                ),
            )
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
    shown = ", ".join(step_text(step) for step in ordered[-_LISTED:])
    return f"..., {shown}" if len(ordered) > _LISTED else shown


def _at_step(task_contents: Sequence[_Contents], step: Step) -> TaskRestore:
    """Return the snapshot that ends with ``step``, else the newest with it and later steps."""
    exact = [contents for contents in task_contents if contents.newest == step]
    if exact:
        return exact[-1].part(step)
    newest = next(item for item in reversed(task_contents) if step in item.offers())
    return newest.part(step)


def _rounds(task_contents: Sequence[_Contents], answered: int | None) -> set[int]:
    rounds = {max(item.snapshot.round, item.snapshot.answered) for item in task_contents}
    return rounds | {answered} if answered is not None else rounds


def _in_round(before: Sequence[_Contents], last: int) -> _Contents:
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
        listed = ", ".join(named[:_LISTED]) + (_(" and others") if len(named) > _LISTED else "")
        have = "has" if len(named) == 1 else "have"
        lacking = ngettext("no checkpoints of its own", "no checkpoints of their own", len(named))
        warnings.append(
            _("{listed} {have} {lacking} and the files of {source} are restored there.").format(
                listed=listed, have=have, lacking=lacking, source=source
            )
        )
    ordered = {task: parts[task] for task in tasks}
    return replace(chosen, source=source, parts=ordered, warnings=tuple(warnings))
