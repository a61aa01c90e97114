"""Report on an executed notebook: messages, exit code, JSON, outputs, notification.

All quoted text comes from a kernel and is untrusted.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbformat import NotebookNode
from papermill.exceptions import PapermillExecutionError
from papermill.execute import raise_for_execution_errors

from submarine_jobs import errors
from submarine_jobs.frontends import JOB_FAILED, SUCCESS, Outcome
from submarine_jobs.model import format_duration
from submarine_jobs.text import ansi, printable
from submarine_runtime.translation import _
from submarine_workflows.headless.document import INJECTED, code_cells
from submarine_workflows.headless.failures import job_log, notify_failure
from submarine_workflows.headless.result import RunResult, is_success
from submarine_workflows.locations import write_by_rename

if TYPE_CHECKING:
    from submarine_jobs.commands.run import NotebookRun
    from submarine_jobs.frontends import Frontend

#: Azkaban's variable for the file with the outputs of a node.
OUTPUTS = "JOB_OUTPUT_PROP_FILE"
#: Papermill's exit code for a dead kernel.
KERNEL_DIED = 138
_MAX_LINES = 40
_UNKNOWN_MAGIC = re.compile(r"magic function `%+submarine` not found")
_NOT_LOADED = _(
    "%submarine is not loaded. Add %load_ext submarine_magics in a cell before it, or use the "
    "kernel of `submarine kernel install` (--kernel submarine)."
)


def mark_errors(notebook: NotebookNode) -> None:
    """Add papermill's error markers above the first error and at the top."""
    with suppress(PapermillExecutionError):
        raise_for_execution_errors(notebook, None)


@dataclass(frozen=True)
class _Error:
    cell: str
    ename: str
    evalue: str
    traceback: list[str]
    job_log: list[str]


