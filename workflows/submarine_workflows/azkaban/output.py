"""Text and JSON of Azkaban executions."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from submarine_jobs.text import duration, one_line
from submarine_runtime.translation import _
from submarine_workflows.azkaban.api import Execution, ExecutionSummary, NodeExecution
from submarine_workflows.azkaban.run_ids import RUN_PREFIX
from submarine_workflows.azkaban.submission import SubmitResult, run_url


def submitted_text(done: SubmitResult, command: str) -> str:
    """Return what a submit did, with ids and URLs."""
    action = _("Created the project and uploaded") if done.created else "Uploaded"
    version = _("version {version} of {project}").format(
        version=one_line(done.version), project=done.project
    )
    lines = [
        _("{action} {flow} as {version}: {url}").format(
            action=action, flow=one_line(done.flow), version=version, url=done.url
        )
    ]
    if done.warning:
        lines.append(_("Azkaban's warning: {warning}").format(warning=done.warning))
    if done.schedule_id is not None:
        following = (
            _(", next at {next_run}").format(next_run=one_line(done.next_run))
            if done.next_run
            else ""
        )
        lines.append(
            _("Scheduled as {schedule_id}: `{cron}` in the server's time zone{following}.").format(
                schedule_id=done.schedule_id, cron=done.cron, following=following
            )
        )
    if done.run:
        lines.append(_("Running as {run}: {run_url}").format(run=done.run, run_url=done.run_url))
        if done.message:
            lines.append(_("Azkaban's message: {message}").format(message=done.message))
        lines.append(
            _("Show it with `{command} workflow status {run}`.").format(
                command=command, run=done.run
            )
        )
    elif done.triggered:
        lines.append(_("Nothing was started; the `trigger:` of the flow schedules it."))
    elif done.schedule_id is None:
        lines.append(
            _("Nothing was started or scheduled: use --run to start it, --schedule to schedule it.")
        )
    return "\n".join(lines)


def status_text(execution: Execution, url: str) -> str:
    """Return an execution with one line per node."""
    head = f"{RUN_PREFIX}{execution.execid} {execution.flow} {execution.status}"
    times = _duration(execution.started, execution.ended)
    lines = [one_line(f"{head}{f', {times}' if times else ''}"), run_url(url, execution.execid)]
    nodes = list(execution.walk())
    wide = min(max((len(node.path) for node in nodes), default=0), 60)
    for node in nodes:
        again = _("attempt {attempt}").format(attempt=node.attempt + 1) if node.attempt else ""
        rest = "  ".join(word for word in (_duration(node.started, node.ended), again) if word)
        lines.append(f"  {one_line(node.path):<{wide}}  {node.status:<16}  {rest}".rstrip())
    return "\n".join(lines)


def history_text(name: str, found: list[ExecutionSummary], url: str) -> str:
    """Return one line per past execution."""
    if not found:
        return _("Azkaban has no execution of {name}.").format(name=name)
    lines = []
    for one in found:
        when = _local_time(one.started or one.submitted)
        took = _duration(one.started, one.ended)
        run = f"{RUN_PREFIX}{one.execid}"
        lines.append(
            f"{run:<16} {one_line(one.status):<16} {when}  {took}  {one_line(one.user)}".rstrip()
        )
    return "\n".join([*lines, run_url(url, found[0].execid)])


def execution_json(execution: Execution, url: str) -> dict[str, Any]:
    """Return plain values for ``--json``."""
    return {
        "run": f"{RUN_PREFIX}{execution.execid}",
        "workflow": execution.flow,
        "project": execution.project,
        "status": execution.status,
        "user": execution.user,
        "submitted": execution.submitted,
        "started": execution.started,
        "ended": execution.ended,
        "url": run_url(url, execution.execid),
        "nodes": [_node_json(node) for node in execution.walk()],
    }


def past_json(one: ExecutionSummary, url: str) -> dict[str, Any]:
    """Return plain values for ``--json``."""
    return {**vars(one), "run": f"{RUN_PREFIX}{one.execid}", "url": run_url(url, one.execid)}


def _node_json(node: NodeExecution) -> dict[str, Any]:
    return {
        "path": node.path,
        "status": node.status,
        "type": node.type,
        "attempt": node.attempt,
        "started": node.started,
        "ended": node.ended,
        "depends_on": list(node.depends_on),
    }


def _duration(started: float | None, ended: float | None) -> str:
    if started is None:
        return ""
    return (
        _("since {started}").format(started=_local_time(started))
        if ended is None
        else duration(ended - started)
    )


def _local_time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M:%S")
