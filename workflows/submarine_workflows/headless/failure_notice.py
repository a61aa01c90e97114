"""Notify the command of ``--notify`` of a run that failed or could not start."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from nbformat import NotebookNode

from submarine_jobs.display import MIME_TYPE
from submarine_jobs.model import WorkflowOrigin
from submarine_workflows.locations import is_url, without_password
from submarine_workflows.notifications import Notice, notify

if TYPE_CHECKING:
    from submarine_jobs.commands.run import NotebookRun
    from submarine_jobs.frontends import Frontend

_CARD_LOG = re.compile(r"^  Log[^\n]*:\n((?:  \|[^\n]*\n?)+)", re.M)
_SECRET_NAME = re.compile(r"passw|secret|token|credential|api_?key|access_?key", re.I)


def tell(
    request: NotebookRun,
    frontend: Frontend,
    reason: str,
    *,
    state: str = "FAILED",
    output: str = "",
    log: Iterable[str] = (),
    jobs: Iterable[str] = (),
    parameters: Mapping[str, Any] | None = None,
    hurried: Callable[[], object] = lambda: False,
) -> None:
    """Call the command of ``--notify``, if there is one; no exception is raised.

    Parameters
    ----------
    output
        Location of the executed notebook; sent as an absolute path.
    parameters
        Parameters of the notebook; values with a secret's name are masked.
    hurried
        Returns whether the run was stopped: the command has less time then.
    """
    if request.notify is None:
        return
    origin = WorkflowOrigin.from_environment()
    notice = Notice(
        state=state,
        reason=reason,
        link=os.path.abspath(output) if output and not is_url(output) else output,
        log="\n".join(log),
        workflow=origin.workflow,
        run=origin.run or request.run_id,
        node=origin.node,
        notebook=without_password(request.notebook),
        jobs=tuple(jobs),
    )
    typed = {name: value for name, value, _ in request.parameters}
    secrets = _secrets({**typed, **(parameters or {})})
    notify(request.notify, notice, say=frontend.say, secrets=secrets, hurried=hurried)


def job_log(cell: NotebookNode) -> list[str]:
    """Return the last log lines of the first failed job below ``cell``, from its card.

    Output of a job is untrusted text.
    """
    for output in cell.outputs:
        data = output.get("data", {})
        card = data.get(MIME_TYPE)
        if isinstance(card, dict) and card.get("state") not in (None, "SUCCEEDED"):
            found = _CARD_LOG.findall(str(data.get("text/plain", "")))
            if found:
                return [line[len("  | ") :] for line in found[-1].rstrip("\n").split("\n")]
    return []


def _secrets(parameters: Mapping[str, Any]) -> list[str]:
    named = (value for name, value in parameters.items() if _SECRET_NAME.search(name))
    return [value for value in named if isinstance(value, str)]
