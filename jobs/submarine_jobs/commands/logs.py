"""``logs``: print logs of a job's tasks: whole, from an offset, the end, or live."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from submarine_jobs.commands.grammar import (
    AS_JSON,
    ParsedType,
    Verb,
    backend_option,
    job_argument,
    option,
    profile_option,
    show_foreign_owner,
)
from submarine_jobs.commands.log_output import (
    chosen_attempt,
    chosen_tasks,
    complete_tasks,
    follow_log,
    log_outcome,
    other_logs,
    start_offset,
    stream_log,
    unsaved_attempts,
)
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend, Outcome
from submarine_jobs.logs import merged, read_from
from submarine_jobs.model import parse_count
from submarine_runtime.protocol import LogKey
from submarine_runtime.protocol.layout import PROGRAM_STREAMS, STREAMS
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.access import LogChunk
    from submarine_jobs.client import Job
    from submarine_runtime.protocol import JobRecord

#: Kinds of front ends that receive a log in pieces and limit its size.
_STREAMING_FRONTENDS = ("cli", "zeppelin")
#: Values of --stream that mean several streams.
_CHOICES = {"both": PROGRAM_STREAMS, "all": STREAMS}


def _number(text: str) -> int:
    plain = text.strip()
    digits = plain.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 15:
        hint = _("Write a number of bytes; -1000 counts from the end.")
        raise UsageError(_("{text!r} is not an offset.").format(text=text[:40]), hint)
    return int(plain)


@click.command(
    "logs",
    cls=Verb,
    example=(
        "logs -f last",
        "logs digits-20261120-7f3a --tail 100",
        "logs digits-20261120-7f3a --stream stderr > errors.txt",
        "logs last --task worker:1",
        "logs -f last --all",
    ),
)
@job_argument
@option(
    "--task",
    "tasks",
    multiple=True,
    metavar="NAME",
    heading="Tasks",
    shell_complete=complete_tasks,
    help="Task such as worker:1, or all of a role; repeatable [the chief, or the only one].",
)
@option("--all", "every", is_flag=True, heading="Tasks", help="All tasks, names before the lines.")
@option(
    "--attempt",
    metavar="NAME",
    heading="Tasks",
    help="An earlier attempt of a task that was started again, such as e1-a1 [the newest].",
)
@option("--follow", "-f", is_flag=True, heading="What", help="Go on until the job has ended.")
@option(
    "--stream",
    type=click.Choice((*STREAMS, "both", "all")),
    default="all",
    heading="What",
    help="Which stream; both: stdout and stderr [all].",
)
@option(
    "--tail",
    type=ParsedType("number", lambda text: parse_count(text, _("The number of lines"), 0)),
    metavar="N",
    heading="What",
    help="Only the last N lines of each stream.",
)
@option(
    "--offset",
    type=ParsedType("offset", _number),
    metavar="N",
    heading="What",
    help="Begin at byte N; negative: from the end.",
)
@option(
    "--bytes",
    "limit",
    type=ParsedType("offset", _number),
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
    tasks: tuple[str, ...],
    every: bool,
    attempt: str | None,
    follow: bool,
    stream: str,
    tail: int | None,
    offset: int | None,
    limit: int | None,
    profile: str | None,
    backend: str | None,
) -> Outcome:
    """Print a job's log, while it runs and after.

    Of a job of several tasks it is the chief's unless --task or --all says otherwise. On a
    terminal, control sequences other than colours are left out; into a file or a pipe the bytes
    go as they are. The job's stderr goes to stderr, the other streams to stdout; "helper" has what
    runs beside the program, such as the lines that XGBoost prints through its tracker.
    """
    _check(follow, tail, offset, limit)
    frontend = ctx.find_object(Frontend) or Frontend()
    session = frontend.session(frontend.config({"profile": profile, "backend": backend}))
    found = session.job(job)
    show_foreign_owner(found, frontend)
    chosen = chosen_tasks(found, tasks, every)
    _check_attempt(attempt, chosen, follow)
    together = every or len(chosen) > 1
    record = found.record() if found.distributed else None
    if stream == "all" and not found.distributed:
        stream = "both"  # Only tasks of a gang have helpers.
    keys = _keys(found, chosen, attempt, record, _CHOICES.get(stream, (stream,)))
    as_json = bool(ctx.meta[AS_JSON])
    if not together and not as_json:
        for sentence in other_logs(found, chosen[0], keys[0].attempt or None, named=bool(tasks)):
            frontend.say(sentence)
    if attempt is None and not as_json:
        for sentence in unsaved_attempts(found, chosen, record):
            frontend.say(sentence)
    starts = {key: start_offset(found, key, tail, offset) for key in keys}
    if follow:
        return follow_log(found, frontend, keys, starts, together=together)
    whole = limit is None and tail is None and offset is None
    pieces = _pieces(found, keys, starts, limit, whole)
    if frontend.kind in _STREAMING_FRONTENDS and not as_json:
        stream_log(frontend, pieces, keys, together=together)
        return Outcome()
    return log_outcome(found, pieces, keys, starts, together=together)


def _check(follow: bool, tail: int | None, offset: int | None, limit: int | None) -> None:
    if tail is not None and (offset is not None or limit is not None):
        raise UsageError(
            _("--tail and --offset or --bytes exclude each other."), _("Give one of them.")
        )
    if follow and limit is not None:
        raise UsageError(_("--follow and --bytes exclude each other."), _("Give one of them."))
    if limit is not None and limit < 0:
        raise UsageError(_("--bytes must not be negative."), _("Write a number of bytes."))


def _check_attempt(attempt: str | None, chosen: Sequence[str], follow: bool) -> None:
    if attempt is not None and follow:
        raise UsageError(
            _("--attempt and --follow exclude each other: a log goes on in the newest attempt."),
            _("Give one of them."),
        )
    if attempt is not None and len(chosen) > 1:
        raise UsageError(_("--attempt belongs to one task."), _("Name it with --task."))


def _keys(
    job: Job,
    chosen: Sequence[str],
    attempt: str | None,
    record: JobRecord | None,
    streams: Sequence[str],
) -> list[LogKey]:
    """Return the keys of the selected logs; an empty attempt is the only or newest one."""
    keys = []
    for task in chosen:
        found = chosen_attempt(job, task, attempt, record)
        keys += [LogKey(task, found or "", stream) for stream in streams]
    return keys


def _pieces(
    job: Job, keys: Sequence[LogKey], starts: dict[LogKey, int], limit: int | None, whole: bool
) -> Iterator[LogChunk]:
    if limit is None and len(keys) > 1:
        yield from merged(job, keys, starts)
        return
    for key in keys:
        yield from read_from(job, key, 0 if whole else starts[key], limit)
