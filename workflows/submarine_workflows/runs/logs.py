"""Read logs of nodes: all, the last lines, or as they grow. Their content is untrusted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend, Outcome
from submarine_jobs.text import printable
from submarine_runtime.translation import _
from submarine_workflows.runs.folders import RunFolder
from submarine_workflows.runs.tables import log_of
from submarine_workflows.runs.views import NodeView, RunView, view_of

_CHUNK = 1 << 16
#: Maximum length of one log in an outcome.
MAX_TEXT = 1 << 20
_LOOK = 0.5


def log_outcome(
    run: RunFolder,
    node: str | None,
    attempt: int | None,
    tail: int | None,
    frontend: Frontend,
    *,
    as_json: bool,
) -> Outcome:
    """Return the current content of logs as an outcome.

    Parameters
    ----------
    node
        Path of the node or flow; None: all started nodes.
    attempt
        Attempt of the node, counted from 1; None: the newest.
    tail
        Number of last lines of each log; None: all.
    as_json
        Whether the outcome is printed as JSON; then no text is written here.

    Raises
    ------
    UsageError
        If the run has no such node or attempt, or a log cannot be read.
    """
    view = view_of(run)
    found = _chosen(view, node)
    if node and not found:
        frontend.say(
            _("{node} of {run} has no log: it is {status}.").format(
                node=node, run=run.run, status=view.node(node).status
            )
        )
    headed = [one.path for one in found] != [node]
    logs = [(one.path, _path(run, view, one, attempt)) for one in found]
    if frontend.kind == "cli" and not as_json:
        for path, log in logs:
            if headed:
                frontend.write(f"==> {path} <==\n".encode())
            for data in _chunks(log, tail):
                frontend.write(data)
        return Outcome()
    value: list[dict[str, Any]] = []
    parts: list[str] = []
    for path, log in logs:
        text = b"".join(_chunks(log, tail))[-MAX_TEXT:].decode("utf-8", "replace")
        value.append({"node": path, "log": text})
        parts += [f"==> {path} <=="] if headed else []
        parts.append(printable(text, MAX_TEXT).rstrip("\n"))
    return Outcome("\n".join(parts), value=value)


def follow_logs(run: RunFolder, node: str | None, frontend: Frontend, tail: int | None) -> Outcome:
    """Write the logs of nodes as they grow, until the run (or the node) has ended.

    Parameters
    ----------
    node
        Path of the node or flow; None: all nodes.
    tail
        Number of last lines of each log at the start; None: all.
    """
    reading: dict[tuple[str, int], int] = {}
    latest = ""
    while True:
        view = view_of(run)
        over = not view.alive or (node is not None and view.node(node).status.ended)
        for one in _chosen(view, node):
            log = log_of(view, one)
            key = (one.path, one.attempt)
            if log is None:
                continue
            if key not in reading:
                reading[key] = _start(log, tail)
            elif (size := _size(log)) < reading[key]:  # shortened by ``log_limit``
                reading[key] = size
            for data in _from(log, reading[key]):
                if one.path not in (node, latest):
                    frontend.write(f"==> {one.path} <==\n".encode())
                    latest = one.path
                frontend.write(data)
                reading[key] += len(data)
        if over:
            return Outcome(value=view.to_json())
        time.sleep(_LOOK)


def _chosen(view: RunView, name: str | None) -> list[NodeView]:
    """Return the started nodes by start time: all, one, or those of a flow."""
    begun = [node for node in view.nodes if node.log and node.started is not None]
    if name:
        path = view.node(name).path
        begun = [n for n in begun if n.path == path or n.path.startswith(f"{path}:")]
    return sorted(begun, key=lambda node: node.started or 0.0)


def _path(run: RunFolder, view: RunView, node: NodeView, attempt: int | None) -> Path | None:
    if attempt is None:
        return log_of(view, node)
    path = run.log(node.path, attempt - 1)
    if not path.exists():
        raise UsageError(
            _("{path} of {run} has no attempt {attempt}.").format(
                path=node.path, run=run.run, attempt=attempt
            )
        )
    return path


def _chunks(path: Path | None, tail: int | None) -> Iterator[bytes]:
    if path is not None:
        yield from _from(path, _start(path, tail))


def _from(path: Path, offset: int) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            while data := file.read(_CHUNK):
                yield data
    except FileNotFoundError:
        return
    except OSError as exc:
        raise UsageError(
            _("{path} cannot be read: {strerror}.").format(path=path, strerror=exc.strerror)
        ) from None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _start(path: Path, tail: int | None) -> int:
    """Return the offset of the last ``tail`` lines, searching from the end."""
    if tail is None:
        return 0
    try:
        with path.open("rb") as file:
            end = file.seek(0, 2)
            offset, lines = end, 0
            while offset and lines <= tail:
                step = min(_CHUNK, offset)
                offset -= step
                file.seek(offset)
                block = file.read(step)
                newlines = [n for n, byte in enumerate(block) if byte == 10]
                for position in reversed(newlines):
                    if offset + position == end - 1:
                        continue  # the newline at the end of the log
                    lines += 1
                    if lines == tail:
                        return offset + position + 1
            return 0 if tail else end
    except OSError:
        return 0
