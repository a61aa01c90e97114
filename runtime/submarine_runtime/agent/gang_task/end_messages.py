"""Messages of an agent to its coordinator on the end of a program; see ``protocol.link``."""

from __future__ import annotations

import json
import time
from typing import Any, Mapping

from submarine_runtime.agent.program import Ending
from submarine_runtime.protocol import MAX_LINK_LINE, EndReason, to_json

#: Failures that a restart of the program would repeat.
PERMANENT = frozenset(
    {
        EndReason.IMPORT_ERROR,
        EndReason.INPUT_MISSING,
        EndReason.LAUNCH_FAILED,
        EndReason.OUTPUT_NOT_SAVED,
    }
)
PERMANENT_TYPES = frozenset({"SyntaxError", "IndentationError", "TabError"})
_SHORT_TEXT = 8192
_SHORT_FRAMES = 20


def ended_line(
    ending: Ending, epoch: int, attempt: int, logs: Mapping[str, int], fields: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the line ``state ended``.

    Parameters
    ----------
    logs
        Stream -> length.
    fields
        ``outputs``, ``missing`` and ``hints``, if there are any.
    """
    line: dict[str, Any] = {
        "type": "state",
        "state": "ended",
        "epoch": epoch,
        "attempt": attempt,
        "reason": ending.reason.value,
        "detail": ending.detail[:2000],
        "exit_code": ending.exit_code,
        "signal": ending.signal,
        "failure": to_json(ending.failure),
        "logs": dict(logs),
        "finished": time.time(),
        "retry": "no" if is_permanent(ending) else "yes",
        **fields,
    }
    if ending.failed is not None:
        line["failed"] = ending.failed
    if ending.unrestored:
        line.update(unrestored=True, damaged=ending.unrestored)
    if len(json.dumps(line)) > MAX_LINK_LINE // 2:
        _shorten(line)
    return line


def is_permanent(ending: Ending) -> bool:
    """Return whether the same program would fail in the same way again."""
    failure = ending.failure
    return ending.reason in PERMANENT or (failure is not None and failure.type in PERMANENT_TYPES)


def _shorten(line: dict[str, Any]) -> None:
    line["outputs"] = list(line.get("outputs") or [])[:100]
    line["warnings"] = list(line.get("warnings") or [])[:10]
    failure = line["failure"]
    if failure:
        failure["text"] = failure["text"][-_SHORT_TEXT:]
        failure["frames"] = failure["frames"][-_SHORT_FRAMES:]
        for frame in failure["frames"]:
            frame["file"], frame["code"] = frame["file"][:500], frame["code"][:500]
            frame["function"] = frame["function"][:500]
