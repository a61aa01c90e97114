"""Jobs of the lab's user that no notebook had to start, and outputs of notebooks that name them."""

from __future__ import annotations

from typing import Any

from nbformat.v4 import new_output

from submarine_jobs.client import Job, Session
from submarine_jobs.display import MIME_TYPE, mimebundle
from submarine_jobs.model import Profile
from submarine_runtime.protocol import State
from tests.browser.lab import PATIENCE, Lab
from tests.submission import make_job
from tests.waiting import until


class Jobs:
    """Local jobs in the lab's own store: its server finds them as those of its kernels."""

    def __init__(self, lab: Lab) -> None:
        profile = Profile(backend="local", state_dir=lab.scratch / "state")
        self.session = Session(profile)
        self.started: list[Job] = []

    def start(self, program: str, name: str = "job", **fields: Any) -> str:
        """Submit a program; the job's id."""
        job = self.session.submit(*make_job(program, name, **fields))
        self.started.append(job)
        return job.id

    def finished(self, program: str, name: str = "job", **fields: Any) -> str:
        """Submit a program and wait for its end; the job's id."""
        job_id = self.start(program, name, **fields)
        self.wait(job_id, lambda state: state.ended)
        return job_id

    def wait(self, job_id: str, done: Any, timeout: float = PATIENCE) -> State:
        """Wait until ``done(state)``."""
        job = self.session.job(job_id)
        return until(
            lambda: state if done(state := job.record().state) else None,
            lambda: f"{job_id} is still {job.record().state}",
            timeout,
        )

    def output(self, job: str, /, **changes: Any) -> Any:
        """What a cell's outputs hold of a job now, as the magics store it.

        ``changes`` replace values of our own MIME type, like a forged notebook.
        """
        data = mimebundle(self.session.job(job).view())
        data[MIME_TYPE] = {**data[MIME_TYPE], **changes}
        return new_output("display_data", data=data)

    def close(self) -> None:
        """Cancel what still runs."""
        for job in self.started:
            if not job.record().state.ended:
                job.cancel("the test is over")
