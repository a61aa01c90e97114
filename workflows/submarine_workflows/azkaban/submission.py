"""A workflow goes to an Azkaban: project, upload, and if asked for schedule and run.

All that can be refused here is refused before anything is sent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from submarine_jobs.errors import UsageError
from submarine_workflows.azkaban.api import (
    Azkaban,
    AzkabanError,
    NoProjectError,
    Settings,
    Started,
    UnsureError,
    options_of,
    parameters_of,
)
from submarine_workflows.azkaban.project import (
    Project,
    digest,
    has_trigger,
    looks_secret,
    unfit_value,
)
from submarine_workflows.azkaban.run_ids import RUN_PREFIX
from submarine_workflows.azkaban.server_zone import for_server
from submarine_workflows.model import Workflow

#: ``ProjectManager.createProject``.
_NAME = re.compile(r"[a-zA-Z][a-zA-Z_0-9-]*")
_LONGEST = 64


@dataclass(frozen=True)
class Wishes:
    """What a person asks for.

    Attributes
    ----------
    project
        Name of the project; empty: that of the settings, else of the workflow.
    replace
        Let flows go that the project has and this upload has not.
    parameters
        Flow parameters of the run and of each scheduled run.
    """

    project: str = ""
    run: bool = False
    schedule: bool = False
    replace: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)
    failure_action: str = ""
    concurrent: str = ""


@dataclass(frozen=True)
class Submitted:
    """What was done, with the addresses of its pages.

    Attributes
    ----------
    run
        ``azkaban:1234``; empty: nothing was started.
    triggered
        The flow has a trigger of its own.
    """

    project: str
    project_id: int
    flow: str
    version: str
    created: bool
    digest: str
    url: str
    warning: str = ""
    schedule_id: int | None = None
    cron: str = ""
    next_run: str = ""
    run: str = ""
    run_url: str = ""
    message: str = ""
    triggered: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return dict(vars(self))


def submit(
    azkaban: Azkaban,
    settings: Settings,
    file: Path,
    workflow: Workflow,
    made: Project,
    wishes: Wishes,
) -> Submitted:
    """Put the project on Azkaban, and schedule and start its flow as wished.

    Raises
    ------
    UsageError
        If a name or schedule cannot be used there; nothing was sent.
    AzkabanError, UnreachableError
        If Azkaban says no or does not answer; what was done before stays done.
    """
    name = project_name(wishes.project or settings.project, made.name)
    _check_parameters(wishes.parameters, made)
    cron = _cron(file, workflow, settings) if wishes.schedule else ""
    if len(made.flows) != 1 and (wishes.run or wishes.schedule):
        raise UsageError(
            f"{file} has {len(made.flows)} flows: {', '.join(made.flows[:10])}.",
            "Upload it without --run and --schedule, and start them one by one.",
        )
    created = _project(azkaban, name, workflow, made, replace=wishes.replace)
    packed = made.to_zip()
    uploaded = azkaban.upload(name, packed, f"{made.name}.zip")
    flow = made.flows[0] if made.flows else ""
    told: dict[str, Any] = {"triggered": has_trigger(file)}
    own = "failure.action" in workflow.config
    options = options_of(wishes.failure_action, wishes.concurrent, over_flow=own)
    if cron:
        given = {**parameters_of(wishes.parameters), **options}
        told["schedule_id"] = azkaban.schedule(name, flow, cron, **given)
        found = azkaban.scheduled(uploaded.project_id, flow)
        told |= {"cron": cron, "next_run": found.next_run if found else ""}
    if wishes.run:
        started = start(azkaban, name, flow, wishes.parameters, options)
        told |= {
            "run": f"{RUN_PREFIX}{started.execid}",
            "run_url": run_url(azkaban.url, started.execid),
            "message": started.message,
        }
    url = f"{azkaban.url}/manager?{urlencode({'project': name})}"
    return Submitted(
        name, uploaded.project_id, flow, uploaded.version, created, digest(packed), url,
        uploaded.warning, **told,
    )  # fmt: skip


def start(
    azkaban: Azkaban,
    project: str,
    flow: str,
    parameters: Mapping[str, str] | None = None,
    options: Mapping[str, str] | None = None,
) -> Started:
    """Start a flow once; where no answer came, say what runs instead of asking again."""
    try:
        return azkaban.execute(project, flow, parameters, **(options or {}))
    except UnsureError as exc:
        try:
            running = azkaban.running(project, flow)
        except Exception:
            raise exc from None
        found = ", ".join(f"{RUN_PREFIX}{one}" for one in running)
        raise UnsureError(
            f"{exc.message} {flow} runs as {found} now." if running
            else f"{exc.message} No execution of {flow} runs now.",
            "It was not asked for again, so that it does not run twice.",
        ) from None  # fmt: skip


def project_name(named: str, made: str) -> str:
    """The project's name; one that nobody chose is made fit.

    Raises
    ------
    UsageError
        If the chosen one is none for Azkaban.
    """
    if named:
        if not _NAME.fullmatch(named):
            raise UsageError(
                f"{named} is no name of a project: it begins with a letter and has letters, "
                "digits, `-` and `_`."
            )
        if len(named) > _LONGEST:
            raise UsageError(
                f"{named} is too long for a project's name: Azkaban keeps {_LONGEST} characters, "
                f"and it has {len(named)}."
            )
        return named
    fit = re.sub(r"[^a-zA-Z_0-9-]", "-", made)
    fit = fit if _NAME.fullmatch(fit) else f"flow-{fit}"
    if len(fit) > _LONGEST:
        raise UsageError(
            f"The project would be named like the workflow, {fit}, and Azkaban keeps {_LONGEST} "
            "characters of a project's name.",
            "Give it a shorter one by --project.",
        )
    return fit


def run_url(url: str, execid: int, node: str = "") -> str:
    """The page of an execution, or of one of its nodes."""
    return f"{url}/executor?execid={execid}" + (f"&job={quote(node)}" if node else "")


def _check_parameters(parameters: Mapping[str, str], made: Project) -> None:
    texts = [text for name, text in made.files.items() if name.endswith(".flow")]
    text = b"".join(texts).decode("utf-8", "replace")
    for name, value in parameters.items():
        used = f"${{{name}}}" in text
        if used and (why := unfit_value(value)) is not None:
            raise UsageError(f"The value of the parameter {name} {why}.")
        if what := looks_secret(name, value):
            raise UsageError(
                f"The parameter {name} looks like {what}, and Azkaban shows and logs every value.",
                "Keep it in a file on the executor's host, and give its path.",
            )


def _cron(file: Path, workflow: Workflow, settings: Settings) -> str:
    if has_trigger(file):
        raise UsageError(
            f"{workflow.name} has a `trigger:`, by which Azkaban schedules it itself.",
            "Leave --schedule out, or the trigger.",
        )
    if not workflow.schedule:
        raise UsageError(
            f"{workflow.name} has no schedule.",
            'Write one at its top, `schedule: "0 30 2 ? * *"`, or leave --schedule out.',
        )
    return for_server(workflow.schedule, workflow.timezone, settings.timezone)


def _project(
    azkaban: Azkaban, name: str, workflow: Workflow, made: Project, *, replace: bool
) -> bool:
    """The project is there, and loses no flow that somebody did not mean; whether it is new."""
    try:
        known = azkaban.flows(name).flows
    except NoProjectError as missing:
        described = f"The workflow {workflow.name}, submitted by submarine"
        if not azkaban.create(name, described):
            # It is there and cannot be listed: what the listing said is what is wrong.
            raise AzkabanError(missing.message) from None
        return True
    gone = sorted(set(known) - set(made.flows))
    if gone and not replace:
        raise UsageError(
            f"The project {name} has flows that this upload would take away, with their "
            f"schedules: {', '.join(gone[:10])}.",
            "Give a project of its own by --project, or --replace if that is meant.",
        )
    return False
