"""Puts the newest complete snapshot of the checkpoints back before a program starts.

Snapshots are written by ``snapshots`` and ``mirror``; one that is half there or damaged is passed
over. Starts nothing and publishes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Iterator

from submarine_runtime.agent.fetching import DamagedError, Fetching
from submarine_runtime.agent.finding import Found, from_job, from_path, snapshots_of
from submarine_runtime.agent.growing import assemble, task_directory
from submarine_runtime.agent.mirror import base_of
from submarine_runtime.agent.putting import put_back
from submarine_runtime.agent.scratch import Scratch
from submarine_runtime.agent.store import NotThereError, Store, StoreError
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.launch import AgentConfig

#: How often a checkpoint path is looked at that changes while it is read.
TRIES = 3


@dataclass
class Restored:
    """What was put back.

    Parameters
    ----------
    source
        Where it came from, for people (``snapshot 7 of worker:0 e1-a1``); empty: nothing was there.
    files, bytes
        How much it is.
    passed_over
        One sentence for each snapshot that was not whole.
    """

    source: str = ""
    files: int = 0
    bytes: int = 0
    passed_over: list[str] = field(default_factory=list)


def restore(
    store: Store, scratch: Scratch, config: AgentConfig, task: str, chief: str | None
) -> Restored:
    """Put checkpoints, model and TensorBoard files of earlier attempts back.

    The task's own newest snapshot of any epoch, else the chief's, else (a first start)
    ``config.restore_from``, else ``config.checkpoint_path``. What lies in the checkpoint directory
    and is not part of it is removed; nothing is touched where there is nothing to put back.

    Raises
    ------
    StoreError
        If the store fails for longer than ``config.save_grace``, or this disk does.
    """
    try:
        return _restore(store, scratch, config, task, chief)
    except OSError as exc:
        raise StoreError(f"cannot write {exc.filename or scratch.root}: {exc.strerror}") from exc


def _restore(
    store: Store, scratch: Scratch, config: AgentConfig, task: str, chief: str | None
) -> Restored:
    fetching = Fetching(store, config.save_grace)
    restored = Restored()
    tasks = [task] if chief in (None, task) else [task, str(chief)]
    for candidate in _newest(store, fetching, config, tasks, restored):
        if _put(fetching, scratch, layout.CHECKPOINTS, candidate, restored):
            restored.source = candidate.name
            break
    for candidate in fetching.patiently(lambda: snapshots_of(store, "", task, layout.MODEL)):
        if _put(fetching, scratch, layout.MODEL, candidate, restored):
            break
    directory = task_directory(task)
    target = scratch.outputs[layout.TENSORBOARD]
    fetching.patiently(lambda: assemble(store, directory, target))
    return restored


def _newest(
    store: Store, fetching: Fetching, config: AgentConfig, tasks: list[str], restored: Restored
) -> Iterator[Found]:
    """What may be put back, the best first: only sources of one kind."""
    over = restored.passed_over
    own = False
    for task in tasks:
        for found in fetching.patiently(
            lambda task=task: snapshots_of(store, "", task, layout.CHECKPOINTS, over)  # type: ignore[misc]
        ):
            own = True
            yield found
    if own:
        return
    if config.restore_from:
        source = config.restore_from.rstrip("/")
        yield from fetching.patiently(lambda: from_job(store, source, tasks, over))
    if config.checkpoint_path:
        path = config.checkpoint_path
        bases = [base_of(path, tasks[0], len(tasks) == 1), base_of(path, tasks[-1], True)]
        for base in dict.fromkeys(bases):
            # Somebody may still write there: what is gone a moment later has a successor.
            for _ in range(TRIES):
                yield from fetching.patiently(lambda base=base: from_path(store, base))  # type: ignore[misc]


def _put(
    fetching: Fetching, scratch: Scratch, part: str, candidate: Found, restored: Restored
) -> bool:
    try:
        put_back(fetching, scratch.outputs[part], candidate.files)
    except (DamagedError, NotThereError) as exc:
        restored.passed_over.append(f"The {candidate.name} was passed over: {exc}.")
        return False
    restored.files += len(candidate.files)
    restored.bytes += sum(file.size for file in candidate.files)
    return True


def forget(store: Store) -> None:
    """Delete all snapshots and pieces: the job has ended and all of its outputs are saved.

    Raises
    ------
    StoreError
        If the store failed.
    """
    for name in (layout.SNAPSHOTS, layout.GROWING):
        store.delete(name, recursive=True)
