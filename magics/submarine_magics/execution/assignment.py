"""Bind the name in ``job = %submarine run ... --wait`` when the job is submitted.

A statement that raises assigns nothing, so the name would keep the job of an earlier run. Only a
plain name at the top level of a cell is bound. Elsewhere use the exception's attribute ``job``.
"""

from __future__ import annotations

import contextlib
import dis
import inspect
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.client import Job

#: Packages with frames between the cell and the command.
_INTERMEDIATE = ("IPython", "submarine_magics", "contextlib")
#: Instructions between a call and the assignment of its value, as in ``a = b = f()``.
_SKIPPED = ("COPY", "NOP")

#: The frame that called the magic. None in threads that a cell starts.
_caller: ContextVar[FrameType | None] = ContextVar("submarine_caller", default=None)


@contextlib.contextmanager
def called_from_cell() -> Iterator[None]:
    """Record the statement that called the magic, for ``bind``, until the block ends."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _package(frame) in _INTERMEDIATE:
        frame = frame.f_back
    token = _caller.set(frame)
    try:
        yield
    finally:
        _caller.reset(token)


def bind(job: Job) -> None:
    """Assign ``job`` to the name to which the calling statement assigns its value."""
    frame = _caller.get()
    if frame is None:
        return
    name = assigned_name(frame)
    if name is not None:
        # At the top level of a cell, f_locals is the namespace itself.
        frame.f_locals[name] = job


def assigned_name(frame: FrameType) -> str | None:
    """Return the name to which module-level code assigns the value of the current call."""
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        return None  # Local variables of a function cannot be set from outside.
    # Bytecode is available also where the source is not: in `%%time` or `exec`.
    following = (
        instruction
        for instruction in dis.get_instructions(frame.f_code)
        if instruction.offset > frame.f_lasti and instruction.opname not in _SKIPPED
    )
    first = next(following, None)
    return str(first.argval) if first is not None and first.opname == "STORE_NAME" else None


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
