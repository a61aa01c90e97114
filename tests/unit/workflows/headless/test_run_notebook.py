"""`submarine run` of a notebook as it is typed: executed or a job, and what is refused first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import nbformat
import pytest

from submarine_jobs.commands import complete, execute
from submarine_jobs.commands.run import NotebookRun
from submarine_jobs.errors import StorageError, SubmarineError, UsageError
from submarine_jobs.frontends import Frontend, TerminalFrontend
from tests.notebooks import notebook

# Which of both a run is


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[NotebookRun]:
    """What a runner would be asked for; none runs."""
    found: list[NotebookRun] = []

    def take(request: NotebookRun, _frontend: Frontend) -> Any:
        found.append(request)
        raise click.exceptions.Exit(0)

    monkeypatch.setattr("submarine_jobs.commands.run.command.execute_notebook", take)
    return found


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    nbformat.write(notebook("x = 1"), tmp_path / "plain.ipynb")
    nbformat.write(notebook("x = 1\n%submarine run a"), tmp_path / "jobs.ipynb")
    (tmp_path / "train.py").write_text("x = 1")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        "jobs.ipynb",
        "jobs.ipynb --timeout 2h --backend local",
        "plain.ipynb --execute",
        "plain.ipynb -p n 3",
        "plain.ipynb -o out.ipynb",
        "plain.ipynb --run-id x",
        "plain.ipynb --cells a,b",
        "hdfs:///user/me/plain.ipynb",
        "--program plain.ipynb --execute",
    ],
)
def test_a_notebook_is_executed(words: str, here: Path, asked: list[NotebookRun]) -> None:
    execute(["run", *words.split()], TerminalFrontend(json_asked=False))
    assert len(asked) == 1
    assert asked[0].notebook.endswith(".ipynb")


@pytest.mark.parametrize(
    "words", ["plain.ipynb", "jobs.ipynb --worker 2", "jobs.ipynb --wait", "train.py"]
)
def test_a_notebook_is_a_job(words: str, here: Path, asked: list[NotebookRun]) -> None:
    with pytest.raises(SubmarineError, match="No cluster"):
        execute(["run", *words.split()], Nowhere())
    assert asked == []


class Nowhere(TerminalFrontend):
    """A command line without any cluster."""

    def __init__(self) -> None:
        super().__init__(json_asked=False)

    def config(self, options: Any = None) -> Any:
        """Neither files nor variables of this machine."""
        from submarine_jobs.config import load_config

        return load_config(options, environ={"SUBMARINE_CONFIG": ""})


def test_all_that_is_typed_arrives(here: Path, asked: list[NotebookRun]) -> None:
    words = (
        "run plain.ipynb -p n 3 -p s text -r t 4 -f a.yaml -o hdfs:///x.ipynb -k python3 "
        "--cells a,b --job worker=2 --job env=A=1 --job env=B=2 --job tensorboard=true "
        "--run-id w/1/n --lease 10m --timeout 1h --on-interrupt cancel --return acc,rows "
        "--profile p --verbose"
    )
    execute([*words.split(), "--notify", "tell 'a b'"], TerminalFrontend(json_asked=False))
    assert asked == [
        NotebookRun(
            notebook="plain.ipynb",
            output="hdfs:///x.ipynb",
            parameters=(("n", "3", False), ("s", "text", False), ("t", "4", True)),
            parameter_files=("a.yaml",),
            kernel="python3",
            cells=("a", "b"),
            job_options={"worker": "2", "env": ["A=1", "B=2"], "tensorboard": True},
            return_names=("acc", "rows"),
            run_id="w/1/n",
            on_interrupt="cancel",
            lease=600.0,
            timeout=3600.0,
            notify="tell 'a b'",
            profile="p",
            verbose=True,
        )
    ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("plain.ipynb -p n 3 --gpu 1", "--gpu is an option of a job.*write --job gpu=VALUE"),
        ("plain.ipynb -p n 3 -- a", "no arguments after --.*-p NAME VALUE"),
        ("train.py -p n 3", "--parameters is for executing a notebook, and none is named"),
        ("digits --execute", "--execute is for executing a notebook"),
        ("plain.ipynb --cells ,", "--cells names no cell"),
        ("plain.ipynb --job worker", "--job 'worker' is not OPTION=VALUE"),
        ("plain.ipynb --notify '", "--notify .* is no command"),
        ("plain.ipynb --lease soon", "--lease: 'soon' is not a duration"),
        ("plain.ipynb -p n", "-p|--parameters"),
    ],
)
def test_what_makes_no_sense_is_said(words: str, sentence: str, here: Path) -> None:
    with pytest.raises(UsageError, match=sentence):
        execute(["run", *words.split()], TerminalFrontend(json_asked=False))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("plain.ipynb --job wroker=2", "'wroker' is not an option.*Did you mean worker"),
        ("plain.ipynb --job worker=x", "must be a whole number"),
        ("plain.ipynb -p 1n 2", "'1n' is not a valid parameter name"),
        ("plain.ipynb -f none.yaml", "none.yaml cannot be read"),
        ("plain.ipynb -o plain.ipynb", "would overwrite plain.ipynb"),
        (
            "plain.ipynb -o none/x.ipynb",
            "There is no folder none to write x.ipynb to. Create it",
        ),
        ("plain.ipynb --execute -k nosuch", "no kernel named 'nosuch'"),
        ("plain.ipynb --cells nosuch", "no code cell called 'nosuch'"),
        ("plain.ipynb --execute --notify nosuch-program", "is not an executable program"),
        ("plane.ipynb --execute", "plane.ipynb cannot be read.*jobs.ipynb, plain.ipynb"),
        ("train.ipynb --execute", "train.ipynb is not a notebook"),
        ("plain.ipynb -o nosuch://x/y.ipynb", "nosuch:// is not supported"),
        ("plain.ipynb -o hdfs://nn:8020", "is not a file in HDFS"),
    ],
)
def test_nothing_runs_where_a_wish_makes_no_sense(words: str, sentence: str, here: Path) -> None:
    (here / "train.ipynb").write_text("[]")
    document = nbformat.read(here / "plain.ipynb", 4)
    document.metadata["kernelspec"] = {"name": "python3", "display_name": "Python"}
    nbformat.write(document, here / "plain.ipynb")
    before = sorted(here.iterdir())
    with pytest.raises(UsageError, match=sentence):
        execute(["run", *words.split()], TerminalFrontend(json_asked=False))
    assert sorted(here.iterdir()) == before


def test_a_node_of_a_workflow_makes_the_folder_of_its_output(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which may be one for each run, ``nightly/${azkaban.flow.execid}``."""
    words = ["run", "plain.ipynb", "-k", "nosuch", "-o"]
    monkeypatch.setenv("SUBMARINE_WORKFLOW_RUN", "azkaban:7")
    with pytest.raises(UsageError, match="no kernel named 'nosuch'"):
        execute([*words, "nightly/7/x.ipynb"], TerminalFrontend(json_asked=False))
    assert (here / "nightly" / "7").is_dir()
    with pytest.raises(StorageError, match=r"plain\.ipynb/7 cannot be created"):
        execute([*words, "plain.ipynb/7/x.ipynb"], TerminalFrontend(json_asked=False))


def test_a_notebook_is_not_executed_from_a_notebook(here: Path) -> None:
    class InNotebook(Frontend):
        kind = "notebook"

    with pytest.raises(UsageError, match=r"In a terminal: submarine run plain\.ipynb"):
        execute(["run", "plain.ipynb", "--execute"], InNotebook())


def test_tab_knows_the_options_of_jobs() -> None:
    found = complete(["run", "x.ipynb", "--job", "wor"], Frontend())
    assert "worker=" in found
    assert "execute=" not in complete(["run", "x.ipynb", "--job", "exec"], Frontend())
    assert "--run-id" in complete(["run", "x.ipynb", "--run"], Frontend())
