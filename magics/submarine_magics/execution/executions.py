"""The cell that a kernel executes: source, id, tags, and the front end's request.

There is one current execution for each subshell and asyncio task. Earlier ones are not kept.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from submarine_jobs.program import tags_of_metadata

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


class Execution(NamedTuple):
    """One run of one cell.

    Parameters
    ----------
    cell_id
        Sent by the front end; None if it sends no id.
    number
        The number in ``In [3]``; None for code that is not stored in the history.
    deleted
        Ids of deleted cells, as sent by the front end.
    tags
        The cell's tags; empty if the front end sends no metadata.
    code
        The transformed code, which IPython compiles.
    """

    source: str
    cell_id: str | None = None
    number: int | None = None
    deleted: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    code: str = ""

    @property
    def label(self) -> str:
        """The prompt number as displayed, ``[3]``."""
        return f"[{self.number}]" if self.number is not None else "[ ]"


class Executions:
    """Track the executions of one shell by IPython's event ``pre_run_cell``."""

    _all: weakref.WeakKeyDictionary[InteractiveShell, Executions] = weakref.WeakKeyDictionary()

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = weakref.ref(shell)
        self._current: ContextVar[Execution | None] = ContextVar("execution", default=None)
        #: The cell that was started last. Threads, which have no current cell, use it.
        self.latest: Execution | None = None
        self.listeners: list[Callable[[Execution], None]] = []

    @classmethod
    def of(cls, shell: InteractiveShell) -> Executions | None:
        """Return the instance for ``shell``, or None."""
        return cls._all.get(shell)

    @classmethod
    def attach(cls, shell: InteractiveShell) -> Executions:
        """Return the instance for ``shell``; the first call creates and registers it."""
        found = cls._all.get(shell)
        if found is None:
            found = cls._all[shell] = cls(shell)
            shell.events.register("pre_run_cell", found.begin)
        return found

    def detach(self) -> None:
        """Unregister the event callback."""
        shell = self._shell()
        if shell is not None and self._all.pop(shell, None) is not None:
            shell.events.unregister("pre_run_cell", self.begin)

    @property
    def current(self) -> Execution | None:
        """The cell that the calling code belongs to."""
        return self._current.get()

    def begin(self, info: Any) -> None:
        """Record the cell that starts; callback for ``pre_run_cell``."""
        shell = self._shell()
        if shell is None:
            return
        meta = getattr(info, "cell_meta", None)
        if not meta:
            # ipykernel before 7.3 does not pass it on. Code that a cell itself runs has none.
            request = current_request(shell)
            meta = request.metadata if request and request.code == info.raw_cell else None
        deleted = meta.get("deletedCells") if isinstance(meta, dict) else None
        cell_id = getattr(info, "cell_id", None)
        source = str(info.raw_cell)
        execution = Execution(
            source=source,
            cell_id=cell_id if isinstance(cell_id, str) and cell_id else None,
            # IPython increments the counter before it triggers the event.
            number=shell.execution_count - 1 if info.store_history else None,
            deleted=tuple(word for word in deleted if isinstance(word, str))
            if isinstance(deleted, list)
            else (),
            tags=tags_of_metadata(meta),
            code=getattr(info, "transformed_cell", None) or source,
        )
        self._current.set(execution)
        self.latest = execution
        # A listener may add another one (the magics, at first use), which is called too.
        for listener in self.listeners:
            listener(execution)


class ExecuteRequest(NamedTuple):
    """Content and metadata of the front end's ``execute_request``.

    Parameters
    ----------
    allow_stdin
        Whether questions can be asked; None if the front end does not send it.
    """

    code: str
    metadata: object
    allow_stdin: bool | None = None

    @property
    def tags(self) -> tuple[str, ...]:
        """The cell's tags."""
        return tags_of_metadata(self.metadata)


def current_request(shell: InteractiveShell) -> ExecuteRequest | None:
    """Return the request that the kernel handles now; None if it is not an execution."""
    parent = _request(shell)
    header, content = parent.get("header"), parent.get("content")
    if not isinstance(header, dict) or header.get("msg_type") != "execute_request":
        return None
    if not isinstance(content, dict) or not isinstance(content.get("code"), str):
        return None
    stdin = content.get("allow_stdin")
    allowed = stdin if isinstance(stdin, bool) else None
    return ExecuteRequest(content["code"], parent.get("metadata"), allowed)


def _request(shell: InteractiveShell) -> dict[str, Any]:
    get_parent = getattr(shell, "get_parent", None)
    parent = get_parent() if callable(get_parent) else None
    return parent if isinstance(parent, dict) else {}
