"""Compare the size of inputs with the free disk of the nodes, and recommend a mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from submarine_jobs.text import size as size_words
from submarine_runtime.translation import _

#: From this number of files on, of at most this mean size, a download takes longer than reading.
MANY_FILES, SMALL_FILE = 5000, 1 << 20


class FreeDisk(NamedTuple):
    """The smallest free space of a node's disks: its name, bytes."""

    node: str
    free: int


class TaskInput(NamedTuple):
    """What one task gets of an input: number of files and bytes; None: not known.

    ``mode`` is ``download``, ``shard``, ``list``, ``mount`` or ``stream``, where the number of
    files is that of all tasks.
    """

    task: str
    name: str
    files: int | None
    size: int | None
    mode: str = "download"


def mode_advice(inputs: Sequence[TaskInput], disk: FreeDisk | None) -> list[str]:
    """Return one sentence on each input that is fetched, with the recommended mode.

    Parameters
    ----------
    disk
        The node with the least free disk; None: the cluster does not report it.
    """
    found = []
    needs: dict[str, int] = {}
    for item in inputs:
        if item.mode in ("download", "shard"):
            needs[item.task] = needs.get(item.task, 0) + (item.size or 0)
    for name in dict.fromkeys(item.name for item in inputs):
        parts = [item for item in inputs if item.name == name]
        if parts[0].mode not in ("download", "shard"):
            continue
        if any(part.size is None for part in parts):
            found.append(
                _(
                    "{name}: its size is not known before the job lists it; with little free disk "
                    "use :mount."
                ).format(name=name)
            )
            continue
        found.append(_sentence(name, parts, max(needs.values()), disk))
    return found


def _sentence(name: str, parts: Sequence[TaskInput], needed: int, disk: FreeDisk | None) -> str:
    largest = max(parts, key=lambda part: part.size or 0)
    size, files = largest.size or 0, largest.files or 0
    values = {
        "name": name,
        "mode": largest.mode,
        "size": size_words(size),
        "files": files,
        "needed": size_words(needed),
        "free": size_words(disk.free) if disk else "",
        "node": disk.node if disk else "",
    }
    if disk is not None and needed > disk.free:
        share = size // max(1, len(parts))
        if largest.mode == "download" and len(parts) > 1 and needed - size + share < disk.free:
            return _(
                "{name}: a task fetches {needed} of inputs and {node} has {free} free; use :shard, "
                "or :mount if each task reads all of it."
            ).format(**values)
        return _(
            "{name}: a task fetches {needed} of inputs and {node} has {free} free; use :list or "
            ":mount, which need no disk."
        ).format(**values)
    if files >= MANY_FILES and size < files * SMALL_FILE:
        return _(
            "{name}: {files} small files take long to fetch; use :list or :mount, or pack them."
        ).format(**values)
    if disk is None:
        return _(
            "{name}: {size} for a task, and the cluster does not report its free disk; :{mode} "
            "suits if that fits."
        ).format(**values)
    return _(
        "{name}: {size} for a task, and {node}, with the least free disk, has {free}: :{mode} "
        "suits."
    ).format(**values)
