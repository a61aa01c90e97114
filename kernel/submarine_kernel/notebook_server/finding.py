"""Which notebook is meant, and where it is in words; starts and stops nothing."""

from __future__ import annotations

from submarine_jobs.client import Job
from submarine_jobs.commands.grammar import owner_as_known
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend, Outcome
from submarine_kernel.notebook_server import ROLE
from submarine_kernel.notebook_server.access import Address
from submarine_kernel.notebook_server.submission import notebook_job
from submarine_runtime.protocol.record import JobRecord

#: So many of the newest jobs are looked at.
MOST = 1000


def is_notebook(record: JobRecord) -> bool:
    """Whether a job is one of ours, by the roles that it asked for."""
    requested = record.resources.get("requested")
    asked = set(requested) if isinstance(requested, dict) else set()
    return ROLE in asked | {task.role for task in record.tasks}


def find_notebook(
    frontend: Frontend, text: str | None, profile: str | None, backend: str | None
) -> tuple[Job, JobRecord]:
    """The job that is meant: named, or the newest notebook that runs."""
    session = frontend.session(frontend.config({"profile": profile, "backend": backend}))
    if text is not None:
        job = notebook_job(session, text)
        return job, job.record()
    for record in session.jobs(MOST):
        if is_notebook(record) and not record.state.ended:
            job = session.job(record.job_id)
            if not owner_as_known(job):
                return job, job.record()
    raise UsageError(
        "No notebook runs.",
        "`submarine notebook start` starts one; `submarine notebook list --all` shows former ones.",
    )


def told(job: Job, address: Address, frontend: Frontend) -> Outcome:
    """Where it is; the token is for the person alone, not for an output that is saved."""
    facts = {"job_id": job.id, "job_dir": job.job_dir, "page": address.place.url}
    if frontend.kind == "notebook" or frontend.kind == "zeppelin":
        text = (
            f"{address.place.label} runs at {address.place.url}\n"
            f"`submarine notebook url {job.id}` in a terminal shows the link that lets you in: "
            "an output of a notebook is no place for it."
        )
        return Outcome(text, value=facts, job=job)
    ended = (
        f"{way_in(address)}\n"
        "The browser will warn: the certificate is the job's own. To reach it without, or from "
        "where the node cannot be reached:\n"
        f"  submarine notebook url --forward {job.id}"
    )
    secret = {"url": address.url(), "user": address.user, "token": address.token}
    return Outcome(ended, value={**facts, **secret}, job=job)


def way_in(address: Address, base: str | None = None) -> str:
    """The address that lets a person in, below ``base`` where it is forwarded; holds the token."""
    text = f"{address.place.label} is at {address.url(base)}"
    return f"{text}\nLog in as {address.user} with {address.token}" if address.user else text
