"""The files that a workflow takes along: its notebooks, and what else is named.

The same for Azkaban's zip and Airflow's folder. Reads them; writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from submarine_jobs.errors import UsageError
from submarine_workflows.workflow import Kind, Workflow

#: Of all files together; a project is code, data lie on HDFS.
MAX_BYTES = 64 << 20


def carried_files(workflow: Workflow, folder: Path, also: Iterable[str] = ()) -> dict[str, bytes]:
    """Content by path relative to ``folder``, sorted by path.

    Parameters
    ----------
    folder
        Where the workflow's file lies.
    also
        Patterns of further files, ``lib/*.py``, relative to ``folder``.

    Raises
    ------
    UsageError
        If a notebook is missing or lies outside of ``folder``, a pattern matches nothing, or all
        are larger than ``MAX_BYTES``.
    """
    names = {name: f"`{node}`" for node, name in _notebooks(workflow) if "${" not in name}
    for pattern in also:
        names.update(dict.fromkeys(_matching(folder, pattern), f"`{pattern}`"))
    found: dict[str, bytes] = {}
    left = MAX_BYTES
    for name in sorted(names):
        data = _read(folder, name, names[name], left)
        found[PurePosixPath(name).as_posix()] = data
        left -= len(data)
    return found


def _notebooks(workflow: Workflow) -> Iterator[tuple[str, str]]:
    for _, node in workflow.walk():
        if node.kind is Kind.NOTEBOOK and "://" not in node.notebook:
            yield node.name, node.notebook
        if node.kind is Kind.CELLS and workflow.notebook:
            yield node.name, workflow.notebook


def _matching(folder: Path, pattern: str) -> list[str]:
    if PurePosixPath(pattern).is_absolute() or ".." in PurePosixPath(pattern).parts:
        raise UsageError(f"{pattern} leaves the workflow's folder.", "Name files below it.")
    found = [path.relative_to(folder).as_posix() for path in folder.glob(pattern)]
    files = [name for name in found if (folder / name).is_file()]
    if not files:
        raise UsageError(f"Nothing in {folder} matches {pattern}.", "Check the name.")
    return files


def _read(folder: Path, name: str, whose: str, left: int) -> bytes:
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()) or PurePosixPath(name).is_absolute():
        raise UsageError(
            f"{name} of {whose} lies outside of {folder}.",
            "What a workflow runs lies in its own folder, or below it.",
        )
    try:
        with path.open("rb") as file:
            data = file.read(left + 1)
    except OSError as exc:
        raise UsageError(f"{name} of {whose} cannot be read: {exc.strerror}.") from None
    if len(data) > left:
        raise UsageError(
            f"The files of the workflow are larger than {MAX_BYTES >> 20} MiB together.",
            "Keep data on HDFS and name it in a parameter.",
        )
    return data
