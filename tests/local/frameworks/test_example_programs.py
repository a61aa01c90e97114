"""Each program of docs/libraries.md as a script with one task, with two, and with two processes in
each of two, and as a notebook with two tasks."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import nbformat
import pytest

from submarine_jobs.client import Job, Session
from submarine_jobs.model import Profile
from submarine_runtime.protocol import State
from tests.example_programs import EXAMPLES, FOLDER, description, programs
from tests.frameworks.gang import FRAMEWORKS
from tests.notebook.conftest import clean_environment
from tests.submission import cancel_unfinished
from tests.torch_tree import deepspeed_environment, torch_environment

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]
TREES = {"xgboost_train": "xgboost", "lightgbm_train": "lightgbm", "optuna_study": "xgboost"}
NAMES = [path.stem for path in programs() if path.stem != "optuna_study"]
Run = Callable[..., str]
#: Workers, and processes of each.
SHAPES = [(1, 1), (2, 1), (2, 2)]
#: Libraries with one process in a container, which divides its rows among threads.
ONE_PROCESS = ("xgboost_train", "lightgbm_train")
#: The control sequences of a progress bar, and the label of one of several processes.
_BEFORE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|^\[\d+\] ", re.MULTILINE)


def environment_of(name: str) -> Path:
    """The environment with the library of a program; skip the test where there is none."""
    if module := TREES.get(name):
        command = [str(FRAMEWORKS), "-c", f"import {module}"]
        if not FRAMEWORKS.exists() or subprocess.run(command, check=False).returncode:
            pytest.skip(f"scripts/setup.sh frameworks installs {module}")
        return FRAMEWORKS.parents[1]
    return deepspeed_environment() if name == "deepspeed_train" else torch_environment()


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    state = tmp_path / "state" / "jupyter-submarine"
    made = Session(Profile(backend="local", state_dir=state))
    yield made
    cancel_unfinished(made)


@pytest.fixture
def run(tmp_path: Path, digits: Path, session: Session) -> Run:
    """Runs a command in a folder with the examples; returns what it prints."""
    for path in (*EXAMPLES.glob("*.py"), *FOLDER.glob("*.ipynb"), digits):
        shutil.copy(path, tmp_path)

    def run(*words: str, **variables: str) -> str:
        program = Path(sys.executable).with_name(words[0])
        done = subprocess.run(
            [str(program), *words[1:]],
            cwd=tmp_path,
            env={**clean_environment(tmp_path), **variables},
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, f"{words}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout

    return run


def newest(session: Session) -> Job:
    return session.job("last")


def said(job: Job, word: str) -> list[str]:
    """What follows ``word`` at the beginning of a line of each worker."""
    found = []
    for task in job.task_names:
        lines = _BEFORE.sub("", job.log(task=task).data.decode()).splitlines()
        found += [line.removeprefix(f"{word} ") for line in lines if line.startswith(f"{word} ")]
    return found


def check_result(job: Job, name: str, ranks: int = 2) -> None:
    """All ranks have trained one good model."""
    record = job.wait(30)
    assert record.state is State.SUCCEEDED, record.detail
    assert not record.warnings
    first = "part" if name == "lightgbm_train" else "rank"
    found = [text.partition(",")[0] for text in said(job, first)]
    assert sorted(found) == [f"{rank} of {ranks}" for rank in range(ranks)]
    digests = said(job, "digest")
    assert len(digests) == ranks
    assert len(set(digests)) == 1
    accuracies = [float(text) for text in said(job, "accuracy")]
    assert len(accuracies) == ranks
    # Four ranks take half as many steps as two.
    assert min(accuracies) > (0.8 if ranks <= 2 else 0.6), accuracies


@pytest.mark.parametrize(
    ("name", "workers", "processes"),
    [
        (name, *shape)
        for name in NAMES
        for shape in SHAPES
        if shape[1] == 1 or name not in ONE_PROCESS
    ],
)
def test_a_script(run: Run, session: Session, name: str, workers: int, processes: int) -> None:
    python = f"path:{environment_of(name)}"
    command = description(EXAMPLES / f"{name}.py")[1]
    words = shlex.split(command.replace("--worker 2", f"--worker {workers}"))
    several = ("--processes", str(processes)) if processes > 1 else ()
    run(*words, *several, "--python-env", python, "--memory", "2500M")
    check_result(newest(session), name, workers * processes)


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook(run: Run, session: Session, tmp_path: Path, name: str) -> None:
    python = f"path:{environment_of(name)}"
    options = ("--job", f"python_env={python}", "--job", "memory=2500M")
    run("submarine", "run", f"{name}.ipynb", "-o", "executed.ipynb", *options)
    check_result(newest(session), name)
    executed = nbformat.read(tmp_path / "executed.ipynb", as_version=4)
    card = executed.cells[-1].outputs[-1]["data"]["text/plain"]
    assert "SUCCEEDED" in card, card


def test_a_sharded_checkpoint_is_resumed_by_one_worker(run: Run, session: Session) -> None:
    python = f"path:{torch_environment()}"
    more = ("--file", "digits.npz", "--memory", "2500M", "--wait", "--python-env", python)
    run("submarine", "run", "fsdp2_train.py", "--worker", "2", "--param", "epochs=3", *more)
    first = newest(session)
    assert not said(first, "continues")
    again = ("--resume", first.id, "--worker", "1", "--param", "epochs=6")
    run("submarine", "run", "fsdp2_train.py", *again, *more)
    second = newest(session)
    assert second.id != first.id
    assert said(second, "continues") == ["after epoch 3"]
    check_result(second, "fsdp2_train", 1)


def test_deepspeed_refuses_the_state_of_another_number_of_workers(
    run: Run, session: Session
) -> None:
    """A limit of DeepSpeed: it finds the files of both workers, and says so."""
    python = f"path:{deepspeed_environment()}"
    words = shlex.split(description(EXAMPLES / "deepspeed_train.py")[1])
    words = [*words, "--python-env", python, "--memory", "2500M"]
    run(*words)
    again = ["1" if word == "2" else word for word in words if word != "--wait"]
    run(*again, "--resume", newest(session).id)
    record = newest(session).wait(300)
    assert record.state is State.FAILED
    assert "world size of 2 but the current world size is 1" in record.detail


@pytest.mark.parametrize("notebook", [False, True], ids=["script", "notebook"])
def test_a_study_over_jobs(run: Run, session: Session, tmp_path: Path, notebook: bool) -> None:
    if find_spec("optuna") is None:
        pytest.skip("scripts/setup.sh optuna installs Optuna")
    python = f"path:{environment_of('optuna_study')}"
    if notebook:
        words = ("submarine", "run", "optuna_study.ipynb", "-o", "executed.ipynb")
        run(*words, TRIAL_PYTHON=python)
        executed = nbformat.read(tmp_path / "executed.ipynb", as_version=4)
        # Cards of the jobs may follow.
        text = "".join(output.get("text", "") for output in executed.cells[-1].outputs)
    else:
        text = run("python", "optuna_study.py", TRIAL_PYTHON=python)
    found = [record.job_id for record in session.jobs()]
    assert len(found) == 6
    results = [session.job(name).result["accuracy"] for name in found]
    assert len(set(results)) > 1
    assert f"accuracy {max(results):.4f}" in text.splitlines()[-1]