class Report:
    """Report on one run.

    Parameters
    ----------
    source, target
        Locations of the notebook and of its output.
    parameters
        Parameters given to the run.
    stopped
        Returns whether the run was stopped.
    """

    def __init__(
        self,
        source: str,
        target: str,
        notebook: NotebookNode,
        result: RunResult,
        seconds: float,
        parameters: Mapping[str, Any] | None = None,
        stopped: Callable[[], object] = lambda: False,
    ) -> None:
        self._source = source
        self._target = target
        self._notebook = notebook
        self._result = result
        self._seconds = seconds
        self._parameters = parameters
        self._stopped = stopped
        self._errors = list(_errors(notebook))

    def outcome(self, frontend: Frontend, request: NotebookRun) -> Outcome:
        """Print messages, send the notification, and return the result of the command."""
        problem = self._write_values(request.return_names)
        code = self.exit_code or (JOB_FAILED if problem else SUCCESS)
        reason = self.reason or problem
        if code != SUCCESS:
            for line in [*self._log(), f"{printable(self._source, 200)}: {reason}"]:
                frontend.say(line)
            self._notify(frontend, request, reason)
        elif self._result.skipped_cells:
            cells = "cell" if self._result.skipped_cells == 1 else "cells"
            frontend.say(
                _(
                    "{source}: a cell called sys.exit(), so the last {count} code {cells} did not "
                    "run."
                ).format(
                    source=printable(self._source, 200),
                    count=self._result.skipped_cells,
                    cells=cells,
                )
            )
        took = format_duration(max(round(self._seconds), 1))
        text = f"{printable(self._target, 1000)}    {self._outcome_words(code)} {took}"
        if code != SUCCESS:
            text += f": {reason}"  # the last line of a scheduler's log must contain the failure
        return Outcome(text, value=self._value(code, reason), exit_code=code)

    @property
    def exit_code(self) -> int:
        """0, 1 for a failed cell or job, 3 for an unreachable cluster or location, 124, 128 + n."""
        if self._result.stop is not None:
            return self._result.stop.exit_code
        if isinstance(self._result.error, DeadKernelError):
            return KERNEL_DIED
        if self._errors:
            return max(_exit_code_of(error.ename) for error in self._errors)
        if self._result.error is not None:
            return JOB_FAILED
        return SUCCESS if self._result.save_error is None else errors.ClusterError.exit_code

    @property
    def reason(self) -> str:
        """Why the run failed, in one or two sentences; empty if it succeeded."""
        save_error, failure = self._result.save_error, self._failure()
        if save_error is None:
            return failure
        kept = printable(str(save_error), 1000)
        return f"{failure.rstrip('.')}. {kept}" if failure else kept

    def _failure(self) -> str:
        result = self._result
        if result.stop is not None:
            going = ", ".join(result.jobs.detached[:5])
            return result.stop.why + (
                _(" These jobs continue: {going}.").format(going=going) if going else ""
            )
        if isinstance(result.error, DeadKernelError):
            return _("The kernel died, possibly because it ran out of memory.")
        if self._errors:
            first = self._errors[0]
            what = f"{first.ename}: {first.evalue}" if first.evalue else first.ename
            return _("Cell {cell} failed: {what}").format(
                cell=first.cell, what=printable(" ".join(what.split()), 500)
            )
        if isinstance(result.error, CellExecutionError):  # some errors have no output
            message = " ".join(ansi.to_text(str(result.error)).split())
            return _("A cell failed: ") + (
                _NOT_LOADED if _UNKNOWN_MAGIC.search(message) else printable(message[-500:], 500)
            )
        return "" if result.error is None else printable(str(result.error), 500)

    def _log(self) -> list[str]:
        """Return the last lines of the first error, for a terminal or log.

        If the error has one line only, as for a shell command, the last log lines of the job
        precede it.
        """
        first = self._errors[0] if self._errors else None
        lines = first.traceback if first else []
        plain = ansi.to_text("\n".join(lines)).split("\n") if lines else []
        if first and len(plain) == 1:
            plain = [*first.job_log, *plain]
        return [printable(line, 500) for line in plain[-_MAX_LINES:]]

    def _value(self, code: int, reason: str) -> Mapping[str, Any]:
        return {
            "notebook": self._source,
            "output": self._target,
            "exit_code": code,
            "reason": reason,
            "seconds": round(self._seconds, 3),
            "errors": [
                {"cell": error.cell, "ename": error.ename, "evalue": error.evalue}
                for error in self._errors
            ],
            "failed_jobs": self._failed_jobs(),
            "detached_jobs": self._result.jobs.detached,
            "returned": self._result.returned.values,
        }

    def _failed_jobs(self) -> list[str]:
        return [printable(str(item.get("job_id", "")), 200) for item in self._result.jobs.failed]

    def _write_values(self, names: tuple[str, ...]) -> str:
        """Write the requested values for a scheduler; return why it failed, or an empty string."""
        returned, location = self._result.returned, os.environ.get(OUTPUTS)
        if self.exit_code != SUCCESS or not names:
            return ""
        if returned.missing:
            which = ", ".join(printable(name, 60) for name in returned.missing)
            return _("The notebook has no variable {which} at its end (--return).").format(
                which=which
            )
        if returned.unencodable:
            which = ", ".join(printable(name, 60) for name in returned.unencodable)
            return _("The value of {which} cannot be encoded as JSON (--return).").format(
                which=which
            )
        if not location:
            return ""
        plain = {name: _property_value(value) for name, value in returned.values.items()}
        try:
            write_by_rename(Path(location), json.dumps(plain, sort_keys=True).encode())
        except OSError as error:
            return _("{outputs} names {location}, which cannot be written: {strerror}.").format(
                outputs=OUTPUTS, location=location, strerror=error.strerror or error
            )
        return ""

    def _notify(self, frontend: Frontend, request: NotebookRun, reason: str) -> None:
        notify_failure(
            request,
            frontend,
            reason,
            state="KILLED" if self._result.stop is not None else "FAILED",
            output=self._target,
            log=self._log(),
            jobs=self._failed_jobs(),
            parameters=self._parameters,
            stopped=self._stopped,
        )

    def _outcome_words(self, code: int) -> str:
        if self._result.save_error is not None:
            return _("was not saved there; the run ended after")
        if self._result.stop is not None:
            return _("ended after")
        return _("executed in") if code == SUCCESS else _("failed after")


def _errors(notebook: NotebookNode) -> Any:
    for number, cell in enumerate(code_cells(notebook), start=1):
        count = cell.execution_count
        label = f"[{count}]" if count is not None else f"#{number}"
        label += " (parameters)" if cell.get("id") == INJECTED else ""
        found = [output for output in cell.outputs if output.output_type == "error"]
        if found and not is_success(found[0].ename, found[0].evalue):
            traceback = list(found[0].traceback)
            yield _Error(label, found[0].ename, found[0].evalue, traceback, job_log(cell))


def _exit_code_of(ename: str) -> int:
    """Return 3 if the error means that the cluster is unreachable, else 1."""
    kind: Any = getattr(errors, ename, None)
    of_cluster = isinstance(kind, type) and issubclass(kind, errors.ClusterError)
    return errors.ClusterError.exit_code if of_cluster else JOB_FAILED


def _property_value(value: Any) -> Any:
    """Return a value that Azkaban can store as a property: text, a number or a boolean."""
    return value if isinstance(value, str | int | float | bool) else json.dumps(value)
