"""Two attempts of one run: what the second joins, what it starts anew, and races between them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import submarine_jobs
from submarine_jobs.client import Job, add_listener, remove_listener, run_attempts as attempts
from submarine_jobs.model import Headless
from submarine_runtime.protocol import State, layout
from tests.submission import cancel_unfinished

WAITING = "while [ ! -e {end} ]; do sleep 0.1; done"


@pytest.fixture
def run_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Everything that is started belongs to one run; every job has ended in the end."""
    for name in [key for key in os.environ if key.startswith(("SUBMARINE_", "HADOOP_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("SUBMARINE_BACKEND", "local")
    for name, value in Headless(run_id="nightly/17/train").to_environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(submarine_jobs, "_sessions", {})
    monkeypatch.setattr(attempts, "_cleaned", set())
    next_attempt(monkeypatch)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    cancel_unfinished(submarine_jobs.open_session())


def next_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """As another process: it counts its starts from the first again."""
    monkeypatch.setattr(attempts, "_ordinals", {})


def start(command: str, **options: Any) -> Job:
    return submarine_jobs.run("train", worker_launch_cmd=command, memory="200M", **options)


def test_what_goes_on_and_what_has_succeeded_is_joined(
    run_of: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = run_of / "end"
    first, second = start(WAITING.format(end=end)), start(WAITING.format(end=end))
    assert first.id != second.id  # two starts of one attempt
    next_attempt(monkeypatch)
    heard: list[str] = []

    class Account:
        def job_started(self, job: Job) -> None:
            heard.append(job.id)

        def job_refused(self, job_id: str) -> None:
            raise AssertionError(job_id)

        def job_settled(self, job_id: str) -> None:
            pass

    account = Account()
    add_listener(account)
    try:
        assert [start(WAITING.format(end=end)).id for _ in range(2)] == [first.id, second.id]
    finally:
        remove_listener(account)
    assert heard[-2:] == [first.id, second.id]  # the second attempt answers for them too
    assert start("true").id not in (first.id, second.id)
    end.touch()
    assert first.wait(90).state is State.SUCCEEDED
    next_attempt(monkeypatch)
    assert start(WAITING.format(end=end)).id == first.id
    monkeypatch.setenv("SUBMARINE_HEADLESS", Headless(run_id="other").to_environment().popitem()[1])
    assert start(WAITING.format(end=end)).id != first.id


def test_what_failed_or_was_cancelled_is_started_anew(
    run_of: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = start("false")
    failed.wait(90)
    next_attempt(monkeypatch)
    again = start("false")
    assert again.id != failed.id
    again.wait(90)
    next_attempt(monkeypatch)
    assert start("false").id not in (failed.id, again.id)
    cancelled = start("sleep 3600")
    cancelled.cancel()
    next_attempt(monkeypatch)
    assert start("sleep 3600").id != cancelled.id


def test_attempts_at_the_same_time_share_one_job(run_of: Path) -> None:
    (run_of / "train.py").write_text("import time\ntime.sleep(1)\nprint('once')\n")
    command = [sys.executable, "-m", "submarine_jobs.cli", "run", "train.py", "--json"]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    told = [process.communicate(timeout=120) for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], told
    ids = {json.loads(out)["job_id"] for out, _ in told}
    assert len(ids) == 1
    assert len(submarine_jobs.list_jobs()) == 1


def test_a_second_attempt_leaves_nothing_behind(
    run_of: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = start("sleep 3600")
    next_attempt(monkeypatch)
    seen: list[int] = []
    newest = attempts.RunStart.newest

    def late(place: attempts.RunStart) -> attempts.Registration:
        seen.append(1)
        return attempts.Registration() if len(seen) == 1 else newest(place)

    monkeypatch.setattr(attempts.RunStart, "newest", late)
    assert start("sleep 3600").id == first.id
    assert len(seen) == 2
    month = Path(first.directory.path).parent
    assert [path.name for path in month.iterdir()] == [first.id]


def test_a_place_that_was_taken_and_never_used_is_taken_over(
    run_of: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "SUBMIT_SECONDS", 0.0)
    ended = start("true")
    ended.wait(90)
    # As if its kernel had been killed just before the intent was written.
    for name in (layout.INTENT, layout.RECORD, layout.CANCEL):
        (Path(ended.directory.path) / name).unlink(missing_ok=True)
    next_attempt(monkeypatch)
    again = start("true")
    assert again.id != ended.id
    wish = json.loads((Path(ended.directory.path) / layout.CANCEL).read_text())
    assert "not submitted in time" in wish["why"]


def test_a_job_that_was_told_to_end_is_not_joined(
    run_of: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "SETTLE_SECONDS", 0.0)
    job = start("sleep 3600")
    job.directory.publish_json_exclusive(layout.CANCEL, {"by": "a guard"})
    next_attempt(monkeypatch)
    with pytest.raises(submarine_jobs.errors.ClusterError, match="although it was cancelled"):
        start("sleep 3600")


def test_runs_are_forgotten_with_their_jobs(run_of: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = start("true")
    job.wait(90)
    storage, root = job.backend.job_root()
    [run] = storage.list_directory(f"{root}/{layout.RUNS}")
    later = time.time() + 30 * 86400
    attempts.remove_stale_runs(storage, root, later)
    assert storage.list_directory(f"{root}/{layout.RUNS}") == [run]
    storage.delete(job.directory.path, recursive=True)
    monkeypatch.setattr(attempts, "_cleaned", set())
    attempts.remove_stale_runs(storage, root, time.time())
    assert storage.list_directory(f"{root}/{layout.RUNS}") == [run]
    monkeypatch.setattr(attempts, "_cleaned", set())
    attempts.remove_stale_runs(storage, root, later)
    assert storage.list_directory(f"{root}/{layout.RUNS}") == []
