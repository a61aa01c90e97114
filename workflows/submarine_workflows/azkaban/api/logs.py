"""Logs of Azkaban's nodes by their offsets, once or as they grow; keeps no more than a piece."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from submarine_jobs.errors import UsageError
from submarine_jobs.text import one_line
from submarine_workflows.azkaban.api.client import Azkaban
from submarine_workflows.azkaban.api.errors import AzkabanError, UnreachableError
from submarine_workflows.azkaban.api.executions import Execution, NodeSeen

#: Statuses in which a node has no log yet.
_BEFORE = ("READY", "DISPATCHING", "PREPARING", "QUEUED", "")
_SILENT = ("CANCELLED", "SKIPPED", "DISABLED")
#: Times that a log or the server may be asked in vain while a node runs: both may be started anew.
_PATIENCE = 30
#: The same of a node that has ended: for some seconds after a run Azkaban's web server asks the
#: executor, which has its logs no more, and answers with HTTP 500; then it finds them.
_LATE = 8


@dataclass
class _Place:
    """How far a node's log was read."""

    attempt: int = 0
    offset: int = 0
    failures: int = 0
    over: bool = False
    done: bool = False


class Follower:
    """The logs of one run.

    Parameters
    ----------
    node
        Its path; empty: all nodes, each line with the node before it.
    interval
        Seconds between two looks.

    Attributes
    ----------
    status
        Of the execution, as it was seen last.
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
        """What there is."""
        yield from self._look()
        while any(place.over and not place.done for place in self._places.values()):
            time.sleep(self._interval)
            yield from self._look()

    def until_the_end(self) -> Iterator[str]:
        """What there is and what comes, until the node or the run has ended."""
        misses = 0
        while True:
            try:
                yield from self._look()
                misses = 0
            except UnreachableError:  # a web server that is started anew is away for a while
                misses += 1
                if misses > _PATIENCE:
                    raise
            if self._places and all(place.done for place in self._places.values()):
                return
            time.sleep(self._interval)

    def attempt(self, number: int) -> Iterator[str]:
        """The log of one attempt of the node, counted from 0."""
        execution = self._azkaban.execution(self._execid)
        self.status = execution.status
        for node in self._wanted(execution):
            if number > node.attempt:
                raise UsageError(
                    f"`{node.path}` has no attempt {number + 1}; it has {node.attempt + 1}."
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
            # Asked before its log, so that what follows the last piece is the end.
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
            raise UsageError(f"{execution.flow} has no node `{self._node}`.", f"It has: {names}.")
        return found

    def _read(self, node: NodeSeen, place: _Place) -> Iterator[str]:
        """What is new of a node; each attempt has a log of its own."""
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
        """With the node before its text, where several are shown and another one spoke last."""
        if self._node or self._open == path:
            return text
        self._open = path
        return f"==> {path} <==\n{text}" if not text.startswith("\n") else f"==> {path} <=={text}"
