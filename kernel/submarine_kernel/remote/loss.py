"""Whether the container of a kernel is gone, and why: asked of its job. Blocks; knows no owner."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from submarine_jobs.display import sentence
from submarine_jobs.errors import SubmarineError
from submarine_kernel.remote.submission import give_up

if TYPE_CHECKING:
    from submarine_jobs.client import Job

log = logging.getLogger(__name__)


def why_gone(job: Job) -> str:
    """Why there is no container any more; empty: there may be one.

    A job whose container was replaced is ended: a coordinator makes good what is nobody's fault, a
    node that is lost or a pre-emption, but what the kernel knew does not come back with it.
    """
    try:
        view = job.view()
    except SubmarineError as error:
        log.debug("job %s cannot be looked at: %s", job.id, error)
        return ""
    if view.record.state.ended:
        return f"The container of the kernel is gone. {sentence(view)}"
    for task in view.record.tasks:
        if task.restarts:
            give_up(job, "its kernel is lost")
            return f"The container of the kernel is gone. {task.detail}".strip()
    return ""
