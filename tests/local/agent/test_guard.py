"""The guard of headless runs for real: processes that are killed, with jobs of their own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from submarine_jobs.client import Job, Session
from submarine_jobs.config import load_config
from submarine_runtime.protocol import State
from tests.waiting import until

#: A process that starts a job under guard, says its id, and does what it reads.
PROGRAM = """
import os, sys, submarine_jobs
from submarine_magics.jobs.guard import Guard
guard = Guard()
job = submarine_jobs.run("watched", worker_launch_cmd="sleep 3600")
guard.watch(job)
print(job.id, flush=True)
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""


class Owner:
    """That process."""

    def __init__(self, home: Path) -> None:
        self._state = str(home / "state")
        environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("SUBMARINE_", "HADOOP_"))},
            "XDG_CONFIG_HOME": str(home),
            "SUBMARINE_STATE_DIR": self._state,
            "SUBMARINE_BACKEND": "local",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=home,
            env=environment,
            start_new_session=True,
        )
        config = load_config(environ=environment, cwd=home)
        try:
            self.job: Job = Session(config.profile).job(self._answer())
        except BaseException:
            self.kill()
            raise

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line, "it ended before its time"
        return line

    def do(self, code: str) -> None:
        """Let it execute a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(code + "\n")
        self._process.stdin.flush()
        assert self._answer() == "done"

    def kill(self) -> None:
        """Together with its process group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(60)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def guards(self) -> list[psutil.Process]:
        """Guards that it has started."""
        found = []
        for process in psutil.process_iter(["cmdline"]):
            if any(word.endswith("guard_process.py") for word in process.info["cmdline"] or []):
                with contextlib.suppress(psutil.Error):
                    if process.environ().get("SUBMARINE_STATE_DIR") == self._state:
                        found.append(process)
        return found

    def close(self) -> None:
        """End everything."""
        self.kill()
        self.job.cancel()
        until(lambda: not self.guards(), "its guards end")


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[Owner]:
    with contextlib.closing(Owner(tmp_path)) as made:
        yield made


def test_it_ends_what_a_vanished_process_waited_for(owner: Owner) -> None:
    assert len(owner.guards()) == 1
    owner.kill()
    assert owner.job.wait(90).state is State.CANCELLED
    until(lambda: not owner.guards(), "the guard ends by itself")


def test_it_waits_while_the_jobs_file_system_is_away(owner: Owner) -> None:
    jobs = Path(owner.job.session.profile.state_dir) / "jobs"
    away = jobs.with_name("away")
    [guard] = owner.guards()
    # Until it has claimed the job and opened its port, an agent cannot do without its file system.
    until(lambda: list(jobs.rglob("claim.json")) and list(jobs.rglob("live.json")), "it runs")
    jobs.rename(away)
    jobs.touch()  # not even a directory: each read fails
    owner.kill()
    until(lambda: guard.num_threads() > 1, "the guard tries")
    assert not list(away.rglob("cancel.json"))
    jobs.unlink()
    away.rename(jobs)
    assert owner.job.wait(90).state is State.CANCELLED


def test_what_was_answered_for_is_left_alone(owner: Owner) -> None:
    owner.do("guard.release(job.id)")
    owner.kill()
    until(lambda: not owner.guards(), "the guard ends by itself")
    assert not owner.job.record().state.ended


def test_a_guard_that_was_killed_is_replaced(owner: Owner) -> None:
    [first] = owner.guards()
    first.kill()
    until(lambda: not owner.guards(), "it is gone")
    owner.do("other = submarine_jobs.run('other', worker_launch_cmd='true')")
    owner.do("guard.watch(other)")
    owner.kill()
    assert owner.job.wait(90).state is State.CANCELLED


def test_a_child_that_lives_on_does_not_hold_it_back(owner: Owner) -> None:
    # The child leaves the group, so that it survives, and keeps every pipe that it can.
    owner.do(
        "import time; os.fork() or (os.setsid(), open('child', 'w').write(str(os.getpid())), "
        "time.sleep(600), os._exit(0))"
    )
    written = Path(owner.job.session.profile.state_dir).parent / "child"
    until(lambda: written.exists() and written.read_text(), "the child has left the group")
    child = psutil.Process(int(written.read_text()))
    try:
        owner.kill()
        assert owner.job.wait(90).state is State.CANCELLED
        assert child.is_running()
    finally:
        child.kill()
