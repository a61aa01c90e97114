"""``submarine_jobs.run`` and its neighbours, on the local backend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import submarine_jobs
from submarine_jobs.errors import JobFailedError, UsageError
from submarine_runtime.protocol import State


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.setattr(submarine_jobs, "_sessions", {})
    monkeypatch.chdir(tmp_path)


def test_options_mean_what_they_mean_on_the_command_line(tmp_path: Path) -> None:
    program = (
        "import os, sys\ndouble = [2 * x for x in given]\nprint(os.environ['A'], sys.argv[1:])"
    )
    (tmp_path / "train.py").write_text(program)
    job = submarine_jobs.run(
        "digits",
        program="train.py",
        backend="local",
        memory="256M",
        env={"A": "b c"},
        timeout="1m",
        values={"given": [1, 2]},
        returns=["double"],
        args=["--lr", "0.1"],
        wait=True,
    )
    assert job.result["double"] == [2, 4]
    assert job.log().data == b"b c ['--lr', '0.1']\n"
    spec = job.directory.spec()
    assert (spec.worker.resources.memory, spec.timeout) == (256, 60.0)


def test_failure_is_raised_when_waiting(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("raise SystemExit(3)")
    with pytest.raises(JobFailedError, match="FAILED"):
        submarine_jobs.run("bad", program="bad.py", backend="local", wait=True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gpus": 1}, "did you mean --gpu"),
        ({"memory": "lots"}, "memory"),
        ({"dry_run": True}, "no job"),
        ({"ps": 2}, "has no tasks to serve"),
        ({"insecure": True}, "not in this release"),
    ],
)
def test_wrong_options_are_one_sentence(
    tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    (tmp_path / "train.py").write_text("print(1)")
    with pytest.raises(UsageError, match=words):
        submarine_jobs.run("x", program="train.py", backend="local", **options)


def test_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBMARINE_BACKEND", "local")
    (tmp_path / "train.py").write_text("print(1)")
    job = submarine_jobs.run("again", program="train.py", wait=True)
    assert submarine_jobs.find_job("again").id == job.id
    assert [record.state for record in submarine_jobs.list_jobs()] == [State.SUCCEEDED]
