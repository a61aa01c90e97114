"""Wait for a job through the front end, and convert its end or an interrupt to an outcome."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from submarine_jobs import display
from submarine_jobs.errors import ClusterError, with_job
from submarine_jobs.frontends import INTERRUPTED, JOB_FAILED, SUCCESS, Frontend, Outcome
from submarine_jobs.outputs import format_results
from submarine_runtime.protocol import State
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.client import Job


def wait_for(
    job: Job, frontend: Frontend, *, on_interrupt: str = "detach", log: bool = True
) -> Outcome:
    """Wait for the end of ``job``; exit code 0, 1 when it did not succeed, 130 when interrupted."""
    with with_job(job):
        try:
            record = frontend.watch(job, on_interrupt=on_interrupt, log=log)
            view = job.view()
        except KeyboardInterrupt:
            return Outcome(text=_left(job, frontend, on_interrupt), exit_code=INTERRUPTED, job=job)
        except ClusterError as error:
            again = _("The job goes on: `{command} wait {job}` waits again.").format(
                command=frontend.command, job=job.id
            )
            raise ClusterError(error.message, f"{error.fix} {again}".strip()) from error
    if log and frontend.kind == "cli":
        # The log was shown already.
        view = replace(view, tail="")
    result = format_results(job, view.record) if frontend.kind == "cli" else {}
    succeeded = record.state is State.SUCCEEDED
    return Outcome(
        text=display.text(view, command=frontend.command, result=result),
        html=display.html(view),
        value=record.to_json(),
        exit_code=SUCCESS if succeeded else JOB_FAILED,
        job=job,
    )


def _left(job: Job, frontend: Frontend, on_interrupt: str) -> str:
    if on_interrupt == "cancel":
        # Done already where the wait itself was interrupted, not just before or after it.
        state = job.cancel("interrupted").state
        if state is State.CANCELLED:
            return _("Interrupted: {job} was cancelled.").format(job=job.id)
        if state.ended:
            return _("Interrupted: {job} had ended before: {state}.").format(
                job=job.id, state=state.value
            )
        return _("Interrupted: {job} has been told to end and is still {state}.").format(
            job=job.id, state=state.value
        )
    return _(
        "Stopped waiting; {job} goes on.\n  {command} wait {job}      wait again\n  {command} "
        "cancel {job}    end it"
    ).format(job=job.id, command=frontend.command)
