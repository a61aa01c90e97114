"""Show logs: stream them to the front end, follow them, or return their end as an outcome."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from submarine_jobs import logs
from submarine_jobs.commands.log_output.lines import PrefixedLines
from submarine_jobs.frontends import INTERRUPTED, Outcome
from submarine_jobs.logs import read_from
from submarine_jobs.text import TerminalFilter
from submarine_runtime.protocol import LogCursor, LogKey
from submarine_runtime.protocol.layout import FIRST_ATTEMPT, HELPER_STREAM
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.access import LogChunk
    from submarine_jobs.client import Job
    from submarine_jobs.frontends import Frontend

#: Bytes of the end that a notebook's output and ``--json`` contain.
KEEP = 1 << 20
MAX_TAIL_BYTES = 16 << 20
_PIECE = 1 << 20


def start_offset(job: Job, key: LogKey, tail: int | None, offset: int | None) -> int:
    """Return the offset of the first byte to show."""
    if tail is None:
        if offset is None or offset >= 0:
            return offset or 0
        return _log(job, key, offset, 1).offset
    return _tail_offset(job, key, tail)


def _log(job: Job, key: LogKey, offset: int, limit: int) -> LogChunk:
    return job.log(key.stream, offset, limit, task=key.task, attempt=key.attempt or None)


def _tail_offset(job: Job, key: LogKey, lines: int) -> int:
    """Return the offset of the last ``lines`` lines; at most 16 MiB of the end are read."""
    size = 1 << 16
    while True:
        first = _log(job, key, -size, min(size, _PIECE))
        rest = read_from(job, key, first.end, size - len(first.data)) if first.data else ()
        data = first.data + b"".join(chunk.data for chunk in rest)
        end = first.offset + len(data)
        if lines == 0:
            return end
        place = len(data.removesuffix(b"\n"))
        for _number in range(lines):
            place = data.rfind(b"\n", 0, place)
            if place < 0:
                break
        if place >= 0:
            return first.offset + place + 1
        if first.offset == 0 or size >= MAX_TAIL_BYTES:
            return first.offset
        size *= 4


def stream_log(
    frontend: Frontend, pieces: Iterable[LogChunk], keys: Sequence[LogKey], *, together: bool
) -> None:
    """Write pieces as they come; lines of tasks that are shown together have names before them."""
    names = _names(frontend, keys) if together else None
    streams = {key.stream for key in keys}
    for chunk in pieces:
        if chunk.note:
            frontend.say(f"-- {chunk.note} --")
        elif chunk.stream in streams:
            frontend.write(names.feed(chunk) if names else chunk.data, chunk.stream)
    for stream, line in names.rest() if names else ():
        frontend.write(line, stream)


def _names(frontend: Frontend, keys: Sequence[LogKey]) -> PrefixedLines:
    terminal = frontend.kind == "notebook" or (frontend.kind == "cli" and sys.stdout.isatty())
    coloured = terminal and not os.environ.get("NO_COLOR")
    return PrefixedLines(dict.fromkeys(key.task for key in keys), coloured=coloured)


def follow_log(
    job: Job,
    frontend: Frontend,
    keys: Sequence[LogKey],
    starts: dict[LogKey, int],
    *,
    together: bool,
) -> Outcome:
    """Stream the logs until the job has ended or an interrupt."""
    tasks = list(dict.fromkeys(key.task for key in keys))
    begun = {
        key._replace(attempt=key.attempt or FIRST_ATTEMPT): n for key, n in starts.items() if n
    }
    pieces = logs.follow(job, tasks, LogCursor(begun))
    try:
        stream_log(frontend, pieces, keys, together=together)
    except KeyboardInterrupt:
        return Outcome(
            text=_("Stopped following; {job} goes on.").format(job=job.id),
            exit_code=INTERRUPTED,
            value=None,
        )
    return Outcome(value={"job_id": job.id})


def log_outcome(
    job: Job,
    pieces: Iterable[LogChunk],
    keys: Sequence[LogKey],
    starts: dict[LogKey, int],
    *,
    together: bool,
) -> Outcome:
    """Return the end of the logs as text, for a notebook's output and for ``--json``."""
    # cost: the HTML of a log, which only a notebook needs.
    from submarine_jobs.display import BOX
    from submarine_jobs.text import ansi

    limit = max(KEEP // max(len(keys) // 2, 1), 1 << 12)
    ends = {(key.task, key.stream): bytearray() for key in keys}
    reached = {(key.task, key.stream): start for key, start in starts.items()}
    names = PrefixedLines(dict.fromkeys(key.task for key in keys), coloured=True)
    joined, stream = bytearray(), ""
    for chunk in pieces:
        key = (chunk.task, chunk.stream)
        _keep_end(ends.setdefault(key, bytearray()), chunk.data, limit)
        reached[key] = chunk.end
        if together:
            _keep_end(joined, names.feed(chunk), KEEP)
            continue
        if stream not in ("", chunk.stream) and joined and not joined.endswith(b"\n"):
            joined += b"\n"
        stream = chunk.stream
        _keep_end(joined, chunk.data, KEEP)
    if together:
        for _, line in names.rest():
            joined += line
    return Outcome(
        text=TerminalFilter().feed(bytes(joined), final=True).rstrip("\n"),
        html=f'<pre style="{BOX}">{ansi.to_html(joined.decode("utf-8", "replace"))}</pre>',
        value={"job_id": job.id, **_values(keys, ends, reached, together)},
    )


def _values(
    keys: Sequence[LogKey],
    ends: dict[tuple[str, str], bytearray],
    reached: dict[tuple[str, str], int],
    together: bool,
) -> dict[str, Any]:
    """Return the streams of a single task, or one object for each of several tasks."""
    tasks: dict[str, dict[str, Any]] = {}
    for key in keys:
        data = ends[key.task, key.stream]
        if key.stream == HELPER_STREAM and not data and len(keys) > 1:
            continue
        found = tasks.setdefault(key.task, {"task": key.task, "attempt": key.attempt or "e1-a1"})
        found[key.stream] = {
            "offset": reached[key.task, key.stream] - len(data),
            "length": len(data),
            "text": data.decode("utf-8", "replace"),
        }
    return {"tasks": tasks} if together else tasks[keys[0].task]


def _keep_end(buffer: bytearray, data: bytes, limit: int) -> None:
    """Add data to the end of a log, of which the last ``limit`` bytes are kept."""
    buffer += data
    del buffer[:-limit]
