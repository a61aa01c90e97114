"""Submit one application to YARN through the driver, and handle a lost response.

``backend`` looks for an application of an earlier submission and publishes the handle.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from submarine_jobs.backends.base import Submission
from submarine_jobs.backends.yarn.application.maker import ApplicationMaker
from submarine_jobs.backends.yarn.application.specification import Application
from submarine_jobs.backends.yarn.cluster import ResourceManager, find_application
from submarine_jobs.backends.yarn.driver import (
    Channel,
    Driver,
    DriverTimeoutError,
    DriverUnreachableError,
)
from submarine_jobs.errors import ClusterError, NotSubmittedError, RefusedError
from submarine_runtime.translation import _

#: Seconds to wait for an application after the response to a submission was lost.
LOST_REPLY_SECONDS = 3.0


def submit_application(
    submission: Submission,
    applications: ApplicationMaker,
    driver: Driver,
    rm: ResourceManager,
    *,
    user: str,
    timeout: float,
) -> str:
    """Submit an application; if the response is lost, look for the application and retry once.

    Parameters
    ----------
    user
        User whose applications are searched.
    timeout
        Timeout in seconds of one call to the driver.

    Returns
    -------
    str
        The application's id.

    Raises
    ------
    NotSubmittedError
        If nothing was submitted, because driver or file system failed.
    RefusedError
        If YARN refuses the application.
    ClusterError
        If it is unknown whether YARN has accepted the application.
    """

    def work(spec: Application) -> Callable[[Channel], str]:
        return lambda channel: channel.submit(spec.to_json(), timeout)

    try:
        submission.on_step(_("Starting the connection to YARN"))
        driver.channel()
        submission.on_step(_("Submitting the application to YARN"))
        spec = applications.spec(submission)
    except ClusterError as exc:
        raise NotSubmittedError(
            exc.message, _("{fix} Nothing was submitted.").format(fix=exc.fix)
        ) from exc
    try:
        return driver.call(work(spec))
    except (DriverUnreachableError, DriverTimeoutError):
        pass
    except RefusedError as exc:
        if "does not exist" not in str(exc) or "/cache/" not in str(exc):
            raise
        applications.forget(submission)  # the cache was emptied
    found = _look_for(rm, submission.agent.record.job_id, user)
    return found or driver.call(work(applications.spec(submission)))


def _look_for(rm: ResourceManager, job_id: str, user: str) -> str | None:
    deadline = time.monotonic() + LOST_REPLY_SECONDS
    while True:
        app = find_application(rm, job_id, user)
        if app is not None or time.monotonic() > deadline:
            return app.id if app is not None else None
        time.sleep(0.3)
