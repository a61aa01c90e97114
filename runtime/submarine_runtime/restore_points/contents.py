"""What the snapshots of tasks contain: files by name and step.

``StepNames`` separates steps in file names from other numbers, ``Contents`` has the steps at which
one snapshot can be restored. This module reads no file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Collection, Iterable, Mapping, Sequence, Tuple

from submarine_runtime.translation import _

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
#: Files of TensorFlow and DeepSpeed that name the newest checkpoint; the restoration rewrites them
#: for an older step.
STATE_FILES = frozenset({"checkpoint", "latest"})
#: A snapshot with more files of later steps than this offers its newest step only.
MAX_LEFT_OUT = 1000
#: Limits of the shapes of names that are stored with a restore point, and of their length.
MAX_SHAPES, MAX_SHAPE = 100, 300
#: Names and steps that a warning lists for each task.
LISTED = 5


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
    needs
        Name of a metadata file -> the files of its directory that it names.
    world
        Number of processes that wrote checkpoints together; 0: not known.
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
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    world: int = 0
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
        snapshot = replace(self.snapshot, files=(), digests={}, steps={}, needs={})
        return replace(self, snapshot=snapshot)


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


class Contents:
    """The files of one snapshot, by shape and step.

    Parameters
    ----------
    names
        Of all snapshots of all tasks.
    """

    def __init__(self, snapshot: Snapshot, names: StepNames) -> None:
        self.snapshot = snapshot
        by_directory = {name.rpartition("/")[0]: step for name, step in snapshot.steps.items()}
        self.shapes: set[str] = set()
        self._by_step: dict[Step, set[str]] = {}
        #: Name -> its step; empty: none.
        self.files: dict[str, Step] = {}
        self._fixed = True
        for name in counted_files(snapshot.files):
            shape, named = names.split(name)
            directory, _slash, own_name = name.rpartition("/")
            is_state = not named and own_name in STATE_FILES
            step = named if named or is_state else by_directory.get(directory, ())
            if snapshot.until is not None and step > snapshot.until:
                continue
            self.shapes.add(shape)
            self.files[name] = step
            if step:
                self._by_step.setdefault(step, set()).add(shape)
            if not named and not is_state:
                self._fixed = self._fixed and names.unchanged(snapshot.task, name)

    @property
    def newest(self) -> Step | None:
        """The newest step; None: no file has one."""
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
        return self.paths_of({name for name, own in self.files.items() if own > step})

    def paths_of(self, names: Collection[str]) -> list[str]:
        """Return ``names``, with a directory instead of all its files if no others are in it."""
        if not names:
            return []
        kept: set[str] = set()
        for name in self.files:
            if name not in names:
                parts = name.split("/")
                kept.update("/".join(parts[:depth]) for depth in range(1, len(parts)))
        found = set()
        for name in names:
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
        missing = set(counted_files(self.snapshot.files)) - set(self.files)
        return tuple(sorted(missing))
