"""Access to a running notebook server: its address, its token, and whether it is ready.

The token is derived from the job's token, which only the job's owner can read. It is not stored.
"""

from __future__ import annotations

import http.client
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from submarine_jobs.access import tls_context
from submarine_jobs.errors import ClusterError, SubmarineError
from submarine_kernel.notebook_server.container.environment import token_of
from submarine_kernel.notebook_server.container.zeppelin import USER
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.client import Job
    from submarine_runtime.protocol import JobRecord

#: Application -> label of its link, path of its page.
LINKS = {"lab": ("JupyterLab", "/lab"), "zeppelin": ("Zeppelin", "/")}
ANSWER_SECONDS = 5.0
PAUSE = 0.5
_LINK = re.compile(r"https://(\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+):(\d{1,5})(/[A-Za-z0-9._/-]*)")


@dataclass(frozen=True)
class Endpoint:
    """Where an application listens, as parsed from a link of its job."""

    label: str
    host: str
    port: int
    page: str

    @property
    def url(self) -> str:
        """URL of the page, without the token."""
        return f"https://{self.host}:{self.port}{self.page}"


@dataclass(frozen=True)
class NotebookAccess:
    """Endpoint and token of a notebook server."""

    endpoint: Endpoint
    token: str

    def __repr__(self) -> str:
        return f"NotebookAccess({self.endpoint.url})"

    @property
    def user(self) -> str:
        """Name for the login; empty if the URL contains the token."""
        return USER if self.endpoint.label == "Zeppelin" else ""

    def url(self, base: str | None = None) -> str:
        """Return the URL of the page.

        Parameters
        ----------
        base
            Scheme, host and port of a forwarded server.
        """
        page = f"{base}{self.endpoint.page}" if base else self.endpoint.url
        return page if self.user else f"{page}?token={quote(self.token)}"


def endpoint_in(links: Mapping[str, str]) -> Endpoint | None:
    """Return the application's endpoint among a job's links; None until it is known."""
    for label, _unused in LINKS.values():
        match = _LINK.fullmatch(links.get(label, ""))
        if match is not None and 0 < int(match[2]) < 1 << 16:
            return Endpoint(label, match[1], int(match[2]), match[3])
    return None


def access_of(job: Job, record: JobRecord) -> NotebookAccess:
    """Return endpoint and token of a running notebook server.

    Raises
    ------
    SubmarineError
        If the server does not run, has no address yet, or the job's secret cannot be read.
    """
    if record.state.ended:
        raise SubmarineError(
            _("{id} has ended: {state}. {detail}")
            .format(id=job.id, state=record.state.value, detail=record.detail)
            .strip(),
            _("`submarine notebook start --from {id}` starts a server with its notebooks.").format(
                id=job.id
            ),
        )
    endpoint = endpoint_in(record.links)
    if endpoint is None:
        reason = record.pending or _("it is {state}").format(state=record.state.value)
        raise SubmarineError(
            _("{id} has no address yet: {reason}").format(id=job.id, reason=reason),
            _("Try again in a moment."),
        )
    try:
        secret = job.directory.secret()
    except (FileNotFoundError, KeyError, ValueError):
        raise SubmarineError(
            _("The secret of {id} cannot be read: only the owner of the job can.").format(id=job.id)
        ) from None
    return NotebookAccess(endpoint, token_of(secret.token))


def is_ready(job: Job, endpoint: Endpoint) -> bool:
    """Whether the application answers through the TLS listener with the job's certificate."""
    context = tls_context(job.directory.secret())
    connection = http.client.HTTPSConnection(
        endpoint.host.strip("[]"), endpoint.port, timeout=ANSWER_SECONDS, context=context
    )
    try:
        connection.request("GET", endpoint.page)
        with connection.getresponse() as answer:
            return answer.status < http.client.INTERNAL_SERVER_ERROR
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def wait_until_ready(
    job: Job, show: Callable[[str], object], patience: float = 600.0
) -> NotebookAccess:
    """Wait until the application answers.

    Parameters
    ----------
    show
        Called repeatedly with the reason of the wait.
    patience
        Seconds for the application after its container has started. The wait for the container has
        no limit.

    Raises
    ------
    SubmarineError
        If the job ends.
    ClusterError
        If the application cannot be reached from this machine.
    """
    deadline: float | None = None
    while True:
        record = job.record()
        endpoint = endpoint_in(record.links)
        if record.state.ended:
            raise SubmarineError(
                _("{id} ended before it was ready: {detail}").format(
                    id=job.id, detail=record.detail or record.state.value
                ),
                _("`submarine logs {id}` shows more.").format(id=job.id),
            )
        if endpoint is not None and is_ready(job, endpoint):
            return access_of(job, record)
        if endpoint is not None:
            deadline = deadline or time.monotonic() + patience
            if time.monotonic() > deadline:
                raise ClusterError(
                    _("{label} cannot be reached at {host}:{port} from here.").format(
                        label=endpoint.label, host=endpoint.host, port=endpoint.port
                    ),
                    _(
                        "`submarine notebook url --forward {id}` connects through the job's port."
                    ).format(id=job.id),
                )
        show(
            record.pending
            or _("{id} is {state}").format(id=job.id, state=record.state.value.lower())
        )
        time.sleep(PAUSE)
