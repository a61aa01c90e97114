"""A workflow as data: nodes with dependencies, in the terms of Flow 2.0 with extensions.

Values are not validated here; see ``validation``.

Notes
-----
The keys of a node in Flow 2.0 are ``name type config dependsOn condition nodes``; ``notebook cells
params job needs`` are extensions (Azkaban's documentation, "Creating Flows", Flow 2.0).
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from submarine_jobs.errors import UsageError
from submarine_runtime.translation import _

Scalar = str | int | float | bool | None

#: Default timeout of a data dependency, in seconds.
NEED_TIMEOUT = 6 * 3600.0
#: Maximum number of problems in the message of a WorkflowError.
_MAX_PROBLEMS = 20


class Kind(enum.Enum):
    """Kind of a node."""

    NOTEBOOK = "notebook"
    CELLS = "cells"
    COMMAND = "command"
    NOOP = "noop"
    FLOW = "flow"
    #: Type of an Azkaban plugin (``java``, ``spark``): passed through, runs only in Azkaban.
    OTHER = "other"


@dataclass(frozen=True)
class Need:
    """Data that must exist before a node starts.

    Attributes
    ----------
    url
        A path, ``hdfs://`` or any other URL that fsspec supports; may contain ``{parameter}``.
    timeout
        Seconds to wait, 6 h by default; then the node fails.
    """

    url: str
    timeout: float = NEED_TIMEOUT
    line: int = 0


@dataclass(frozen=True)
class Node:
    """One step of a workflow.

    Attributes
    ----------
    name
        Unique among neighbouring nodes.
    type
        The value of ``type:``; empty if the kind follows from other keys.
    line
        Line where the node begins.
    config
        Azkaban properties, text only; those of a flow apply to its nodes too.
    depends_on
        Names of neighbours that must have ended.
    condition
        ``one_success && ${features:rows} > 0``; empty: all dependencies have succeeded.
    nodes
        Nodes of an embedded flow.
    notebook
        Path of the notebook, relative to the workflow file.
    cells
        Names (ids, tags or titles) of the notebook cells that form the program.
    params
        Parameters of the notebook run.
    job
        Options of ``run`` by name: ``{"worker": 2, "gpu": 1}``.
    lines
        Line of each value by key, ``condition`` or ``job.memory``, for messages.
    """

    name: str
    kind: Kind
    type: str = ""
    line: int = 0
    config: Mapping[str, str] = field(default_factory=dict)
    depends_on: tuple[str, ...] = ()
    condition: str = ""
    nodes: tuple[Node, ...] = ()
    notebook: str = ""
    cells: tuple[str, ...] = ()
    params: Mapping[str, Scalar] = field(default_factory=dict)
    job: Mapping[str, Scalar] = field(default_factory=dict)
    needs: tuple[Need, ...] = ()
    lines: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)

    def line_of(self, *keys: str) -> int:
        """Return the line of the first of ``keys`` that the node has, else that of the node."""
        return next((self.lines[key] for key in keys if key in self.lines), self.line)


@dataclass(frozen=True)
class Workflow:
    """A named graph of nodes.

    Attributes
    ----------
    name
        Flow id; Azkaban identifies a schedule by it.
    config
        Flow parameters.
    schedule
        Quartz or crontab expression; empty if the workflow is not scheduled.
    timezone
        IANA name of the schedule's time zone; empty: that of the scheduling machine.
    file
        Name of the text for messages; empty in a cell.
    notebook
        Notebook that contains the workflow and the cells that its nodes may run, relative to the
        workflow file; empty if there is none.
    """

    name: str
    nodes: tuple[Node, ...]
    config: Mapping[str, str] = field(default_factory=dict)
    schedule: str = ""
    schedule_line: int = 0
    timezone: str = ""
    file: str = ""
    notebook: str = ""
    timezone_line: int = 0

    def walk(self) -> Iterator[tuple[tuple[Node, ...], Node]]:
        """Yield every node with its flows, outermost first, in depth-first order."""
        stack: list[tuple[tuple[Node, ...], Node]] = [((), node) for node in reversed(self.nodes)]
        while stack:
            flows, node = stack.pop()
            yield flows, node
            stack.extend(((*flows, node), inner) for inner in reversed(node.nodes))


@dataclass(frozen=True, order=True)
class Problem:
    """One problem of a workflow.

    Attributes
    ----------
    line
        Line of the workflow's text, from 1; 0 if the problem concerns the whole text.
    sentence
        The problem and how to correct it.
    file
        Name of the file; empty if there is only one text, as in a cell.
    """

    line: int
    sentence: str
    file: str = ""

    def __str__(self) -> str:
        place = _("line {line}").format(line=self.line) if self.line else ""
        if self.file:
            place = f"{self.file}, {place}" if place else self.file
        return f"{place}: {self.sentence}" if place else self.sentence


class WorkflowError(UsageError):
    """A workflow is invalid.

    Attributes
    ----------
    problems
        All problems, sorted by line; at least one.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        texts = [str(problem) for problem in self.problems[:_MAX_PROBLEMS]]
        if len(self.problems) > _MAX_PROBLEMS:
            texts.append(_("and {count} more").format(count=len(self.problems) - _MAX_PROBLEMS))
        super().__init__("\n".join(texts))
