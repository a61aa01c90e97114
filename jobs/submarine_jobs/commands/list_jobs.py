"""``list``: show the jobs of this user as a table."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

import click

from submarine_jobs import display
from submarine_jobs.commands.grammar import ParsedType, Verb, backend_option, option, profile_option
from submarine_jobs.errors import ClusterError, UsageError
from submarine_jobs.frontends import Frontend, Outcome
from submarine_jobs.model import parse_count
from submarine_jobs.text import duration, escape_html_line, one_line
from submarine_runtime.protocol import JobRecord, State
from submarine_runtime.translation import _

DEFAULT_LIMIT = 20
#: Maximum number of jobs that are read with a filter, and of jobs that `--all` shows.
MAX_LIMIT = 1000


def _state(text: str) -> State | str:
    word = text.strip().upper()
    if word == "ENDED" or word == "ACTIVE":
        return word
    try:
        return State(word)
    except ValueError:
        words = ", ".join(state.value for state in State)
        raise UsageError(
            _("{text!r} is not a state.").format(text=text[:40]),
            _("Choose {words}, ACTIVE or ENDED.").format(words=words),
        ) from None


@click.command(
    "list",
    cls=Verb,
    example=(
        "list",
        "list --state RUNNING",
        "list --name 'digits*' --all",
        "list --workflow nightly",
        "list --user alice",
    ),
)
@option(
    "--state",
    "states",
    multiple=True,
    type=ParsedType(
        "state", _state, choices=[*(state.value for state in State), "ACTIVE", "ENDED"]
    ),
    metavar="STATE",
    heading="Which",
    help="Only jobs in this state, ACTIVE or ENDED; repeatable.",
)
@option("--name", metavar="PATTERN", heading="Which", help="Only jobs of this name (* and ?).")
@option(
    "--workflow",
    metavar="NAME",
    heading="Which",
    help="Only jobs of this workflow's runs (* and ?).",
)
@option(
    "--workflow-run", metavar="RUN", heading="Which", help="Only jobs of this run of a workflow."
)
@option(
    "--user",
    metavar="NAME",
    heading="Which",
    help="Jobs of another user that are shared with you, in place of yours.",
)
@option(
    "--limit",
    type=ParsedType("number", lambda text: parse_count(text, _("The limit"), 1)),
    metavar="N",
    heading="Which",
    help=f"At most so many [{DEFAULT_LIMIT}].",
)
@option("--all", "everything", is_flag=True, heading="Which", help=f"Up to {MAX_LIMIT}.")
@profile_option
@backend_option
@click.pass_obj
def list_jobs(
    frontend: Frontend,
    /,
    states: tuple[State | str, ...],
    name: str | None,
    workflow: str | None,
    workflow_run: str | None,
    user: str | None,
    limit: int | None,
    everything: bool,
    profile: str | None,
    backend: str | None,
) -> Outcome:
    """List your jobs, newest first: those that this machine knows and those of the job root."""
    if everything and limit is not None:
        raise UsageError(_("--all and --limit exclude each other."), _("Give one of them."))
    session = frontend.session(frontend.config({"profile": profile, "backend": backend}))
    maximum = MAX_LIMIT if everything else min(limit or DEFAULT_LIMIT, MAX_LIMIT)
    filtered = bool(states or name or workflow or workflow_run)
    errors: list[ClusterError] = []
    count = MAX_LIMIT if filtered else maximum
    records = session.jobs_of(user, count) if user else session.jobs(count, errors.append)
    shown = [
        record
        for record in records
        if (not states or any(_matches(record.state, state) for state in states))
        and (name is None or fnmatch.fnmatchcase(record.name, name))
        and (workflow is None or fnmatch.fnmatchcase(record.workflow, workflow))
        and (workflow_run is None or record.workflow_run == workflow_run)
    ][:maximum]
    table = display.table(shown)
    waits = [
        _("{job} waits: {pending}").format(job=record.job_id, pending=one_line(record.pending))
        for record in shown
        if record.pending and not record.state.ended
    ]
    missing = [
        _("There may be more jobs: {error}").format(error=one_line(error.message))
        for error in errors
    ]
    notes = [*waits, *_last_known(shown), *missing]
    text = "\n".join([table.text, "", *notes]) if notes else table.text
    html = table.html + "".join(f"<p>{escape_html_line(line)}</p>" for line in notes)
    return Outcome(text, html, [record.to_json() for record in shown])


def _last_known(shown: Sequence[JobRecord]) -> list[str]:
    """Return a line for each cause of unconfirmed states, with the age of the newest record."""
    causes: dict[str, list[JobRecord]] = {}
    for record in shown:
        if record.last_known:
            causes.setdefault(one_line(record.detail), []).append(record)
    lines = []
    for cause, records in causes.items():
        more = _(" and {count} more").format(count=len(records) - 1) if len(records) > 1 else ""
        ages = [record.behind for record in records if record.behind is not None]
        age = _(" Seen {duration} ago.").format(duration=duration(min(ages))) if ages else ""
        lines.append(f"{records[0].job_id}{more}: {cause}{age}")
    return lines


def _matches(state: State, selected: State | str) -> bool:
    if isinstance(selected, State):
        return state is selected
    return state.ended == (selected == "ENDED")
