"""Show the outcome of a command: card, table, text or JSON. A failed command fails the cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from submarine_jobs.errors import JobFailedError, SubmarineError
from submarine_jobs.frontends import INTERRUPTED, SUCCESS, Outcome, to_json
from submarine_jobs.text import printable
from submarine_magics.execution import headless_settings
from submarine_magics.frontend.tracebacks import job_failed
from submarine_magics.jobs import KernelJobs
from submarine_runtime.protocol import State
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.access import JobHandle
    from submarine_jobs.client import Job
    from submarine_magics.cells import NotebookCells
    from submarine_magics.frontend.notebook_frontend import NotebookFrontend


class WaitInterrupted(KeyboardInterrupt):
    """Waiting for a job was interrupted. The consequence for the job has been printed."""

    def __init__(self, message: str, job: JobHandle | None = None) -> None:
        super().__init__(message)
        self.job = job

    def _render_traceback_(self) -> list[str]:
        return [f"KeyboardInterrupt: {printable(str(self))}"]


class Json:
    """Mixin for values of ``--json``: a dict or list that is displayed as JSON text."""

    def _ipython_display_(self) -> None:
        print(to_json(self))


class JsonMapping(dict[str, Any], Json):
    """A JSON object of ``--json``."""


class JsonList(list[Any], Json):
    """A JSON array of ``--json``."""


def show_outcome(outcome: Outcome, frontend: NotebookFrontend, cells: NotebookCells) -> Any:
    """Display ``outcome`` and return the value of the magic: the job, or the value of ``--json``.

    Raises
    ------
    JobFailedError
        If the command waited for a job that did not succeed, with the program's traceback.
    WaitInterrupted
        If waiting was interrupted.
    """
    jobs = KernelJobs.of(frontend.shell)
    if outcome.as_json and outcome.exit_code != INTERRUPTED:
        return _json(outcome.value)
    frontend.show_outcome(outcome)
    job = outcome.job
    if outcome.exit_code == INTERRUPTED:
        if job is not None:
            jobs.detach(job.id)
            if headless_settings(frontend.shell) is not None or job.final:
                # A headless executor accepts no updates after the end of the cell.
                frontend.displays.finish(job)
        raise WaitInterrupted(_("stopped waiting; see the output above."), job)
    if frontend.watched:
        for job_id in _waited_for(outcome):
            jobs.mark_handled(job_id)
    if outcome.exit_code == SUCCESS:
        return job
    job = job or _first_failed(outcome, jobs)
    if job is not None:
        raise job_failed(job, frontend.shell, cells)
    if frontend.watched:
        raise JobFailedError(_("A job did not succeed."), _("Its card shows the reason."))
    raise SubmarineError(_("This command did not succeed."), _("See the output above."))


def _waited_for(outcome: Outcome) -> list[str]:
    """Return the ids of the jobs that the command waited for."""
    if outcome.job is not None:
        return [outcome.job.id]
    records = outcome.value if isinstance(outcome.value, list) else []
    return [str(record["job_id"]) for record in records if "job_id" in (record or {})]


def _first_failed(outcome: Outcome, jobs: KernelJobs) -> Job | None:
    """Return the first of several jobs that did not succeed, if this kernel started it."""
    records = outcome.value if isinstance(outcome.value, list) else []
    for record in records:
        if isinstance(record, dict) and record.get("state") != State.SUCCEEDED.value:
            return jobs.find(str(record.get("job_id")))
    return None


def _json(value: Any) -> Any:
    if isinstance(value, dict):
        return JsonMapping(value)
    if isinstance(value, (list, tuple)):
        return JsonList(value)
    return value
