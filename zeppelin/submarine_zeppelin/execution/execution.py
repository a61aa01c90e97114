"""One run of a paragraph: what it is, how it stands, and what its interpreter says of it.

Decides nothing: which runs there are, and when each begins and ends, is ``executions``' matter.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from typing import Final

from submarine_zeppelin.execution.output import ParagraphOutput
from submarine_zeppelin.interface import Context, Interpreter, Result

log = logging.getLogger(__name__)
PENDING: Final = "PENDING"
RUNNING: Final = "RUNNING"
UNKNOWN: Final = "UNKNOWN"


@dataclass(eq=False)
class Execution:
    """One run of a paragraph."""

    interpreter: Interpreter
    text: str
    context: Context
    output: ParagraphOutput
    after: tuple[Execution, ...]
    state: str = PENDING
    result: Result | None = None
    cancelled_at: float | None = None
    ended_at: float = 0.0
    delivered: bool = False
    #: Its result is there.
    finished: threading.Event = field(default_factory=threading.Event)
    #: It does nothing any more: what waits for it may begin.
    left: threading.Event = field(default_factory=threading.Event)


def is_active(known: Execution) -> bool:
    """Whether what an ended run began goes on."""
    try:
        return known.finished.is_set() and known.interpreter.active(known.context)
    except Exception:
        log.exception("an interpreter cannot say whether paragraph %s", known.context.paragraph_id)
        return False


def lane_of(interpreter: Interpreter, context: Context) -> str:
    """The lane of a paragraph; its note, where the interpreter cannot say."""
    try:
        return interpreter.lane(context)
    except Exception:
        log.exception("an interpreter has no lane")
        return context.note_id
