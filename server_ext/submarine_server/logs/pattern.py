"""What is looked for in a log, as a pattern of RE2.

RE2 needs time linear in the text whatever the pattern, has a bound on memory, and lets go of the
interpreter while it looks: a pattern from a browser can neither hang a thread nor stop the event
loop. The price: no look-around and no back-references. Does not search (``searching``).
"""

from __future__ import annotations

import functools
from typing import Any

import re2

from submarine_jobs.errors import UsageError

#: Most characters of a pattern.
LONGEST = 1000
#: What "jump to the next error" looks for, with regard to case: the names of Python's errors, the
#: words of loggers and of the kernel, and how CUDA, NCCL and the JVM say it.
ERRORS = (
    r"Traceback \(most recent call last\)"
    r"|\b[A-Z][A-Za-z]*(?:Error|Exception)\b"
    r"|\b(?:ERROR|FATAL|CRITICAL|Error|Exception|Killed|Aborted)\b"
    r"|\b(?:CUDA|NCCL|cuDNN) error\b"
    r"|\bout of memory\b|\bOut of memory\b"
    r"|\bSegmentation fault\b|\bcore dumped\b"
)
#: Bytes that one pattern may take, with what RE2 remembers while it looks.
_MEMORY = 16 << 20


@functools.lru_cache(maxsize=64)
def compiled(text: str, *, regex: bool, case: bool) -> Any:
    """The pattern that finds ``text`` within lines.

    Parameters
    ----------
    regex
        ``text`` is a regular expression in RE2's syntax; else it is looked for as it stands.
    case
        Upper and lower case differ.

    Raises
    ------
    UsageError
        If it is empty, too long or no pattern.
    """
    if not text or len(text) > LONGEST or "\n" in text:
        raise UsageError(
            "What is searched for must be one line of 1 to 1,000 characters.", "Give `q`."
        )
    options = re2.Options()
    options.never_nl = True  # a match never goes beyond its line
    options.log_errors = False
    options.max_mem = _MEMORY
    flags = "(?m)" if case else "(?mi)"
    try:
        return re2.compile(flags + (text if regex else re2.escape(text)), options)
    except re2.error as exc:
        said = exc.args[0] if exc.args else ""
        reason = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        raise UsageError(
            f"{text[:80]!r} is no regular expression: {reason[:200]}.",
            "Look-around and back-references are not to be had (RE2's syntax).",
        ) from None
    except UnicodeEncodeError:
        raise UsageError("What is searched for is not valid text.") from None
