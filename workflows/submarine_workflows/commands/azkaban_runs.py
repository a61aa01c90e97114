"""Azkaban part of ``submarine workflow submit|status|logs|cancel|history|unschedule``.

Executions have ids ``azkaban:1234``. ``commands`` defines the options.
"""

from __future__ import annotations

import getpass
from pathlib import Path

from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend, Outcome
from submarine_jobs.text import printable
from submarine_runtime.translation import _
from submarine_workflows import notebook
from submarine_workflows.azkaban import (
    RUN_PREFIX,
    SubmitOptions,
    execution_id,
    execution_json,
    history_text,
    past_json,
    project_name,
    run_url,
    status_text,
    submit as submit_to,
    submitted_text,
)
from submarine_workflows.azkaban.api import (
    Azkaban,
    Connection,
    LogFollower,
    NoProjectError,
    SessionFile,
    Settings,
    find_password,
    load_settings,
)
from submarine_workflows.azkaban.project import executor_settings, project_of
from submarine_workflows.formats import FLOWS, open_workflow

HISTORY = 20


def submit(
    frontend: Frontend,
    file: Path,
    options: SubmitOptions,
    *,
    url: str | None = None,
    extra: tuple[str, ...] = (),
) -> Outcome:
    """Upload the workflow in ``file``; run and schedule it as requested.

    Parameters
    ----------
    url
        URL of the Azkaban server; None: that of the configuration.
    extra
        Patterns of further files to include.
    """
    settings = _settings(frontend, url)
    executor = executor_settings(settings.outputs, settings.program)
    workflow, project = project_of(file, executor, extra=extra)
    azkaban = connect(settings, frontend)
    done = submit_to(azkaban, settings, file, workflow, project, options)
    return Outcome(submitted_text(done, frontend.command), value=done.to_json())


def status(frontend: Frontend, run: str, url: str | None = None) -> Outcome:
    """Return the status of a run and its nodes."""
    azkaban = connect(_settings(frontend, url), frontend)
    execution = azkaban.execution(execution_id(run))
    value = execution_json(execution, azkaban.url)
    if frontend.kind in ("notebook", "zeppelin"):
        # The background thread cannot prompt; it uses the session that was just saved.
        again = connect(_settings(frontend, url), Frontend())
        return notebook.show_execution(again, execution, frontend, value)
    return Outcome(status_text(execution, azkaban.url), value=value)


def logs(
    frontend: Frontend,
    run: str,
    node: str = "",
    *,
    follow: bool = False,
    attempt: int | None = None,
    tail: int | None = None,
    url: str | None = None,
) -> Outcome:
    """Return the log of one node, or of all started nodes; print it as it grows with ``follow``.

    Parameters
    ----------
    attempt
        Attempt of the node, counted from 1; None: the newest.
    tail
        Maximum number of lines; not with ``follow``.
    """
    azkaban = connect(_settings(frontend, url), frontend)
    follower = LogFollower(azkaban, execution_id(run), node)
    if follow:
        for piece in follower.follow():
            frontend.write(piece.encode("utf-8", "replace"))
        return Outcome(value={"run": run, "status": follower.status})
    pieces = follower.read_current() if attempt is None else follower.attempt(attempt - 1)
    text = "".join(pieces)
    if tail is not None:
        text = "".join(text.splitlines(keepends=True)[-tail:] if tail else [])
    shown = printable(text, len(text) + 1).rstrip("\n")
    return Outcome(shown, value={"run": run, "status": follower.status, "text": text})


def cancel(frontend: Frontend, run: str, url: str | None = None) -> Outcome:
    """Kill a run: Azkaban stops its nodes, which cancel their jobs."""
    azkaban = connect(_settings(frontend, url), frontend)
    execid = execution_id(run)
    azkaban.cancel(execid)
    text = _("Azkaban kills {run}: {run_url}").format(run=run, run_url=run_url(azkaban.url, execid))
    return Outcome(text, value={"run": run, "cancelled": True})


def history(
    frontend: Frontend,
    name: str,
    count: int = HISTORY,
    *,
    project: str = "",
    url: str | None = None,
) -> Outcome:
    """Return the last runs of a workflow by name or file; ``azkaban:PROJECT/NAME`` in a project.

    Parameters
    ----------
    count
        Maximum number of runs.
    project
        Name of the project; empty: that of the name, of the configuration, or of the workflow.
    url
        URL of the Azkaban server; None: that of the configuration.
    """
    settings = _settings(frontend, url)
    azkaban = connect(settings, frontend)
    within, _, rest = name.removeprefix(RUN_PREFIX).rpartition("/")
    if within and not project and not Path(name.removeprefix(RUN_PREFIX)).exists():
        project, name = within, rest
    flow = flow_name(name)
    found = azkaban.past(project_name(project or settings.project, flow), flow, count)
    value = [past_json(one, azkaban.url) for one in found]
    return Outcome(history_text(flow, found, azkaban.url), value=value)


def unschedule(
    frontend: Frontend, name: str, *, project: str = "", url: str | None = None
) -> Outcome:
    """Remove the schedule of a workflow, by name or file.

    Parameters
    ----------
    project
        Name of the project; empty: that of the configuration, or of the workflow.
    url
        URL of the Azkaban server; None: that of the configuration.

    Raises
    ------
    UsageError
        If the project does not exist.
    """
    settings = _settings(frontend, url)
    azkaban = connect(settings, frontend)
    flow = flow_name(name)
    where = project_name(project or settings.project, flow)
    try:
        known = azkaban.flows(where)
    except NoProjectError as exc:
        raise UsageError(f"{exc.message}", _("Give its project with --project.")) from None
    found = azkaban.scheduled(known.project_id, flow)
    if found is None:
        return Outcome(
            _("{flow} of {where} has no schedule.").format(flow=flow, where=where),
            value={"removed": None},
        )
    message = azkaban.unschedule(found.schedule_id)
    return Outcome(
        _(
            "Removed schedule {schedule_id} (`{cron}`) of {flow}. Azkaban's message: {message}"
        ).format(schedule_id=found.schedule_id, cron=found.cron, flow=flow, message=message),
        value={"removed": found.schedule_id},
    )


def _settings(frontend: Frontend, url: str | None) -> Settings:
    frontend.config({})  # asks whether to trust the project's file
    return load_settings({"url": url})


def connect(settings: Settings, frontend: Frontend) -> Azkaban:
    """Return the Azkaban client of the settings; it prompts for a password only for a login."""
    ask = (lambda words: getpass.getpass(f"{words}: ")) if frontend.interactive else None
    session_file = SessionFile(frontend.config({}).profile.state_dir, settings)
    return Azkaban(Connection(settings, lambda: find_password(settings, ask), session_file))


def flow_name(text: str) -> str:
    """Return the flow of a name, with or without ``azkaban:``, or of a workflow file."""
    text = text.removeprefix(RUN_PREFIX)
    path = Path(text)
    if path.suffix in (*FLOWS, ".zip") and path.exists():
        return open_workflow(path).name
    return path.stem if path.suffix in FLOWS else text
