"""Real submissions of every kind with a site file, through the local backend."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import submarine_jobs
from submarine_jobs.client import Session
from submarine_jobs.commands import execute
from submarine_jobs.config import SITE_FILE, SITE_VARIABLE, load_config
from submarine_jobs.errors import SubmarineError
from submarine_kernel.remote import KernelRequest, session_of
from submarine_kernel.remote.submission import submit_kernel
from submarine_runtime.protocol import JobRecord, State
from tests.frontends import RecordingFrontend
from tests.local.server.jupyter_server import running
from tests.submission import cancel_unfinished
from tests.waiting import PATIENCE

pytestmark = pytest.mark.skipif(
    SITE_FILE.exists(), reason="this machine has a site file, which no test replaces"
)
LIMITS = '[locked]\nqueues = ["ml", "ml-*"]\nimages = []\nmax_gpus_per_job = 2\n'
FLOW = """\
nodes:
  - {name: one, type: command, config: {command: "submarine run train.py --gpu 3"}}
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A site file, and a user with the local backend in a directory with a program."""
    for name in os.environ:
        if name.startswith(("SUBMARINE_", "HADOOP_")):
            monkeypatch.delenv(name)
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    path = tmp_path / "site.toml"
    path.write_text(LIMITS, encoding="utf-8")
    path.chmod(0o644)
    monkeypatch.setenv(SITE_VARIABLE, str(path))
    monkeypatch.setenv("SUBMARINE_BACKEND", "local")
    monkeypatch.setattr(submarine_jobs, "_sessions", {})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print('ran')\n")
    yield path
    monkeypatch.delenv(SITE_VARIABLE)
    cancel_unfinished(Session(load_config().profile))


def jobs() -> list[JobRecord]:
    return Session(load_config().profile).jobs()


def typed(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "submarine_jobs.cli", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def test_a_job_within_the_limits_runs_and_others_leave_nothing(site: Path) -> None:
    for words, sentence in (
        (("--gpu", "3"), f"The job asks for 3 GPUs, and {site}:4 allows 2 for each job."),
        (("--worker", "3", "--gpu", "1"), f"The job asks for 3 GPUs, and {site}:4 allows 2"),
        (("--queue", "default"), "The queue default is not allowed"),
    ):
        ran = typed("run", "train.py", "--wait", *words)
        assert (ran.returncode, sentence in ran.stderr) == (2, True), ran.stderr
        dry = typed("run", "train.py", "--dry-run", "--json", *words)
        assert dry.returncode == 2
        (refusal,) = json.loads(dry.stdout)["refusals"]
        assert refusal in ran.stderr
    assert jobs() == []
    ran = typed("run", "train.py", "--wait", "--queue", "ml-small", "--gpu", "1")
    assert ran.returncode == 0, ran.stderr
    (record,) = jobs()
    assert (record.state, record.queue) == (State.SUCCEEDED, "ml-small")


def test_a_dry_run_shows_every_violation(site: Path) -> None:
    outcome = execute(
        ["run", "train.py", "--dry-run", "--queue", "x", "--gpu", "9"], RecordingFrontend("cli")
    )
    assert outcome.exit_code == 2
    queue, gpus = outcome.value["refusals"]
    assert queue.startswith(f"The queue x is not allowed: {site}:2 allows only ml, ml-*.")
    assert gpus.startswith(f"The job asks for 9 GPUs, and {site}:4 allows 2")
    assert queue in outcome.text
    assert gpus in outcome.text


def by_python(folder: Path) -> None:
    submarine_jobs.run("big", program="train.py", gpu=3)


def by_kernel(folder: Path) -> None:
    request = KernelRequest("big", {"gpu": 3, "memory": "256M"})
    submit_kernel(session_of(request), request)


def by_notebook_server(folder: Path) -> None:
    execute(["notebook", "start", "--gpu", "3"], RecordingFrontend("cli"))


def by_notebook(folder: Path) -> None:
    execute(["run", "train.py", "--gpu", "3"], RecordingFrontend("notebook"))


@pytest.mark.parametrize("start", [by_python, by_kernel, by_notebook_server, by_notebook])
def test_every_kind_of_submission_is_checked(
    start: Callable[[Path], None], site: Path, tmp_path: Path
) -> None:
    with pytest.raises(SubmarineError) as caught:
        start(tmp_path)
    assert f"The job asks for 3 GPUs, and {site}:4 allows 2 for each job." in str(caught.value)
    assert jobs() == []


def test_the_node_of_a_workflow_is_checked(site: Path, tmp_path: Path) -> None:
    (tmp_path / "nightly.flow").write_text(FLOW)
    ran = typed("workflow", "run", "nightly.flow")
    assert ran.returncode != 0
    assert "The job asks for 3 GPUs" in ran.stdout + ran.stderr
    assert jobs() == []


def test_a_job_that_is_run_again_meets_the_limits_of_today(site: Path) -> None:
    """Also in a session that is older than the limits."""
    frontend = RecordingFrontend("notebook")
    execute(["run", "train.py", "--wait", "--gpu", "2", "--queue", "ml"], frontend)
    site.write_text('queue = "gpu"\n[locked]\nkeys = ["queue"]\nmax_gpus_per_job = 1\n')
    session = Session(load_config().profile)
    with pytest.raises(SubmarineError) as caught:
        session.job("last").rerun()
    assert str(caught.value).startswith(
        f"The job sets queue to 'ml', and {site}:1 locks it to 'gpu'."
    )
    site.write_text("[locked]\nmax_gpus_per_job = 1\n")
    with pytest.raises(SubmarineError, match="The job asks for 2 GPUs"):
        execute(["rerun", "last"], frontend)
    site.write_text("[locked]\nmax_gpus_per_job = 2\n")
    again = session.job("last").rerun()
    assert again.wait(PATIENCE).state is State.SUCCEEDED


def test_the_server_checks_a_job_that_a_page_runs_again(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "server" / "state"))
    with running(tmp_path / "server", **{SITE_VARIABLE: str(site)}) as server:
        done = typed("run", "train.py", "--gpu", "2", "--wait", "--json")
        job_id = json.loads(done.stdout)["job_id"]
        site.write_text("[locked]\nmax_gpus_per_job = 1\n")
        answer = server.call("POST", f"jobs/{job_id}/rerun", {})
        assert answer.status == 409
        assert f"The job asks for 2 GPUs, and {site}:2 allows 1 for each job." in str(answer.json)
        assert len(server.call("GET", "jobs").json["jobs"]) == 1


def test_a_site_file_that_others_can_change_stops_the_submission(site: Path) -> None:
    site.chmod(0o666)
    ran = typed("run", "train.py", "--wait")
    assert ran.returncode == 2
    assert f"{site} can be changed by its group or others (mode 0666)" in ran.stderr
    assert "chmod go-w" in ran.stderr
    site.chmod(0o644)
    assert jobs() == []
