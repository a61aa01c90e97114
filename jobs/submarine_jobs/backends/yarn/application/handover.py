"""Hands one application to YARN through the driver, and settles what a lost answer leaves open.

Does not look for an application of an earlier submit, and does not make one known: ``backend``.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from submarine_jobs.backends.base import Submission
from submarine_jobs.backends.yarn.application.maker import ApplicationMaker
from submarine_jobs.backends.yarn.application.specification import Application
from submarine_jobs.backends.yarn.cluster import ResourceManager, applications as observe
from submarine_jobs.backends.yarn.driver import (
    Channel,
    Driver,
    DriverTimeoutError,
    DriverUnreachableError,
)
from submarine_jobs.errors import ClusterError, NotSubmittedError, RefusedError

#: Seconds to wait for an application to turn up after the answer to a submit was lost.
LOST_REPLY_SECONDS = 3.0


def hand_over(
    submission: Submission,
    applications: ApplicationMaker,
    driver: Driver,
    rm: ResourceManager,
    *,
    user: str,
    timeout: float,
) -> str:
    """Submit once; if the answer is lost, look for the application and try once more.

    Parameters
    ----------
    user
        Whose applications are looked through.
    timeout
        Seconds that one call of the driver may take.

    Returns
    -------
    str
        The application's id.

    Raises
    ------
    NotSubmittedError
        If nothing was submitted, since driver or file system failed before.
    RefusedError
        If YARN does not take it.
    ClusterError
        If it is not known whether YARN has taken it.
    """

    def work(spec: Application) -> Callable[[Channel], str]:
        return lambda channel: channel.submit(spec.to_json(), timeout)

    try:
        submission.on_step("Starting the connection to YARN")
        driver.channel()
        submission.on_step("Submitting the application to YARN")
        spec = applications.spec(submission)
    except ClusterError as exc:
        raise NotSubmittedError(exc.message, f"{exc.fix} Nothing was submitted.") from exc
    try:
        return driver.call(work(spec))
    except (DriverUnreachableError, DriverTimeoutError):
        pass
    except RefusedError as exc:
        if "does not exist" not in str(exc) or "/cache/" not in str(exc):
            raise
        applications.forget(submission)  # somebody emptied the cache
    found = _look_for(rm, submission.agent.job_id, user)
    return found or driver.call(work(applications.spec(submission)))


def _look_for(rm: ResourceManager, job_id: str, user: str) -> str | None:
    deadline = time.monotonic() + LOST_REPLY_SECONDS
    while True:
        app = observe.find(rm, job_id, user)
        if app is not None or time.monotonic() > deadline:
            return str(app["id"]) if app is not None else None
        time.sleep(0.3)
