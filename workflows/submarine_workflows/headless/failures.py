"""Failures of a run: the reason in one line, the log of a failed job, the notification.

Executed notebooks are untrusted input.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from submarine_jobs.display import MIME_TYPE
from submarine_jobs.model import WorkflowOrigin
from submarine_jobs.text import ansi, printable
from submarine_runtime.translation import _
from submarine_workflows.locations import is_url, without_password
from submarine_workflows.notifications import Notice, notify

if TYPE_CHECKING:
    from nbformat import NotebookNode

    from submarine_jobs.commands.run import NotebookRun
    from submarine_jobs.frontends import Frontend

MAX_MESSAGE = 1000
#: Name of the error below the last cell of a run that was stopped.
ENDED = "RunEnded"
_CARD_LOG = re.compile(r"^  Log[^\n]*:\n((?:  \|[^\n]*\n?)+)", re.M)
_SECRET_NAME = re.compile(r"passw|secret|token|credential|api_?key|access_?key", re.I)


def why_failed(output: Path, code: int, output_text: str = "") -> str:
    """Return one line on why the run of a notebook failed, sanitized for display.

    Parameters
    ----------
    output
        The executed notebook; may be incomplete.
    code
        Exit code of the run; negative for a signal.
    output_text
        Output of its process, used if the notebook contains no error.
    """
    found = ""
    try:
        cells = json.loads(output.read_text(encoding="utf-8"))["cells"]
        for cell in cells:
            for shown in cell.get("outputs") or ():
                if shown.get("output_type") == "error":
                    number = cell.get("execution_count") or " "
                    text = _("Cell [{number}]: {ename}: {evalue}").format(
                        number=number, ename=shown["ename"], evalue=shown["evalue"]
                    )
                    if shown["ename"] == ENDED:  # the error of the cell itself is a consequence
                        found = text
                    found = found or text
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        pass  # the output is missing or incomplete
    if found:
        return printable(ansi.to_text(found), MAX_MESSAGE)
    if output_text:
        return printable(ansi.to_text(output_text), MAX_MESSAGE)
    if code < 0:
        return _("The notebook's run was killed by signal {code}.").format(code=-code)
    return _("The notebook's run ended with exit code {code}; the server's log has more.").format(
        code=code
    )


def notify_failure(
    request: NotebookRun,
    frontend: Frontend,
    reason: str,
    *,
    state: str = "FAILED",
    output: str = "",
    log: Iterable[str] = (),
    jobs: Iterable[str] = (),
    parameters: Mapping[str, Any] | None = None,
    stopped: Callable[[], object] = lambda: False,
) -> None:
    """Call the command of ``--notify``, if there is one; no exception is raised.

    Parameters
    ----------
    output
        Location of the executed notebook; sent as an absolute path.
    parameters
        Parameters of the notebook; values with a secret's name are masked.
    stopped
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
    notify(request.notify, notice, say=frontend.say, secrets=secrets, stopped=stopped)


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
