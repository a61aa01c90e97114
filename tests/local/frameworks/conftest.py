"""Run programs of the libraries as jobs of this machine, on Debian's PyTorch and a current one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

import submarine_jobs
from submarine_jobs.client import Job
from tests.torch_tree import current_torch_environment, torch_environment


class RunTorch(Protocol):
    """Submits a program; waits for its end unless ``wait=False``."""

    def __call__(self, source: str, **options: Any) -> Job: ...


@pytest.fixture(params=["debian", pytest.param("current", marks=pytest.mark.full)])
def pytorch(request: pytest.FixtureRequest) -> Path:
    """An environment with PyTorch and the libraries: Debian's, and in full tests a current one."""
    return torch_environment() if request.param == "debian" else current_torch_environment()


@pytest.fixture
def run_torch(pytorch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunTorch]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.setattr(submarine_jobs, "_sessions", {})
    monkeypatch.chdir(tmp_path)
    jobs: list[Job] = []

    def run(source: str, **options: Any) -> Job:
        (tmp_path / "train.py").write_text(source)
        options = {"memory": "3G", "timeout": "5m", **options}
        job = submarine_jobs.run(
            "torch",
            program="train.py",
            backend="local",
            python_env=f"path:{pytorch}",
            **options,
        )
        jobs.append(job)
        job.wait(timeout=300)
        return job

    yield run
    for job in jobs:
        if not job.final:
            job.cancel()
            job.wait(timeout=60)


def task_log(job: Job, task: str = "worker:0", stream: str = "stdout") -> str:
    """Return the log of a task that has ended."""
    return job.log(task=task, stream=stream).data.decode()


def values_of(job: Job, word: str, tasks: int = 1) -> list[str]:
    """Return what follows ``word`` in lines of all tasks that begin with it."""
    found = []
    for index in range(tasks):
        for line in task_log(job, f"worker:{index}").splitlines():
            text = line.split("] ", 1)[-1] if line.startswith("[") else line
            if text.startswith(word + " "):
                found.append(text[len(word) + 1 :])
    return found
