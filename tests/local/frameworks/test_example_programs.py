"""Each program of docs/libraries.md as a script and as a notebook, with two workers."""

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
from tests.example_programs import EXAMPLES, FOLDER, ROOT, description, programs
from tests.frameworks.gang import FRAMEWORKS
from tests.notebook.conftest import clean_environment
from tests.submission import cancel_unfinished
from tests.torch_tree import torch_environment

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]
DEEPSPEED = ROOT / ".venv-deepspeed"
TREES = {"xgboost_train": "xgboost", "lightgbm_train": "lightgbm", "optuna_study": "xgboost"}
NAMES = [path.stem for path in programs() if path.stem != "optuna_study"]
Run = Callable[..., str]
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def environment_of(name: str) -> Path:
    """The environment with the library of a program; skip the test where there is none."""
    if module := TREES.get(name):
        command = [str(FRAMEWORKS), "-c", f"import {module}"]
        if not FRAMEWORKS.exists() or subprocess.run(command, check=False).returncode:
            pytest.skip(f"scripts/setup.sh frameworks installs {module}")
        return FRAMEWORKS.parents[1]
    if name == "deepspeed_train":
        if not (DEEPSPEED / ".set-up-deepspeed").exists():
            pytest.skip("scripts/setup.sh deepspeed makes .venv-deepspeed")
        return DEEPSPEED
    return torch_environment()


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
        # A progress bar writes control sequences before the next line.
        lines = _CONTROL.sub("", job.log(task=task).data.decode()).splitlines()
        found += [line.removeprefix(f"{word} ") for line in lines if line.startswith(f"{word} ")]
    return found


def check_result(job: Job, name: str, workers: int = 2) -> None:
    """All workers have trained one good model."""
    record = job.wait(30)
    assert record.state is State.SUCCEEDED, record.detail
    assert not record.warnings
    first = "part" if name == "lightgbm_train" else "rank"
    ranks = [text.partition(",")[0] for text in said(job, first)]
    assert sorted(ranks) == [f"{rank} of {workers}" for rank in range(workers)]
    digests = said(job, "digest")
    assert len(digests) == workers
    assert len(set(digests)) == 1
    accuracies = [float(text) for text in said(job, "accuracy")]
    assert len(accuracies) == workers
    assert min(accuracies) > 0.8, accuracies


@pytest.mark.parametrize("name", NAMES)
def test_a_script(run: Run, session: Session, name: str) -> None:
    python = f"path:{environment_of(name)}"
    words = shlex.split(description(EXAMPLES / f"{name}.py")[1])
    run(*words, "--python-env", python, "--memory", "2500M")
    check_result(newest(session), name)


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
    check_result(second, "fsdp2_train", workers=1)


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
