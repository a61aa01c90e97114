"""The rule ``union``: several tasks write parts of one checkpoint, and every task needs all parts.

The library is recognized by its marker, the file that one task writes when the checkpoint is
complete. A checkpoint is restored only if the marker and every part exist: those that the marker
names, or one for each process. Only names and digests of the manifests are used.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Iterable, Iterator, Mapping, NamedTuple, Sequence

from submarine_runtime.restore_points.contents import (
    FIRST_ROUND,
    MAX_LEFT_OUT,
    Contents,
    Step,
    TaskRestore,
)

#: Round of the final checkpoints of a job that succeeded: its programs ended by themselves.
LAST_ROUND = 1 << 30
#: DeepSpeed's file above the checkpoints, with the name of the newest one.
_LATEST = "latest"
#: Files that mark a complete checkpoint: of torch.distributed.checkpoint (also below Lightning's
#: and transformers' FSDP), transformers, Accelerate and DeepSpeed.
_MARKERS = frozenset({".metadata", "trainer_state.json", "random_states_0.pkl", _LATEST})
#: Files of which each process writes one: of transformers, Accelerate and DeepSpeed.
_OF_PROCESS = re.compile(
    r"(?:^|/)(rng_state_\d+\.pth|random_states_\d+\.pkl"
    r"|\w*zero_pp_rank_\d+_mp_rank_\d+_optim_states\.pt)"
)


class CommonPoint(NamedTuple):
    """A step or a round, and the snapshot of each task that has it."""

    step: Step | None
    round: int | None
    chosen: dict[str, Contents]


class Union(NamedTuple):
    """The files of all tasks of one moment.

    ``conflicts`` are the names of files with different contents in several tasks.
    """

    step: Step | None
    round: int | None
    parts: dict[str, TaskRestore]
    conflicts: set[str]


def parts_in_tasks(contents: Mapping[str, Sequence[Contents]]) -> bool:
    """Whether the newest snapshots show that several tasks write parts of one checkpoint."""
    newest = {task: several[-1] for task, several in contents.items()}
    for task, one in newest.items():
        for marker in _markers(one):
            if not _named_parts(one, marker) <= one.files.keys():
                return True
            above = marker.rpartition("/")[0]
            above = above and above + "/"
            others = [other for another, other in newest.items() if another != task]
            without = [other for other in others if marker not in other.files]
            if any(name.startswith(above) for other in without for name in other.files):
                return True
        if any(count < world for count, world in _counts([one], None).values()):
            return True
    return False


def find_union(contents: Mapping[str, Sequence[Contents]]) -> Union | None:
    """Return the newest moment at which the files of all tasks are complete; None: there is none.

    Parameters
    ----------
    contents
        Task -> its snapshots, the oldest first; the chief first.
    """
    newest = [several[-1] for several in contents.values()]
    marked = [(one, marker) for one in newest for marker in _markers(one)]
    # A directory that is written again and again has no step. Then the tasks' files belong together
    # if none of them changed while a round of snapshots was requested.
    without_step = any(not one.files[marker] for one, marker in marked if not _is_latest(marker))
    for point in _rounds(contents) if without_step else _steps(contents):
        if marked:
            whole = _is_complete(point.chosen, point.step or (), len(contents))
        else:
            whole = len(point.chosen) == len(contents)
        if whole:
            return _union_of(point, len(contents))
    return None


def _union_of(point: CommonPoint, tasks: int) -> Union:
    step, chosen = point.step, point.chosen
    earlier = {own for one in chosen.values() for own in one.files.values() if own}
    earlier = {own for own in earlier if step is None or own < step}
    broken = {own for own in earlier if not _is_complete(chosen, own, tasks)}
    parts, conflicts = {}, set()
    digests: dict[str, int | None] = {}
    for task, one in chosen.items():
        part = one.part(step)
        # A library would take the rest of a deleted checkpoint for one that it can load.
        remains = {name for name, own in one.files.items() if own in broken and _is_part(name)}
        paths = one.paths_of(remains)
        if len(part.left_out) + len(paths) <= MAX_LEFT_OUT:
            part = replace(part, left_out=(*part.left_out, *paths))
        parts[task] = part
        for name, own in one.files.items():
            if step is not None and own > step:
                continue
            digest = one.snapshot.digests.get(name)
            if digests.setdefault(name, digest) not in (digest, None) and digest is not None:
                conflicts.add(name)
    return Union(step, point.round, parts, conflicts)


def _is_complete(chosen: Mapping[str, Contents], step: Step, tasks: int) -> bool:
    """Whether a marker and all parts of a step exist; an empty step: of files without one."""
    names = {name for one in chosen.values() for name in one.files}
    marked = counted = False
    for one in chosen.values():
        for marker in _markers(one):
            latest = one.snapshot.steps[marker] if _is_latest(marker) else ()
            own = latest or one.files[marker]
            if own == step:
                parts = _named_parts(one, marker)
                counted = counted or bool(parts)
                if not parts <= names:
                    return False
            marked = marked or own == step or latest > step > ()
    for count, world in _counts(chosen.values(), step).values():
        counted = True
        if count < world:
            return False
    return marked and (counted or len(chosen) == tasks)


def _is_latest(name: str) -> bool:
    return name.rpartition("/")[2] == _LATEST


def _is_part(name: str) -> bool:
    return name.endswith(".distcp") or _OF_PROCESS.search(name) is not None


def _markers(contents: Contents) -> Iterator[str]:
    for name in contents.files:
        # Other programs also call a file ``latest``: DeepSpeed's names a step.
        other = _is_latest(name) and name not in contents.snapshot.steps
        if name.rpartition("/")[2] in _MARKERS and not other:
            yield name


def _named_parts(contents: Contents, marker: str) -> set[str]:
    """Return the files that a marker names."""
    above = marker.rpartition("/")[0]
    above = above and above + "/"
    return {above + name for name in contents.snapshot.needs.get(marker, ())}


def _counts(
    several: Iterable[Contents], step: Step | None
) -> dict[tuple[str, str], tuple[int, int]]:
    """Return (directory, shape of the name) -> number of files, and of processes.

    A step of None means all steps.
    """
    found: dict[tuple[str, str], set[str]] = {}
    worlds: dict[tuple[str, str], int] = {}
    for one in several:
        for name, own in one.files.items():
            match = _OF_PROCESS.search(name) if step is None or own == step else None
            if match is not None:
                key = (name[: match.start(1)], re.sub(r"\d+", "#", match.group(1)))
                found.setdefault(key, set()).add(match.group(1))
                worlds[key] = max(worlds.get(key, 0), one.snapshot.world)
    return {key: (len(names), worlds[key]) for key, names in found.items()}


def _steps(contents: Mapping[str, Sequence[Contents]]) -> Iterator[CommonPoint]:
    """Yield each step with the snapshots that have it, the newest step first."""
    offers = {task: [item.offers() for item in several] for task, several in contents.items()}
    found = {step for several in offers.values() for steps in several for step in steps}
    for step in sorted(found, reverse=True):
        chosen = {}
        for task, several in contents.items():
            having = [item for item, steps in zip(several, offers[task]) if step in steps]
            exact = [item for item in having if item.newest == step]
            if having:
                chosen[task] = (exact or having)[-1]
        yield CommonPoint(step, None, chosen)


def _rounds(contents: Mapping[str, Sequence[Contents]]) -> Iterator[CommonPoint]:
    """Yield each round at whose request no task changed its files, the newest first."""
    by_round = [
        (task, {number: item for item in several for number in _answered(item)})
        for task, several in contents.items()
    ]
    for number in sorted(set.intersection(*(set(own) for _task, own in by_round)), reverse=True):
        yield CommonPoint(None, number, {task: own[number] for task, own in by_round})


def _answered(contents: Contents) -> list[int]:
    """Return the rounds before whose request the snapshot was taken, and which it answers."""
    taken, answered = contents.snapshot.round, contents.snapshot.answered
    restored = [taken] if taken in (FIRST_ROUND, LAST_ROUND) else []
    return [*restored, *range(max(FIRST_ROUND, taken) + 1, answered + 1)]
