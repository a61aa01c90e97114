"""The examples by ``submarine run`` on the minicluster: their results, task by task."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_minicluster.cluster import Minicluster
from tests.waiting import until

pytestmark = pytest.mark.cluster
ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples/distributed"
SUBMARINE = Path(sys.executable).with_name("submarine")


class Here:
    """A folder with the examples and their data, and the command line in it."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.folder = folder
        self.env = env
        self.running: list[str] = []
        for program in EXAMPLES.glob("*.py"):
            shutil.copy(program, folder)
        subprocess.run([sys.executable, "make_digits.py"], cwd=folder, check=True)

    def submarine(self, *arguments: str) -> str:
        """What a command prints to stdout; its stderr is the message if it fails."""
        done = subprocess.run(
            [str(SUBMARINE), *arguments],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=420,
        )
        assert done.returncode == 0, f"{arguments}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout

    def start(self, program: str, *options: str) -> str:
        """The id of a job that was accepted."""
        typed = ("run", program, "--file", "digits.npz", *options, "--json")
        job = str(json.loads(self.submarine(*typed))["job_id"])
        self.running.append(job)
        return job

    def run(self, program: str, *options: str) -> str:
        """The id of a job that has succeeded."""
        job = self.start(program, *options)
        self.wait(job)
        return job

    def wait(self, job: str) -> None:
        """Until it has succeeded."""
        self.submarine("wait", job, "--quiet")
        self.running.remove(job)

    def logs(self, job: str, *tasks: str) -> list[str]:
        """The whole log of each task."""
        return [self.submarine("logs", job, "--task", task) for task in tasks]


@pytest.fixture
def here(minicluster_env: Minicluster, yarn_state: Path, tmp_path: Path) -> Iterator[Here]:
    """Ends what still runs of the jobs that were started."""
    env = {**os.environ, "SUBMARINE_STATE_DIR": str(yarn_state), "SUBMARINE_BACKEND": "yarn"}
    env["XDG_CONFIG_HOME"] = str(tmp_path)
    made = Here(tmp_path, env)
    yield made
    for job in made.running:
        made.submarine("cancel", job, "--yes")


def same_result(logs: list[str], accuracy: float = 0.9) -> None:
    """Each log ends with the same digest of weights; every printed accuracy is good."""
    digests = [re.findall(r"^digest ([0-9a-f]{64})$", log, re.MULTILINE) for log in logs]
    assert all(len(found) == 1 for found in digests), logs
    assert len({found[0] for found in digests}) == 1, logs
    told = [float(t) for log in logs for t in re.findall(r"^accuracy ([0-9.]+)$", log, re.M)]
    assert told
    assert min(told) > accuracy


def environment(name: str) -> tuple[str, str]:
    """``--python-env`` of one of the environments that set-up makes."""
    return "--python-env", f"path:{ROOT / name}"


TWO = ("worker:0", "worker:1")


def test_xgboost(here: Here) -> None:
    """The lines of the tracker are read from its node while the job runs, then from HDFS."""
    go = here.folder / "go"
    wait = f"import time\nwhile not os.path.exists({str(go)!r}):\n    time.sleep(0.05)\n"
    with (here.folder / "xgboost_train.py").open("a") as program:
        program.write(wait)
    job = here.start("xgboost_train.py", "--worker", "2", *environment(".venv-frameworks"))

    def helper() -> str:
        return here.submarine("logs", job, "--stream", "helper")

    live = until(lambda: log if "[14]\ttest-" in (log := helper()) else "", "the last round")
    assert json.loads(here.submarine("show", job, "--json"))["state"] == "RUNNING"
    assert re.findall(r"\[(\d+)\]\ttest-mlogloss:", live) == [str(n) for n in range(15)]
    go.touch()
    here.wait(job)
    assert helper() == live
    assert "mlogloss" not in here.submarine("logs", job, "--stream", "both")
    same_result(here.logs(job, *TWO))
    assert "model.json" in here.submarine("show", job)
    assert "Network: lo" in here.submarine("show", job)


@pytest.mark.full
def test_tensorflow_mirrored(here: Here) -> None:
    job = here.run("tf_mirrored.py", "--worker", "2", "--memory", "2G")
    same_result(here.logs(job, *TWO))
    assert "weights.npz" in here.submarine("show", job)


@pytest.mark.full
def test_two_versions_of_one_framework_side_by_side(here: Here) -> None:
    folders = (".venv-frameworks", ".venv-xgboost-older")
    jobs = [
        here.start("xgboost_train.py", "--worker", "2", "--memory", "600M", *environment(folder))
        for folder in folders
    ]
    versions: list[str] = []
    for job in jobs:
        here.wait(job)
        logs = here.logs(job, *TWO)
        same_result(logs)
        told = {one for log in logs for one in re.findall(r"^version (.+)$", log, re.MULTILINE)}
        assert len(told) == 1
        versions += told
    assert versions[0] > versions[1]
    times = [json.loads(here.submarine("show", job, "--json")) for job in jobs]
    assert times[1]["created"] < times[0]["finished"], "they did not run at the same time"


@pytest.mark.full
def test_tensorflow_parameter_server(here: Here) -> None:
    shared = here.folder / "shared"
    shared.mkdir()
    roles = ("--chief", "1", "--worker", "2", "--ps", "1", "--evaluator", "1")
    job = here.run("tf_parameter_server.py", *roles, "--memory", "1400M", "--args", str(shared))
    same_result(here.logs(job, "chief:0", "evaluator:0"))


@pytest.mark.full
def test_pytorch_by_debians_python(here: Here) -> None:
    """`/usr/bin/python3`: an environment with nothing of ours in it."""
    job = here.run("torch_ddp.py", "--worker", "2", "--python-env", "path:/usr")
    same_result(here.logs(job, *TWO))


@pytest.mark.full
def test_pytorch_with_processes(here: Here) -> None:
    options = ("--worker", "2", "--processes", "2", "--python-env", "path:/usr")
    job = here.run("torch_ddp.py", *options)
    logs = here.logs(job, *TWO)
    digests = [re.findall(r"^digest ([0-9a-f]{64})$", log, re.MULTILINE) for log in logs]
    assert [len(found) for found in digests] == [2, 2]
    assert len({one for found in digests for one in found}) == 1
    ranks = sorted(re.findall(r"^rank (\d) of 4", "".join(logs), re.MULTILINE))
    assert ranks == ["0", "1", "2", "3"]


@pytest.mark.full
def test_lightgbm(here: Here) -> None:
    job = here.run("lightgbm_train.py", "--worker", "2", *environment(".venv-frameworks"))
    same_result(here.logs(job, *TWO))


@pytest.mark.full
def test_jax(here: Here) -> None:
    job = here.run("jax_train.py", "--worker", "2", *environment(".venv-frameworks"))
    same_result(here.logs(job, *TWO))


@pytest.mark.full
def test_mxnet(here: Here) -> None:
    roles = ("--worker", "2", "--ps", "1")
    where = environment(".venv-mxnet")
    job = here.run("mxnet_train.py", *roles, "--memory", "1G", *where)
    same_result(here.logs(job, *TWO))


@pytest.mark.full
def test_horovod(here: Here) -> None:
    job = here.run("horovod_torch.py", "--worker", "2", *environment(".venv-horovod"))
    same_result(here.logs(job, *TWO))
