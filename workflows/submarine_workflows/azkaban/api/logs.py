"""Read logs of Azkaban nodes by offset, once or as they grow, one piece at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from submarine_jobs.errors import UsageError
from submarine_jobs.text import one_line
from submarine_runtime.translation import _
from submarine_workflows.azkaban.api.client import Azkaban
from submarine_workflows.azkaban.api.errors import AzkabanError, UnreachableError
from submarine_workflows.azkaban.api.executions import Execution, NodeExecution

#: Statuses in which a node has no log yet.
_NOT_STARTED = ("READY", "DISPATCHING", "PREPARING", "QUEUED", "")
_WITHOUT_LOG = ("CANCELLED", "SKIPPED", "DISABLED")
#: Limit of failed requests while a node runs: the executor or server may be restarting.
_MAX_FAILURES = 30
#: The limit for an ended node: for some seconds after a run the web server asks the executor, which
#: no longer has the logs, and answers HTTP 500.
_MAX_FAILURES_AT_END = 8


@dataclass
class _Position:
    """Reading position in a node's log."""

    attempt: int = 0
    offset: int = 0
    failures: int = 0
    over: bool = False
    done: bool = False


class LogFollower:
    """Read the logs of one run.

    Parameters
    ----------
    node
        Path of the node; empty: all nodes, with a heading when the node changes.
    interval
        Seconds between requests.

    Attributes
    ----------
    status
        Last known status of the execution.
    """

    def __init__(
        self, azkaban: Azkaban, execid: int, node: str = "", interval: float = 2.0
    ) -> None:
        self._azkaban = azkaban
        self._execid = execid
        self._node = node
        self._interval = interval
        self._positions: dict[str, _Position] = {}
        self._open = ""
        self.status = ""

    def read_current(self) -> Iterator[str]:
        """Yield the current logs."""
        yield from self._new_text()
        while any(position.over and not position.done for position in self._positions.values()):
            time.sleep(self._interval)
            yield from self._new_text()

    def follow(self) -> Iterator[str]:
        """Yield the logs until the node or the run has ended."""
        misses = 0
        while True:
            try:
                yield from self._new_text()
                misses = 0
            except UnreachableError:  # a restarting web server is unavailable for a while
                misses += 1
                if misses > _MAX_FAILURES:
                    raise
            if self._positions and all(position.done for position in self._positions.values()):
                return
            time.sleep(self._interval)

    def attempt(self, number: int) -> Iterator[str]:
        """Yield the log of one attempt of the node; attempts count from 0."""
        execution = self._azkaban.execution(self._execid)
        self.status = execution.status
        for node in self._selected_nodes(execution):
            if number > node.attempt:
                raise UsageError(
                    _("`{path}` has no attempt {number}; it has {attempt}.").format(
                        path=node.path, number=number + 1, attempt=node.attempt + 1
                    )
                )
            position = _Position(number)
            yield from self._pieces(node.path, position, number)

    def _new_text(self) -> Iterator[str]:
        execution = self._azkaban.execution(self._execid)
        self.status = execution.status
        for node in self._selected_nodes(execution):
            position = self._positions.setdefault(node.path, _Position())
            if position.done:
                continue
            # Read the status before the log, so that the last piece is complete.
            position.over = node.over or execution.over
            if node.status not in (*_NOT_STARTED, *_WITHOUT_LOG):
                yield from self._read(node, position)
            position.done = position.over and not position.failures

    def _selected_nodes(self, execution: Execution) -> list[NodeExecution]:
        nodes = [node for node in execution.walk() if not node.nodes]
        if not self._node:
            return nodes
        found = [node for node in nodes if node.path == self._node]
        if not found:
            names = ", ".join(one_line(node.path) for node in nodes[:20])
            raise UsageError(
                _("{flow} has no node `{node}`.").format(flow=execution.flow, node=self._node),
                _("It has: {names}.").format(names=names),
            )
        return found

    def _read(self, node: NodeExecution, position: _Position) -> Iterator[str]:
        """Yield the new text of a node; each attempt has its own log."""
        try:
            while position.attempt < node.attempt and position.offset:
                yield from self._pieces(node.path, position, position.attempt)
                position.attempt, position.offset = position.attempt + 1, 0
            position.attempt = node.attempt
            yield from self._pieces(node.path, position)
        except (AzkabanError, UnreachableError):
            position.failures += 1
            if position.failures > (_MAX_FAILURES_AT_END if position.over else _MAX_FAILURES):
                raise

    def _pieces(self, path: str, position: _Position, attempt: int | None = None) -> Iterator[str]:
        while True:
            piece = self._azkaban.log(self._execid, path, position.offset, attempt)
            position.failures = 0
            if not piece.length:
                return
            position.offset = piece.offset + piece.length
            yield self._marked(path, piece.text)

    def _marked(self, path: str, text: str) -> str:
        """Add a heading if several nodes are shown and the node has changed."""
        if self._node or self._open == path:
            return text
        self._open = path
        return f"==> {path} <==\n{text}" if not text.startswith("\n") else f"==> {path} <=={text}"
