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
from submarine_workflows.azkaban.api.executions import Execution, NodeSeen

#: Statuses in which a node has no log yet.
_BEFORE = ("READY", "DISPATCHING", "PREPARING", "QUEUED", "")
_SILENT = ("CANCELLED", "SKIPPED", "DISABLED")
#: Limit of failed requests while a node runs: the executor or server may be restarting.
_PATIENCE = 30
#: The limit for an ended node: for some seconds after a run the web server asks the executor, which
#: no longer has the logs, and answers HTTP 500.
_LATE = 8


@dataclass
class _Place:
    """Reading position in a node's log."""

    attempt: int = 0
    offset: int = 0
    failures: int = 0
    over: bool = False
    done: bool = False


class Follower:
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
        self._places: dict[str, _Place] = {}
        self._open = ""
        self.status = ""

    def now(self) -> Iterator[str]:
        """Yield the current logs."""
        yield from self._look()
        while any(place.over and not place.done for place in self._places.values()):
            time.sleep(self._interval)
            yield from self._look()

    def until_the_end(self) -> Iterator[str]:
        """Yield the logs until the node or the run has ended."""
        misses = 0
        while True:
            try:
                yield from self._look()
                misses = 0
            except UnreachableError:  # a restarting web server is unavailable for a while
                misses += 1
                if misses > _PATIENCE:
                    raise
            if self._places and all(place.done for place in self._places.values()):
                return
            time.sleep(self._interval)

    def attempt(self, number: int) -> Iterator[str]:
        """Yield the log of one attempt of the node; attempts count from 0."""
        execution = self._azkaban.execution(self._execid)
        self.status = execution.status
        for node in self._wanted(execution):
            if number > node.attempt:
                raise UsageError(
                    _("`{path}` has no attempt {number}; it has {attempt}.").format(
                        path=node.path, number=number + 1, attempt=node.attempt + 1
                    )
                )
            place = _Place(number)
            yield from self._pieces(node.path, place, number)

    def _look(self) -> Iterator[str]:
        execution = self._azkaban.execution(self._execid)
        self.status = execution.status
        for node in self._wanted(execution):
            place = self._places.setdefault(node.path, _Place())
            if place.done:
                continue
            # Read the status before the log, so that the last piece is complete.
            place.over = node.over or execution.over
            if node.status not in (*_BEFORE, *_SILENT):
                yield from self._read(node, place)
            place.done = place.over and not place.failures

    def _wanted(self, execution: Execution) -> list[NodeSeen]:
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

    def _read(self, node: NodeSeen, place: _Place) -> Iterator[str]:
        """Yield the new text of a node; each attempt has its own log."""
        try:
            while place.attempt < node.attempt and place.offset:
                yield from self._pieces(node.path, place, place.attempt)
                place.attempt, place.offset = place.attempt + 1, 0
            place.attempt = node.attempt
            yield from self._pieces(node.path, place)
        except (AzkabanError, UnreachableError):
            place.failures += 1
            if place.failures > (_LATE if place.over else _PATIENCE):
                raise

    def _pieces(self, path: str, place: _Place, attempt: int | None = None) -> Iterator[str]:
        while True:
            piece = self._azkaban.log(self._execid, path, place.offset, attempt)
            place.failures = 0
            if not piece.length:
                return
            place.offset = piece.offset + piece.length
            yield self._marked(path, piece.text)

    def _marked(self, path: str, text: str) -> str:
        """Add a heading if several nodes are shown and the node has changed."""
        if self._node or self._open == path:
            return text
        self._open = path
        return f"==> {path} <==\n{text}" if not text.startswith("\n") else f"==> {path} <=={text}"
