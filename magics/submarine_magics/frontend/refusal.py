"""A core's error as a notebook shows it: one sentence in the place of a traceback.

The error keeps its class, so that code can catch it, and the cell fails as with any other error.
"""

from __future__ import annotations

from submarine_jobs.errors import SubmarineError
from submarine_jobs.text import printable

_MAX_SENTENCE = 4000


def as_refusal(error: SubmarineError) -> SubmarineError:
    """``error``, with the method by which IPython lets an exception show itself."""
    if "_render_traceback_" not in error.__dict__:
        error.__dict__["_render_traceback_"] = lambda: sentence_lines(error)
    return error


def sentence_lines(error: BaseException) -> list[str]:
    """``UsageError: sentence``, the name in red; escapes in the sentence are made harmless."""
    return [f"\x1b[31m{type(error).__name__}\x1b[39m: {printable(str(error), _MAX_SENTENCE)}"]
