"""A workflow as data: nodes that depend on each other, in Flow 2.0's words and a few of ours.

Holds nothing that was checked beyond its shape: ``validation`` says whether it makes sense.

Notes
-----
Flow 2.0's own keys of a node are ``name type config dependsOn condition nodes``; ``notebook cells
params job needs`` are ours (Azkaban's documentation, "Creating Flows", Flow 2.0).
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

Scalar = str | int | float | bool | None

#: Seconds that a data dependency is waited for where nothing else is said.
NEED_TIMEOUT = 6 * 3600.0


class Kind(enum.Enum):
    """What a node runs."""

    NOTEBOOK = "notebook"
    CELLS = "cells"
    COMMAND = "command"
    NOOP = "noop"
    FLOW = "flow"
    #: A type of Azkaban's plugins (``java``, ``spark``): accepted as it is, run by Azkaban only.
    OTHER = "other"


@dataclass(frozen=True)
class Need:
    """Data that must be there before a node starts.

    Attributes
    ----------
    url
        A path, ``hdfs://`` or any other URL that fsspec knows; may hold ``{parameter}``.
    timeout
        Seconds to wait for it, 6 h by default; after that the node fails.
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
        Unique among its neighbours.
    type
        The word that was written, ``command``; empty where it follows from the other keys.
    line
        Where it begins in the text.
    config
        Azkaban's properties: text only; those of a flow hold for its nodes too.
    depends_on
        Names of neighbours that must have ended.
    condition
        When it runs, ``one_success && ${features:rows} > 0``; empty: all of them succeeded.
    nodes
        Of an embedded flow.
    notebook
        Path of the notebook, relative to the workflow's file.
    cells
        Names (ids, tags or titles) of the cells of this notebook that make up the program.
    params
        Parameters of the notebook run.
    job
        Options of ``run`` by their grammar names: ``{"worker": 2, "gpu": 1}``.
    lines
        Where its values stand in the text, by key, ``condition`` or ``job.memory``; for sentences.
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
        """Where the first of ``keys`` stands that it has; else where the node begins."""
        return next((self.lines[key] for key in keys if key in self.lines), self.line)


@dataclass(frozen=True)
class Workflow:
    """A graph of nodes with a name.

    Attributes
    ----------
    name
        The flow's id; Azkaban keeps a schedule by it.
    config
        Flow parameters.
    schedule
        A Quartz cron expression; empty: it runs when asked.
    timezone
        IANA name that the schedule is read in; empty: that of the machine that schedules.
    file
        Name of the text for sentences; empty in a cell.
    notebook
        The notebook that it is written in, whose cells its nodes may run; relative to the
        workflow's file. Empty: it is written in none.
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
        """Every node with the flows that it is embedded in, outermost first; depth first."""
        stack: list[tuple[tuple[Node, ...], Node]] = [((), node) for node in reversed(self.nodes)]
        while stack:
            flows, node = stack.pop()
            yield flows, node
            stack.extend(((*flows, node), inner) for inner in reversed(node.nodes))
