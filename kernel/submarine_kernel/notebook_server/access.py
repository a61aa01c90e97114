"""Reaching a notebook that runs: its address, its token, whether it is ready.

The token is made of the job's own, which only its owner can read; it is written nowhere.
"""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from submarine_jobs.access import tls_context
from submarine_jobs.errors import ClusterError, SubmarineError
from submarine_kernel.notebook_server.container.surroundings import token_of
from submarine_kernel.notebook_server.container.zeppelin import USER
from submarine_kernel.notebook_server.submission import Place, place_in

if TYPE_CHECKING:
    from submarine_jobs.client import Job
    from submarine_runtime.protocol.record import JobRecord

ANSWER_SECONDS = 5.0
PAUSE = 0.5


@dataclass(frozen=True)
class Address:
    """What a person needs to come in."""

    place: Place
    token: str

    def __repr__(self) -> str:
        return f"Address({self.place.url})"

    @property
    def user(self) -> str:
        """Name to log in with; empty where the token is enough."""
        return USER if self.place.label == "Zeppelin" else ""

    def url(self, base: str | None = None) -> str:
        """The page to open.

        Parameters
        ----------
        base
            Scheme, host and port where it is reached by another way.
        """
        page = f"{base}{self.place.page}" if base else self.place.url
        return page if self.user else f"{page}?token={quote(self.token)}"


def address_of(job: Job, record: JobRecord) -> Address:
    """The address of a notebook that runs.

    Raises
    ------
    SubmarineError
        If it does not run (any more, or yet), or has no address.
    """
    if record.state.ended:
        raise SubmarineError(
            f"{job.id} has ended: {record.state.value}. {record.detail}".strip(),
            f"`submarine notebook start --from {job.id}` goes on with its notebooks.",
        )
    place = place_in(record.links)
    if place is None:
        waits = record.pending or f"it is {record.state.value}"
        raise SubmarineError(f"{job.id} has no address yet: {waits}", "Try again in a moment.")
    try:
        secret = job.directory.secret()
    except (FileNotFoundError, KeyError, ValueError):
        raise SubmarineError(f"The secret of {job.id} cannot be read: it is its owner's.") from None
    return Address(place, token_of(secret.token))


def answers(job: Job, place: Place) -> bool:
    """Whether the application takes requests at its door, which shows the job's certificate."""
    context = tls_context(job.directory.secret())
    connection = http.client.HTTPSConnection(
        place.host.strip("[]"), place.port, timeout=ANSWER_SECONDS, context=context
    )
    try:
        connection.request("GET", place.page)
        with connection.getresponse() as answer:
            return answer.status < http.client.INTERNAL_SERVER_ERROR
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def wait_until_ready(job: Job, show: Callable[[str], object], patience: float = 600.0) -> Address:
    """Wait until the application takes requests.

    Parameters
    ----------
    show
        Told what is waited for, again and again.
    patience
        Seconds that the application may take once its container runs; for the container itself it
        is waited for ever, with the reason shown.

    Raises
    ------
    SubmarineError
        If the job ends before.
    ClusterError
        If the application cannot be reached from here.
    """
    deadline: float | None = None
    while True:
        record = job.record()
        place = place_in(record.links)
        if record.state.ended:
            raise SubmarineError(
                f"{job.id} ended before it was ready: {record.detail or record.state.value}",
                f"`submarine logs {job.id}` shows more.",
            )
        if place is not None and answers(job, place):
            return address_of(job, record)
        if place is not None:
            deadline = deadline or time.monotonic() + patience
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"{place.label} cannot be reached at {place.host}:{place.port} from here.",
                    f"`submarine notebook url --forward {job.id}` goes through the job's port.",
                )
        show(record.pending or f"{job.id} is {record.state.value.lower()}")
        time.sleep(PAUSE)
