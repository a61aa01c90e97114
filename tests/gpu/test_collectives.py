"""Collectives on a real device: NCCL with one rank, and several processes that share it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs.client import Job, Session
from submarine_jobs.model import Profile
from submarine_runtime.protocol import State
from tests.gpu import machine
from tests.gpu.collective import PROGRAM
from tests.gpu.machine import PATIENCE
from tests.submission import Submit, submitting

pytestmark = machine.REAL_GPU


@pytest.fixture
def submit(tmp_path: Path) -> Iterator[Submit]:
    session = Session(Profile(backend="local", state_dir=tmp_path / "state"))
    options = {"memory": machine.HOST_MEMORY, "gpus": 1, "framework": "pytorch"}
    with submitting(session, **options) as made:
        yield made


def said(job: Job) -> list[list[str]]:
    """The words of each line of a job that has succeeded, without ranks."""
    record = job.wait(PATIENCE)
    assert record.state is State.SUCCEEDED, record.detail
    lines = job.log("stdout").data.decode().splitlines()
    return [line.split("] ", 1)[-1].split() for line in lines]


def test_one_rank_with_nccl(submit: Submit) -> None:
    assert said(submit(PROGRAM))[0] == ["backend", "nccl", "cuda", "1"]


def test_several_processes_on_one_device_with_gloo(submit: Submit) -> None:
    lines = said(submit(PROGRAM, processes=3))
    backends = [words[1:] for words in lines if words[0] == "backend"]
    assert backends == [["gloo", "cuda", "3"]] * 3
    assert len({words[1] for words in lines if words[0] == "digest"}) == 1


def test_nccl_refuses_two_ranks_on_one_device(submit: Submit) -> None:
    record = submit(PROGRAM.replace("world <= devices", "True"), processes=2).wait(PATIENCE)
    assert record.state is State.FAILED
    assert any("NCCL needs a GPU of its own for each rank" in hint for hint in record.hints)
