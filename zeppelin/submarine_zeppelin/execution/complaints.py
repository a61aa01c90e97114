"""What a user is told where something failed: one sentence; the stack is for the log."""

from __future__ import annotations

import logging

from submarine_zeppelin.interface import Code, Kind, Message, Result

log = logging.getLogger(__name__)


def complaint(error: BaseException) -> Result:
    """The result of a run that ended with an exception."""
    from submarine_jobs.errors import SubmarineError

    if isinstance(error, SubmarineError):
        said = str(error)
    else:
        log.error("a paragraph failed", exc_info=error)
        kind = type(error).__name__
        said = f"Submarine failed inside itself ({kind}); the interpreter's log says where."
    return Result(Code.ERROR, (Message(Kind.TEXT, said + "\n"),))
