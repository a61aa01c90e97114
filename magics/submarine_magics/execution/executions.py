"""Remembers which cell is being executed: its text, its id, what the front end said about it.

Keeps only the present one (one for each subshell and task); collecting is ``notebook_cells``.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from submarine_jobs.program import tags_in

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


@dataclass(frozen=True)
class Execution:
    """One run of one cell.

    Parameters
    ----------
    cell_id
        From the front end; None where it sends none.
    count
        The number in ``In [3]``; None for what is kept out of the history.
    deleted
        Ids of cells that the front end says were deleted.
    tags
        The cell's tags, where the front end sends its metadata.
    code
        What IPython is about to compile.
    """

    source: str
    cell_id: str | None = None
    count: int | None = None
    deleted: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    code: str = ""

    @property
    def label(self) -> str:
        """What a person sees, ``[3]``."""
        return f"[{self.count}]" if self.count is not None else "[ ]"


class Executions:
    """The hook on one shell."""

    _all: weakref.WeakKeyDictionary[InteractiveShell, Executions] = weakref.WeakKeyDictionary()

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = weakref.ref(shell)
        self._current: ContextVar[Execution | None] = ContextVar("execution", default=None)
        #: The cell that was begun last, which is all that a thread of a cell can be told of.
        self.latest: Execution | None = None
        self.listeners: list[Callable[[Execution], None]] = []

    @classmethod
    def of(cls, shell: InteractiveShell) -> Executions | None:
        """The hook on ``shell``, if there is one."""
        return cls._all.get(shell)

    @classmethod
    def attach(cls, shell: InteractiveShell) -> Executions:
        """Hook ``shell``, once."""
        found = cls._all.get(shell)
        if found is None:
            found = cls._all[shell] = cls(shell)
            shell.events.register("pre_run_cell", found.begin)
        return found

    def detach(self) -> None:
        """Take the hook away."""
        shell = self._shell()
        if shell is not None and self._all.pop(shell, None) is not None:
            shell.events.unregister("pre_run_cell", self.begin)

    @property
    def current(self) -> Execution | None:
        """The cell that the calling code belongs to."""
        return self._current.get()

    def begin(self, info: Any) -> None:
        """IPython's ``pre_run_cell``: take note of what starts now."""
        shell = self._shell()
        if shell is None:
            return
        meta = getattr(info, "cell_meta", None)
        if not meta:
            # ipykernel before 7.3 does not hand it on. What a cell runs in its turn has none.
            request = requested(shell)
            meta = request.metadata if request and request.code == info.raw_cell else None
        deleted = meta.get("deletedCells") if isinstance(meta, dict) else None
        cell_id = getattr(info, "cell_id", None)
        source = str(info.raw_cell)
        execution = Execution(
            source=source,
            cell_id=cell_id if isinstance(cell_id, str) and cell_id else None,
            # IPython counts up before it tells.
            count=shell.execution_count - 1 if info.store_history else None,
            deleted=tuple(word for word in deleted if isinstance(word, str))
            if isinstance(deleted, list)
            else (),
            tags=tags_in(meta),
            code=getattr(info, "transformed_cell", None) or source,
        )
        self._current.set(execution)
        self.latest = execution
        # One that is added by another (the magics, at first use) hears of it too.
        for listener in self.listeners:
            listener(execution)


@dataclass(frozen=True)
class Requested:
    """The cell that the front end has asked to be executed: its text, and what it said of it.

    Parameters
    ----------
    allow_stdin
        Whether a person could be asked; None where the front end does not say.
    """

    code: str
    metadata: object
    allow_stdin: bool | None = None

    @property
    def tags(self) -> tuple[str, ...]:
        """The cell's tags."""
        return tags_in(self.metadata)


def requested(shell: InteractiveShell) -> Requested | None:
    """What the request that is carried out now asks for; None if that is no execution."""
    parent = _request(shell)
    header, content = parent.get("header"), parent.get("content")
    if not isinstance(header, dict) or header.get("msg_type") != "execute_request":
        return None
    if not isinstance(content, dict) or not isinstance(content.get("code"), str):
        return None
    stdin = content.get("allow_stdin")
    allowed = stdin if isinstance(stdin, bool) else None
    return Requested(content["code"], parent.get("metadata"), allowed)


def _request(shell: InteractiveShell) -> dict[str, Any]:
    get_parent = getattr(shell, "get_parent", None)
    parent = get_parent() if callable(get_parent) else None
    return parent if isinstance(parent, dict) else {}
