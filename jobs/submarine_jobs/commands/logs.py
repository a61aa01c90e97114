"""``logs``: a job's log by offset, whole, its end, or live."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from submarine_jobs.commands.mouth import Mouth
from submarine_jobs.commands.outcome import INTERRUPTED, Outcome
from submarine_jobs.commands.shared_options import backend_option, job_argument, profile_option
from submarine_jobs.commands.terminal import TerminalFilter
from submarine_jobs.commands.verb import AS_JSON, Parsed, Verb, option
from submarine_jobs.errors import UsageError
from submarine_jobs.options.quantities import parse_count
from submarine_runtime.protocol.layout import STREAMS

if TYPE_CHECKING:
    from submarine_jobs.job import Job
    from submarine_jobs.live import LogChunk

#: Without a terminal to stream to (a notebook's output, ``--json``) so much of the end is kept.
KEEP = 1 << 20
MAX_TAIL_BYTES = 16 << 20
_MAX_OFFSET = 1 << 50
_PIECE = 1 << 20


def _number(text: str) -> int:
    plain = text.strip()
    digits = plain.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 15:
        hint = "Write a number of bytes; -1000 counts from the end."
        raise UsageError(f"{text[:40]!r} is no offset.", hint)
    return int(plain)


@click.command(
    "logs",
    cls=Verb,
    example=(
        "logs -f last",
        "logs digits-20261120-7f3a --tail 100",
        "logs digits-20261120-7f3a --stream stderr > errors.txt",
    ),
)
@job_argument
@option("--follow", "-f", is_flag=True, heading="What", help="Go on until the job has ended.")
@option(
    "--stream",
    type=click.Choice((*STREAMS, "both")),
    default="both",
    heading="What",
    help="Which stream [both].",
)
@option(
    "--tail",
    type=Parsed("number", lambda text: parse_count(text, "The number of lines", 0)),
    metavar="N",
    heading="What",
    help="Only the last N lines of each stream.",
)
@option(
    "--offset",
    type=Parsed("offset", _number),
    metavar="N",
    heading="What",
    help="Begin at byte N; negative: from the end.",
)
@option(
    "--bytes",
    "limit",
    type=Parsed("offset", _number),
    metavar="N",
    heading="What",
    help="At most N bytes of each stream.",
)
@profile_option
@backend_option
@click.pass_context
def logs(
    ctx: click.Context,
    /,
    job: str,
    follow: bool,
    stream: str,
    tail: int | None,
    offset: int | None,
    limit: int | None,
    profile: str | None,
    backend: str | None,
) -> Outcome:
    """Print a job's log, while it runs and after.

    On a terminal, control sequences other than colours are left out; into a file or a pipe the
    bytes go as they are. The job's stdout goes to stdout and its stderr to stderr.
    """
    _check(follow, tail, offset, limit)
    mouth = ctx.find_object(Mouth) or Mouth()
    session = mouth.session(mouth.config({"profile": profile, "backend": backend}))
    found = session.job(job)
    streams = STREAMS if stream == "both" else (stream,)
    starts = {name: _start(found, name, tail, offset) for name in streams}
    if follow:
        return _follow(found, mouth, starts)
    pieces = (
        chunk for name in streams for chunk in _read(found, name, starts[name], limit, tail, offset)
    )
    if mouth.kind == "cli" and not ctx.meta[AS_JSON]:
        for chunk in pieces:
            mouth.write(chunk.data, chunk.stream)
        return Outcome()
    return _kept(found, pieces, starts)


def _check(follow: bool, tail: int | None, offset: int | None, limit: int | None) -> None:
    if tail is not None and (offset is not None or limit is not None):
        raise UsageError("--tail and --offset or --bytes exclude each other.", "Give one of them.")
    if follow and limit is not None:
        raise UsageError("--follow and --bytes exclude each other.", "Give one of them.")
    if limit is not None and limit < 0:
        raise UsageError("--bytes must not be negative.", "Write a number of bytes.")


def _start(job: Job, stream: str, tail: int | None, offset: int | None) -> int:
    """The offset of the first byte to show."""
    if tail is None:
        if offset is None or offset >= 0:
            return offset or 0
        return job.log(stream, offset, 1).offset
    return _tail_offset(job, stream, tail)


def _tail_offset(job: Job, stream: str, lines: int) -> int:
    """Where the last ``lines`` lines begin; looks at 16 MiB of the end at most."""
    size = 1 << 16
    while True:
        first = job.log(stream, -size, min(size, _PIECE))
        data = first.data + b"".join(
            chunk.data for chunk in _from(job, stream, first.end, size - len(first.data))
        )
        end = first.offset + len(data)
        if lines == 0:
            return end
        place = len(data.removesuffix(b"\n"))
        for _ in range(lines):
            place = data.rfind(b"\n", 0, place)
            if place < 0:
                break
        if place >= 0:
            return first.offset + place + 1
        if first.offset == 0 or size >= MAX_TAIL_BYTES:
            return first.offset
        size *= 4


def _read(
    job: Job, stream: str, start: int, limit: int | None, tail: int | None, offset: int | None
) -> Iterator[LogChunk]:
    if limit is None and tail is None and offset is None:
        yield from job.read_log(stream)
    else:
        yield from _from(job, stream, start, limit)


def _from(job: Job, stream: str, start: int, limit: int | None) -> Iterator[LogChunk]:
    """From ``start`` to the end as it stands now, or ``limit`` bytes of it."""
    left = _MAX_OFFSET if limit is None else limit
    while left > 0:
        chunk = job.log(stream, start, min(left, _PIECE))
        if not chunk.data:
            return
        yield chunk
        start = chunk.end
        left -= len(chunk.data)


def _follow(job: Job, mouth: Mouth, starts: dict[str, int]) -> Outcome:
    offsets = {name: starts.get(name, 0) for name in STREAMS}
    try:
        for chunk in job.follow(stdout=offsets["stdout"], stderr=offsets["stderr"]):
            if chunk.stream in starts:
                mouth.write(chunk.data, chunk.stream)
    except KeyboardInterrupt:
        return Outcome(
            text=f"Stopped following; {job.id} goes on.", exit_code=INTERRUPTED, value=None
        )
    return Outcome(value={"job_id": job.id})


def _kept(job: Job, pieces: Iterator[LogChunk], starts: dict[str, int]) -> Outcome:
    """The end of the log as text, for a notebook's output and for ``--json``."""
    from submarine_jobs.display import ansi

    kept: dict[str, bytes] = dict.fromkeys(starts, b"")
    ends = dict(starts)
    for chunk in pieces:
        kept[chunk.stream] = (kept[chunk.stream] + chunk.data)[-KEEP:]
        ends[chunk.stream] = chunk.end
    value = {
        name: {
            "offset": ends[name] - len(data),
            "length": len(data),
            "text": data.decode("utf-8", "replace"),
        }
        for name, data in kept.items()
    }
    joined = b"".join(_whole_lines(data) for data in kept.values())
    text = TerminalFilter().feed(joined, final=True).rstrip("\n")
    return Outcome(
        text=text,
        html=ansi.to_html(joined.decode("utf-8", "replace")),
        value={"job_id": job.id, **value},
    )


def _whole_lines(data: bytes) -> bytes:
    return data if not data or data.endswith(b"\n") else data + b"\n"
