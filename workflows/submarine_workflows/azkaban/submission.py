"""Submit a workflow to Azkaban: project, upload, and optionally schedule and run.

All local checks precede the first request.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from submarine_jobs.errors import UsageError
from submarine_runtime.translation import _
from submarine_workflows.azkaban.api import (
    Azkaban,
    AzkabanError,
    NoProjectError,
    Settings,
    StartResult,
    UnconfirmedError,
    options_of,
    parameters_of,
)
from submarine_workflows.azkaban.project import (
    Project,
    digest,
    has_trigger,
    secret_kind,
    unsupported_value,
)
from submarine_workflows.azkaban.run_ids import RUN_PREFIX
from submarine_workflows.azkaban.server_zone import to_server_zone
from submarine_workflows.model import Workflow

#: ``ProjectManager.createProject``.
_NAME = re.compile(r"[a-zA-Z][a-zA-Z_0-9-]*")
_MAX_NAME = 64


@dataclass(frozen=True)
class SubmitOptions:
    """Options of a submit.

    Attributes
    ----------
    project
        Name of the project; empty: that of the settings, else of the workflow.
    replace
        Remove flows of the project that this upload does not contain.
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
class SubmitResult:
    """Result of a submit, with the URLs of its pages.

    Attributes
    ----------
    run
        ``azkaban:1234``; empty if nothing was started.
    triggered
        Whether the flow has its own trigger.
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
        """Return plain values."""
        return dict(vars(self))


def submit(
    azkaban: Azkaban,
    settings: Settings,
    file: Path,
    workflow: Workflow,
    built: Project,
    options: SubmitOptions,
) -> SubmitResult:
    """Upload the project to Azkaban, and schedule and start its flow as requested.

    Raises
    ------
    UsageError
        If a name or schedule is invalid for Azkaban; nothing was sent.
    AzkabanError, UnreachableError
        If Azkaban refuses or does not answer; completed steps are not undone.
    """
    name = project_name(options.project or settings.project, built.name)
    _check_parameters(options.parameters, built)
    cron = _cron(file, workflow, settings) if options.schedule else ""
    if len(built.flows) != 1 and (options.run or options.schedule):
        raise UsageError(
            _("{file} has {count} flows: {flows}.").format(
                file=file, count=len(built.flows), flows=", ".join(built.flows[:10])
            ),
            _("Upload it without --run and --schedule, and start them one by one."),
        )
    created = _project(azkaban, name, workflow, built, replace=options.replace)
    packed = built.to_zip()
    uploaded = azkaban.upload(name, packed, f"{built.name}.zip")
    flow = built.flows[0] if built.flows else ""
    values: dict[str, Any] = {"triggered": has_trigger(file)}
    own = "failure.action" in workflow.config
    execution_options = options_of(options.failure_action, options.concurrent, over_flow=own)
    if cron:
        fields = {**parameters_of(options.parameters), **execution_options}
        values["schedule_id"] = azkaban.schedule(name, flow, cron, **fields)
        found = azkaban.scheduled(uploaded.project_id, flow)
        values |= {"cron": cron, "next_run": found.next_run if found else ""}
    if options.run:
        started = start(azkaban, name, flow, options.parameters, execution_options)
        values |= {
            "run": f"{RUN_PREFIX}{started.execid}",
            "run_url": run_url(azkaban.url, started.execid),
            "message": started.message,
        }
    url = f"{azkaban.url}/manager?{urlencode({'project': name})}"
    return SubmitResult(
        name, uploaded.project_id, flow, uploaded.version, created, digest(packed), url,
        uploaded.warning, **values,
    )  # fmt: skip


def start(
    azkaban: Azkaban,
    project: str,
    flow: str,
    parameters: Mapping[str, str] | None = None,
    options: Mapping[str, str] | None = None,
) -> StartResult:
    """Start a flow once; without an answer, report running executions instead of repeating it.

    Parameters
    ----------
    parameters
        Flow parameters by name.
    options
        Result of ``options_of``.

    Raises
    ------
    UnconfirmedError
        If no answer was received; the message contains the running executions of the flow.
    AzkabanError
        If Azkaban refuses the request.
    """
    try:
        return azkaban.execute(project, flow, parameters, **(options or {}))
    except UnconfirmedError as exc:
        try:
            running = azkaban.running(project, flow)
        except Exception:
            raise exc from None
        found = ", ".join(f"{RUN_PREFIX}{one}" for one in running)
        raise UnconfirmedError(
            _("{message} {flow} is running as {found}.").format(
                message=exc.message, flow=flow, found=found
            )
            if running
            else _("{message} No execution of {flow} is running.").format(
                message=exc.message, flow=flow
            ),
            _("The request was not repeated, so that it does not run twice."),
        ) from None


def project_name(named: str, default: str) -> str:
    """Return the project's name; a default name is converted to a valid one.

    Raises
    ------
    UsageError
        If the given name is invalid for Azkaban.
    """
    if named:
        if not _NAME.fullmatch(named):
            raise UsageError(
                _(
                    "{named} is not a valid project name: use letters, digits, `-` and `_`, "
                    "starting with a letter."
                ).format(named=named)
            )
        if len(named) > _MAX_NAME:
            raise UsageError(
                _(
                    "{named} is too long for a project name: it has {count} characters, and "
                    "Azkaban allows {longest}."
                ).format(named=named, count=len(named), longest=_MAX_NAME)
            )
        return named
    fit = re.sub(r"[^a-zA-Z_0-9-]", "-", default)
    fit = fit if _NAME.fullmatch(fit) else f"flow-{fit}"
    if len(fit) > _MAX_NAME:
        raise UsageError(
            _(
                "The workflow's name {fit} is too long for a project: Azkaban allows {longest} "
                "characters."
            ).format(fit=fit, longest=_MAX_NAME),
            _("Give a shorter name with --project."),
        )
    return fit


def run_url(url: str, execid: int, node: str = "") -> str:
    """Return the URL of an execution, or of one of its nodes."""
    return f"{url}/executor?execid={execid}" + (f"&job={quote(node)}" if node else "")


def _check_parameters(parameters: Mapping[str, str], built: Project) -> None:
    texts = [text for name, text in built.files.items() if name.endswith(".flow")]
    text = b"".join(texts).decode("utf-8", "replace")
    for name, value in parameters.items():
        used = f"${{{name}}}" in text
        if used and (why := unsupported_value(value)) is not None:
            raise UsageError(
                _("The value of the parameter {name} {why}.").format(name=name, why=why)
            )
        if what := secret_kind(name, value):
            raise UsageError(
                _(
                    "The parameter {name} looks like {what}, and Azkaban shows and logs every "
                    "value."
                ).format(name=name, what=what),
                _("Keep it in a file on the executor's host, and give its path."),
            )


def _cron(file: Path, workflow: Workflow, settings: Settings) -> str:
    if has_trigger(file):
        raise UsageError(
            _("{workflow} has a `trigger:`, by which Azkaban schedules it.").format(
                workflow=workflow.name
            ),
            _("Omit --schedule or the trigger."),
        )
    if not workflow.schedule:
        raise UsageError(
            _("{workflow} has no schedule.").format(workflow=workflow.name),
            _('Add one at the top, `schedule: "0 30 2 ? * *"`, or omit --schedule.'),
        )
    return to_server_zone(workflow.schedule, workflow.timezone, settings.timezone)


def _project(
    azkaban: Azkaban, name: str, workflow: Workflow, built: Project, *, replace: bool
) -> bool:
    """Ensure that the project exists and loses no flow by accident; return whether it is new."""
    try:
        known = azkaban.flows(name).flows
    except NoProjectError as missing:
        described = _("The workflow {workflow}, submitted by submarine").format(
            workflow=workflow.name
        )
        if not azkaban.create(name, described):
            # The project exists but cannot be listed: report the error of the listing.
            raise AzkabanError(missing.message) from None
        return True
    removed = sorted(set(known) - set(built.flows))
    if removed and not replace:
        raise UsageError(
            _(
                "This upload would remove flows of the project {name} and their schedules: "
                "{removed}."
            ).format(name=name, removed=", ".join(removed[:10])),
            _("Use another project with --project, or confirm with --replace."),
        )
    return False
