"""Four workers read all records in each epoch, also when one of them is killed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs.client import Session
from submarine_jobs.model import Profile
from tests.local.data.counted_epochs import (
    Size,
    folder_opener,
    kill_and_check,
    sizes,
    start,
    write_files,
)
from tests.submission import Submit, submitting


@pytest.fixture
def submit(tmp_path: Path) -> Iterator[Submit]:
    with submitting(Session(Profile(backend="local", state_dir=tmp_path / "state"))) as made:
        yield made


@pytest.mark.full
@sizes
def test_no_record_is_lost_or_used_twice(submit: Submit, tmp_path: Path, size: Size) -> None:
    folder = tmp_path / "data"
    write_files(size, folder_opener(folder))
    try:
        job = start(submit, str(folder), size, tmp_path / "go")
        kill_and_check(job, size, tmp_path / "go", 600)
    finally:
        shutil.rmtree(folder)
