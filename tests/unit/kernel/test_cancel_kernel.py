"""Front ends warn before cancelling a kernel or a notebook server, whose variables are lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.commands import execute
from submarine_jobs.display import lost_if_cancelled
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend
from submarine_jobs.model import KERNEL_ROLE, NOTEBOOK_ROLE, hadoop_user
from submarine_jobs.tracking import Owner
from submarine_kernel.remote import KernelRequest, program, spec_of_kernel
from submarine_runtime.protocol import JobRecord, State, TaskRecord

ID = "kernel-far-20261120-7f3a"


def record(role: str, state: State, user: str = "") -> JobRecord:
    return JobRecord(
        ID, "kernel-far", state, user=user, tasks=[TaskRecord(f"{role}:0", role, 0, state=state)]
    )


class Job:
    id = ID
    session: Any = None

    def __init__(self, shown: JobRecord) -> None:
        self.shown = shown
        self.cancels: list[str] = []

    def record(self) -> JobRecord:
        return self.shown

    def cancel(self, why: str) -> JobRecord:
        self.cancels.append(why)
        return record("worker", State.CANCELLED)


class FrontEnd(Frontend):
    """A front end of some kind; ``answer`` is the answer to questions, None if it cannot ask."""

    def __init__(self, kind: str, job: Job, answer: bool | None) -> None:
        super().__init__()
        self.kind = kind
        self.interactive = answer is not None
        self.answer = answer
        self.questions: list[str] = []
        job.session = self
        self.found = job
        self.profile = self.store = self

    user = hadoop_user()

    def session(self, config: Any) -> Any:
        return self

    def job(self, text: str) -> Any:
        return self.found

    def owner(self, job_id: str) -> Owner:
        return Owner(recorded=self.found.shown.user)

    def confirm(self, question: str) -> bool:
        self.questions.append(question)
        return bool(self.answer)


@pytest.mark.parametrize("kind", ["cli", "notebook", "zeppelin"])
@pytest.mark.parametrize("role", [KERNEL_ROLE, NOTEBOOK_ROLE])
@pytest.mark.parametrize("answer", [True, False, None])
def test_a_kernel_is_cancelled_after_a_warning(kind: str, role: str, answer: bool | None) -> None:
    job = Job(record(role, State.RUNNING, hadoop_user(None)))
    front_end = FrontEnd(kind, job, answer)
    if answer is None:
        with pytest.raises(UsageError, match=r"variables of .* are lost\. Add --yes"):
            execute(["cancel", ID], front_end)
        assert job.cancels == []
        execute(["cancel", ID, "--yes"], front_end)
        assert len(job.cancels) == 1
        return
    execute(["cancel", ID], front_end)
    assert len(job.cancels) == answer
    (question,) = front_end.questions
    assert "are lost. Cancel kernel-far-" in question


def test_the_question_about_a_job_of_another_user_has_the_warning() -> None:
    job = Job(record(KERNEL_ROLE, State.RUNNING, "ada-lovelace"))
    front_end = FrontEnd("notebook", job, False)
    execute(["cancel", ID], front_end)
    (question,) = front_end.questions
    assert "job of ada-lovelace" in question
    assert "are lost. Cancel it?" in question


def test_other_jobs_are_cancelled_without_a_warning() -> None:
    own = hadoop_user(None)
    for shown in (record("worker", State.RUNNING, own), record(KERNEL_ROLE, State.PENDING, own)):
        assert lost_if_cancelled(shown) == ""
        job = Job(shown)
        front_end = FrontEnd("notebook", job, None)
        execute(["cancel", ID], front_end)
        assert len(job.cancels) == 1


def test_the_job_of_a_kernel_has_its_role(tmp_path: Path) -> None:
    from submarine_jobs.model import Profile

    profile = Profile(backend="yarn", state_dir=tmp_path)
    spec = spec_of_kernel(profile, KernelRequest("far", {"gpu": 1, "memory": "3G"}), program())
    (role,) = spec.roles
    assert (role.name, role.instances) == (KERNEL_ROLE, 1)
    assert (role.resources.gpus, role.resources.memory) == (1, 3072)
    assert not spec.distributed
