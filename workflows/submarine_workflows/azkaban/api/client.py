"""Calls of Azkaban's AJAX API, one method per call.

Notes
-----
https://azkaban.readthedocs.io, "API Documentation"; replies as written by
``ProjectManagerServlet``, ``ExecutorServlet`` and ``ScheduleServlet``.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence

from submarine_runtime.translation import _
from submarine_workflows.azkaban.api.connection import Connection
from submarine_workflows.azkaban.api.errors import (
    AzkabanError,
    NoProjectError,
    UnreachableError,
    as_noun,
)
from submarine_workflows.azkaban.api.executions import (
    Execution,
    ExecutionSummary,
    FlowSchedule,
    LogPiece,
    ProjectFlows,
    StartResult,
    UploadResult,
    execution_of,
    past_of,
)
from submarine_workflows.azkaban.api.replies import number, raise_for_error, sentence

#: Bytes of a log per request.
LOG_PIECE = 256 * 1024


class Azkaban:
    """An Azkaban server, accessed as one user."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def url(self) -> str:
        """URL of the web server."""
        return self._connection.settings.url

    def create(self, name: str, description: str) -> bool:
        """Create a project; return False if it exists."""
        what = _("to create the project {name}").format(name=name)
        reply = self._connection.change(
            "/manager", what, {"action": "create"}, name=name, description=description
        )
        if "already exists" in str(reply.get("message") or reply.get("error") or ""):
            return False
        raise_for_error(reply, what)
        return True

    def upload(self, project: str, packed: bytes, name: str) -> UploadResult:
        """Upload a zip file as the next version of a project."""
        what = _("the upload of {name} to {project}").format(name=name, project=project)
        reply = self._connection.upload(
            "/manager", what, name, packed, ajax="upload", project=project
        )
        raise_for_error(reply, what)
        warning = sentence(reply["warn"]) if reply.get("warn") else ""
        return UploadResult(
            number(reply, "projectId", what), str(reply.get("version", "")), warning
        )

    def flows(self, project: str) -> ProjectFlows:
        """Return the id and flows of a project.

        Raises
        ------
        NoProjectError
            If it does not exist.
        """
        what = _("to list the flows of {project}").format(project=project)
        reply = self._connection.get("/manager", what, ajax="fetchprojectflows", project=project)
        # A reply about an existing project contains its id besides the error.
        if "error" in reply and "projectId" not in reply:
            raise NoProjectError(
                _("Azkaban refused {what}: {error}").format(
                    what=what, error=sentence(reply["error"])
                )
            )
        raise_for_error(reply, what)
        listed = reply.get("flows")
        flows = [item.get("flowId") for item in listed] if isinstance(listed, list) else []
        return ProjectFlows(number(reply, "projectId", what), tuple(str(flow) for flow in flows))

    def execute(
        self,
        project: str,
        flow: str,
        parameters: Mapping[str, str] | None = None,
        *,
        disabled: Sequence[str] = (),
        **options: str,
    ) -> StartResult:
        """Start a flow. The request is never repeated.

        Parameters
        ----------
        parameters
            Flow parameters by name.
        options
            Result of ``options_of``.

        Raises
        ------
        UnconfirmedError
            If no answer was received: the flow may have started.
        """
        what = _("to run {flow} of {project}").format(flow=flow, project=project)
        fields = {**parameters_of(parameters or {}), **options}
        if disabled:
            fields["disabled"] = json.dumps(list(disabled))
        reply = self._connection.change(
            "/executor", what, {"ajax": "executeFlow"}, project=project, flow=flow, **fields
        )
        # An error may contain the id that was reserved for the execution, or -1.
        execid = str(reply.get("execid", ""))
        if "error" in reply and execid.isdecimal():
            message = sentence(reply["error"])
            raise AzkabanError(
                _("Azkaban refused {what}: {message} Its id would have been {execid}.").format(
                    what=what, message=message, execid=execid
                )
            )
        raise_for_error(reply, what)
        words = sentence(reply["message"]) if reply.get("message") else ""
        return StartResult(number(reply, "execid", what), words)

    def execution(self, execid: int) -> Execution:
        """Return an execution and its nodes."""
        what = _("to show execution {execid}").format(execid=execid)
        reply = self._connection.get("/executor", what, ajax="fetchexecflow", execid=execid)
        return execution_of(raise_for_error(reply, what), execid)

    def log(self, execid: int, job: str, offset: int, attempt: int | None = None) -> LogPiece:
        """Return a piece of a node's log; offsets are bytes of Azkaban's file."""
        what = _("the log of {job} in execution {execid}").format(job=job, execid=execid)
        reply = self._connection.get(
            "/executor", what, ajax="fetchExecJobLogs", execid=execid, jobId=job, offset=offset,
            length=LOG_PIECE, attempt=attempt,
        )  # fmt: skip
        raise_for_error(reply, what)
        # The text is escaped for a page: & and < are entities.
        text = html.unescape(str(reply.get("data") or ""))
        begin, size = number(reply, "offset", what), number(reply, "length", what)
        return LogPiece(begin, size, text)

    def cancel(self, execid: int) -> None:
        """Kill an execution; an error if it does not run."""
        what = _("to cancel execution {execid}").format(execid=execid)
        reply = self._connection.get("/executor", what, ajax="cancelFlow", execid=execid)
        raise_for_error(reply, what)

    def schedule(self, project: str, flow: str, cron: str, **options: str) -> int:
        """Schedule a flow by a Quartz expression in the server's time zone; return the id.

        The new schedule replaces a previous one of the flow.
        """
        what = _("to schedule {flow} of {project}").format(flow=flow, project=project)
        reply = self._connection.change(
            "/schedule", what, {"ajax": "scheduleCronFlow"}, projectName=project, flow=flow,
            cronExpression=cron, **options,
        )  # fmt: skip
        raise_for_error(reply, what)
        return number(reply, "scheduleId", what)

    def scheduled(self, project_id: int, flow: str) -> FlowSchedule | None:
        """Return the schedule of a flow, or None."""
        what = _("to show the schedule of {flow}").format(flow=flow)
        reply = self._connection.get(
            "/schedule", what, ajax="fetchSchedule", projectId=project_id, flowId=flow
        )
        found = raise_for_error(reply, what).get("schedule")
        if not isinstance(found, Mapping):
            return None
        return FlowSchedule(
            number(found, "scheduleId", what),
            str(found.get("cronExpression") or ""),
            str(found.get("nextExecTime") or ""),
            str(found.get("submitUser") or ""),
        )

    def unschedule(self, schedule_id: int) -> str:
        """Remove a schedule; return Azkaban's message."""
        what = _("to remove schedule {schedule_id}").format(schedule_id=schedule_id)
        reply = self._connection.change(
            "/schedule", what, {"action": "removeSched"}, scheduleId=schedule_id
        )
        raise_for_error(reply, what)
        if str(reply.get("status", "")) != "success":
            raise UnreachableError(
                _("Azkaban's answer to {what} contains no result.").format(what=as_noun(what))
            )
        return sentence(reply.get("message") or "removed")

    def past(self, project: str, flow: str, count: int) -> list[ExecutionSummary]:
        """Return the last executions of a flow, newest first."""
        what = _("to list executions of {flow}").format(flow=flow)
        reply = self._connection.get(
            "/manager", what, ajax="fetchFlowExecutions", project=project, flow=flow, start=0,
            length=count,
        )  # fmt: skip
        return past_of(raise_for_error(reply, what))

    def running(self, project: str, flow: str) -> list[int]:
        """Return the ids of a flow's running executions."""
        what = _("to list running executions of {flow}").format(flow=flow)
        reply = self._connection.get(
            "/executor", what, ajax="getRunning", project=project, flow=flow
        )
        listed = raise_for_error(reply, what).get("execIds")
        return [int(one) for one in listed] if isinstance(listed, list) else []


def parameters_of(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return flow parameters as form fields of runs and schedules."""
    return {f"flowOverride[{key}]": value for key, value in parameters.items()}


def options_of(failure_action: str, concurrent: str, *, over_flow: bool = False) -> dict[str, str]:
    """Return form fields for failures and concurrent runs; unset options have no field.

    Parameters
    ----------
    over_flow
        Whether the flow has a ``failure.action``, which the given one must override explicitly.
    """
    fields: dict[str, str] = {}
    if failure_action:
        fields["failureAction"] = failure_action
    if failure_action and over_flow:
        fields["failureActionOverride"] = "true"
    if concurrent:
        fields["concurrentOption"] = concurrent
    if concurrent == "pipeline":
        fields["pipelineLevel"] = "1"
    return fields
