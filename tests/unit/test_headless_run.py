"""The parts of a headless run that need no kernel: places, documents, wishes, what is said."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any, ClassVar

import click
import fsspec
import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

from submarine_jobs.cli_mouth import CommandLine
from submarine_jobs.commands import Mouth, complete, execute
from submarine_jobs.commands.run_notebook import NotebookRun
from submarine_jobs.display import MIME_TYPE
from submarine_jobs.errors import StorageError, SubmarineError, UsageError
from submarine_workflows.headless import (
    barrier,
    document,
    papermill_places,
    places,
    returning,
)
from submarine_workflows.headless.announcing import Announcer
from submarine_workflows.headless.ending import Ending
from submarine_workflows.headless.parameters import as_value, inject, read_parameters
from submarine_workflows.headless.place import Place, without_password
from submarine_workflows.headless.reading import read_document
from submarine_workflows.headless.report import Report
from submarine_workflows.headless.saving import Output
from submarine_workflows.headless.settings import Settings


def notebook(*cells: str | tuple[str, list[str]] | tuple[str, list[str], str]) -> Any:
    """A document as papermill has it; a third word makes a cell another type."""
    made = nbformat.v4.new_notebook(metadata={"papermill": {}})
    for number, cell in enumerate(cells):
        source, tags, kind = (cell, [], "code") if isinstance(cell, str) else (*cell, "code")[:3]
        new = nbformat.v4.new_markdown_cell if kind == "markdown" else nbformat.v4.new_code_cell
        one = new(source, id=f"cell-{number}")
        one.metadata.update(tags=tags, papermill={"status": "pending"})
        made.cells.append(one)
    return made


def ids(made: Any) -> list[str]:
    return [cell["id"] for cell in made.cells]


# Which of both a run is


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[NotebookRun]:
    """What a runner would be asked for; none runs."""
    found: list[NotebookRun] = []

    def take(request: NotebookRun, _mouth: Mouth) -> Any:
        found.append(request)
        raise click.exceptions.Exit(0)

    monkeypatch.setattr("submarine_jobs.commands.run.execute_notebook", take)
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
    execute(["run", *words.split()], CommandLine(json_asked=False))
    assert len(asked) == 1
    assert asked[0].notebook.endswith(".ipynb")


@pytest.mark.parametrize(
    "words", ["plain.ipynb", "jobs.ipynb --worker 2", "jobs.ipynb --wait", "train.py"]
)
def test_a_notebook_is_a_job(words: str, here: Path, asked: list[NotebookRun]) -> None:
    with pytest.raises(SubmarineError, match="No cluster"):
        execute(["run", *words.split()], Nowhere())
    assert asked == []


class Nowhere(CommandLine):
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
    execute([*words.split(), "--notify", "tell 'a b'"], CommandLine(json_asked=False))
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
        ("plain.ipynb --lease soon", "--lease: 'soon' is not a stretch of time"),
        ("plain.ipynb -p n", "-p|--parameters"),
    ],
)
def test_what_makes_no_sense_is_said(words: str, sentence: str, here: Path) -> None:
    with pytest.raises(UsageError, match=sentence):
        execute(["run", *words.split()], CommandLine(json_asked=False))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("plain.ipynb --job wroker=2", "'wroker' is no option.*Did you mean worker"),
        ("plain.ipynb --job worker=x", "must be a whole number"),
        ("plain.ipynb -p 1n 2", "'1n' cannot be a parameter"),
        ("plain.ipynb -f none.yaml", "none.yaml cannot be read"),
        ("plain.ipynb -o plain.ipynb", "would take the place of plain.ipynb itself"),
        (
            "plain.ipynb -o none/x.ipynb",
            "There is no folder none to write x.ipynb to. Make it first",
        ),
        ("plain.ipynb --execute -k nosuch", "no kernel called 'nosuch'"),
        ("plain.ipynb --cells nosuch", "no code cell called 'nosuch'"),
        ("plain.ipynb --execute --notify nosuch-program", "no program that can be started"),
        ("plane.ipynb --execute", "plane.ipynb cannot be read.*jobs.ipynb, plain.ipynb"),
        ("train.ipynb --execute", "train.ipynb is not a notebook"),
        ("plain.ipynb -o nosuch://x/y.ipynb", "nobody knows nosuch://"),
        ("plain.ipynb -o hdfs://nn:8020", "names no file of HDFS"),
    ],
)
def test_nothing_runs_where_a_wish_makes_no_sense(words: str, sentence: str, here: Path) -> None:
    (here / "train.ipynb").write_text("[]")
    document = nbformat.read(here / "plain.ipynb", 4)
    document.metadata["kernelspec"] = {"name": "python3", "display_name": "Python"}
    nbformat.write(document, here / "plain.ipynb")
    before = sorted(here.iterdir())
    with pytest.raises(UsageError, match=sentence):
        execute(["run", *words.split()], CommandLine(json_asked=False))
    assert sorted(here.iterdir()) == before


def test_a_node_of_a_workflow_makes_the_folder_of_its_output(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which may be one for each run, ``nightly/${azkaban.flow.execid}``."""
    words = ["run", "plain.ipynb", "-k", "nosuch", "-o"]
    monkeypatch.setenv("SUBMARINE_WORKFLOW_RUN", "azkaban:7")
    with pytest.raises(UsageError, match="no kernel called 'nosuch'"):
        execute([*words, "nightly/7/x.ipynb"], CommandLine(json_asked=False))
    assert (here / "nightly" / "7").is_dir()
    with pytest.raises(StorageError, match=r"plain\.ipynb/7 cannot be made"):
        execute([*words, "plain.ipynb/7/x.ipynb"], CommandLine(json_asked=False))


def test_a_notebook_is_not_executed_from_a_notebook(here: Path) -> None:
    class InNotebook(Mouth):
        kind = "notebook"

    with pytest.raises(UsageError, match=r"In a terminal: submarine run plain\.ipynb"):
        execute(["run", "plain.ipynb", "--execute"], InNotebook())


def test_tab_knows_the_options_of_jobs() -> None:
    found = complete(["run", "x.ipynb", "--job", "wor"], Mouth())
    assert "worker=" in found
    assert complete(["run", "x.ipynb", "--job", "exec"], Mouth()) == []
    assert "--run-id" in complete(["run", "x.ipynb", "--run"], Mouth())


# Places


def test_a_local_file_is_replaced_in_one_step_and_keeps_its_mode(tmp_path: Path) -> None:
    target = tmp_path / "real.ipynb"
    target.write_text("old")
    target.chmod(0o640)
    link = tmp_path / "link.ipynb"
    link.symlink_to(target)
    places.place_of(str(link)).write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.ipynb", "real.ipynb"]


def test_a_write_that_fails_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "x.ipynb"
    target.write_text("old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StorageError, match="No space left on device"):
        places.place_of(str(target)).write(b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["x.ipynb"]
    assert target.read_text() == "old"


def test_papermills_own_last_write_replaces_the_output_in_one_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from papermill.iorw import local_file_io_cwd, papermill_io, write_ipynb

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(papermill_io, "_handlers", list(papermill_io._handlers))
    (tmp_path / "elsewhere").mkdir()
    reader = tmp_path / "reader.ipynb"
    reader.write_text("half read")
    reader.rename("out.ipynb")
    (tmp_path / "same").hardlink_to("out.ipynb")
    with local_file_io_cwd():
        before = list(papermill_io._handlers)
        with papermill_places.whole_at_last("out.ipynb"):
            pass
        assert papermill_io._handlers != before
        monkeypatch.chdir(tmp_path / "elsewhere")  # papermill's --cwd
        write_ipynb(notebook("1 + 1"), "out.ipynb")
        # Papermill is as it was: nobody else's write is ours.
        assert papermill_io._handlers == before
    assert nbformat.read(tmp_path / "out.ipynb", 4).cells[0].source == "1 + 1"
    assert (tmp_path / "same").read_text() == "half read"
    assert {item.name for item in tmp_path.iterdir()} == {"out.ipynb", "same", "elsewhere"}
    for other in (None, "-", "h", "hdfs:///tmp/x.ipynb"):
        with papermill_places.whole_at_last(other):
            assert papermill_io._handlers == before
    with pytest.raises(SystemExit), papermill_places.whole_at_last("out.ipynb"):
        raise SystemExit(143)
    assert papermill_io._handlers == before


def test_any_url_that_fsspec_knows(tmp_path: Path) -> None:
    place = places.place_of("memory://headless/x.ipynb")
    with pytest.raises(UsageError, match="There is no file"):
        place.read()
    place.write(b"{}")
    assert place.read() == b"{}"
    assert fsspec.filesystem("memory").cat("/headless/x.ipynb") == b"{}"
    local = places.place_of(f"file://{tmp_path}/y.ipynb")
    assert local.local == tmp_path / "y.ipynb"


def test_a_password_in_a_url_is_not_shown() -> None:
    shown = without_password("sftp://me:secret@host/x.ipynb")
    assert shown == "sftp://host/x.ipynb"


class Away(Place):
    """HDFS that is there again after so many tries."""

    url = "hdfs:///reports/x.ipynb"

    def __init__(self, failures: int = 1 << 30) -> None:
        self.failures = failures
        self.tries = 0
        self.written = b""

    def read(self) -> bytes:
        raise StorageError("away")

    def write(self, data: bytes) -> None:
        self.tries += 1
        if self.tries <= self.failures:
            raise StorageError("The NameNode is away.")
        self.written = data


def test_an_output_whose_place_comes_back_is_saved_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("submarine_workflows.headless.saving.default_state_dir", lambda: tmp_path)
    paused: list[float] = []

    def sleep(seconds: float) -> None:
        paused.append(seconds)
        # Until it is saved it lies on this machine: the process may be killed meanwhile.
        assert list(tmp_path.glob("unsaved/*-x.ipynb"))

    monkeypatch.setattr("time.sleep", sleep)
    place = Away(failures=6)
    Output(notebook("x = 1"), place).end()
    assert b"x = 1" in place.written
    assert paused == [1, 2, 4, 8, 10, 10]
    assert not list(tmp_path.glob("unsaved/*"))


def test_an_output_that_cannot_be_saved_is_kept_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("submarine_workflows.headless.saving.default_state_dir", lambda: tmp_path)
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    place = Away()
    output = Output(notebook("x = 1"), place)
    with pytest.raises(StorageError, match=r"The NameNode is away\. It is in ") as caught:
        output.end(lambda: "stopped")
    assert place.tries == 3
    kept = Path(caught.value.fix.removeprefix("It is in ").removesuffix("."))
    assert kept.parent.parent == tmp_path
    assert nbformat.read(kept, 4).cells[0].source == "x = 1"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"nbformat": 4, "cells": 3}', '{"nbformat": "x"}', "\x00", "1"]
)
def test_what_is_no_notebook_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.ipynb"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"x\.ipynb is not a notebook"):
        read_document(places.place_of(str(path)))


@pytest.mark.parametrize(
    "metadata",
    [
        {"kernelspec": "python3", "language_info": None, "papermill": 7},
        {"kernelspec": {"name": ["x"]}, "language_info": "py"},
        {"kernelspec": None},
    ],
)
def test_metadata_of_another_form_is_no_end_of_a_run(
    metadata: dict[str, Any], tmp_path: Path
) -> None:
    odd = {"tags": "parameters", "papermill": "x"}
    cell = {"cell_type": "code", "id": "a", "metadata": odd, "source": "", "outputs": []}
    path = tmp_path / "odd.ipynb"
    path.write_text(
        json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": [cell]})
    )
    found, _ = read_document(places.place_of(str(path)))
    assert found.metadata == {}
    assert found.cells[0].metadata == {}


def test_a_notebook_of_format_3(tmp_path: Path) -> None:
    from papermill.iorw import load_notebook_node

    cell = {"cell_type": "code", "language": "python", "input": "x = 1", "outputs": []}
    old = {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": [cell]}]}
    path = tmp_path / "old.ipynb"
    path.write_text(json.dumps(old))
    found, had_ids = read_document(places.place_of(str(path)))
    assert not had_ids
    assert load_notebook_node(found).cells[0].source == "x = 1"


def test_parameters_for_a_kernel_that_papermill_does_not_know() -> None:
    with pytest.raises(UsageError, match="cannot be written for the kernel brainf"):
        inject(notebook("+"), {"n": 1}, "brainf", "brainf", print)


# Documents


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("3.5", 3.5),
        ("1e3", 1000.0),
        ("True", True),
        ("None", None),
        ("3a", "3a"),
        ("", ""),
    ],
)
def test_values_are_papermills(text: str, value: Any) -> None:
    found = as_value(text)
    assert found == value
    assert type(found) is type(value)


def test_parameters_of_files_and_words(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("a: 1\nb: [1, 2]\nday: 2026-11-22\n")
    found = read_parameters([str(file)], [("a", "2", False), ("n", "3", True)])
    assert found == {"a": 2, "b": [1, 2], "day": "2026-11-22", "n": "3"}
    file.write_text("a: [1\nb: 2")
    with pytest.raises(UsageError, match=r"p.yaml, line \d is no YAML"):
        read_parameters([str(file)], [])
    file.write_text("- a")
    with pytest.raises(UsageError, match="holds no parameters"):
        read_parameters([str(file)], [])


@pytest.mark.parametrize(
    ("own", "tags", "first", "its_tags"),
    [
        ("%%submarine --file m.py\nn = 1", [], "%%submarine --file m.py", []),
        ("n = 1", ["submarine:m.py"], "# Parameters", ["submarine:m.py"]),
        ("n = 1", [], "# Parameters", []),
        ("%%submarine run x\nn = 1", [], "# Parameters", []),
    ],
)
def test_injected_parameters_are_collected_where_the_notebooks_own_are(
    own: str, tags: list[str], first: str, its_tags: list[str]
) -> None:
    made = notebook((own, ["parameters", *tags]), "print(n)")
    warned: list[str] = []
    made = inject(made, {"n": 2}, "python3", "python", warned.append)
    document.settle_parameters(made)
    injected = made.cells[1]
    assert injected["id"] == "injected-parameters"
    assert injected.source.split("\n")[0] == first
    assert injected.source.rstrip().endswith("n = 2")
    assert [tag for tag in injected.metadata.tags if tag != "injected-parameters"] == its_tags
    assert ids(made) == ["cell-0", "injected-parameters", "cell-1"]


def test_an_unknown_parameter_is_said_and_set() -> None:
    warned: list[str] = []
    made = notebook(("date = 1", ["parameters"]))
    made = inject(made, {"dat": 2}, "python3", "python", warned.append)
    assert warned == ["warning: The notebook has no parameter dat; did you mean date?"]
    assert "dat = 2" in made.cells[1].source


def test_cells_without_ids_get_the_same_ones_each_time() -> None:
    first, second = notebook("a", "a", "b"), notebook("new", "a", "a", "b")
    document.steady_ids(first, had_ids=False)
    document.steady_ids(second, had_ids=False)
    assert ids(second)[1:] == ids(first)
    assert len(set(ids(second))) == 4
    nbformat.validate(first)
    kept = notebook("a")
    document.steady_ids(kept, had_ids=True)
    assert ids(kept) == ["cell-0"]


@pytest.mark.parametrize(
    ("names", "left"),
    [
        (["cell-5"], [0, 1, 5]),
        (["slow"], [0, 1, 6]),
        (["summary"], [0, 1, 3, 5]),
        (["The  END"], [0, 1, 6]),
        (["summary", "cell-6"], [0, 1, 3, 5, 6]),
        (["details"], [0, 1, 5]),
    ],
)
def test_cells_by_their_names(names: list[str], left: list[int]) -> None:
    made = notebook(
        "%load_ext submarine_magics",
        ("n = 1", ["parameters"]),
        ("# Summary", [], "markdown"),
        "a = 1",
        ("## Details", [], "markdown"),
        "b = 2",
        ("c = 3", ["slow"]),
    )
    made.cells.insert(6, nbformat.v4.new_markdown_cell("# The end", id="end"))
    document.select_cells(made, names)
    assert ids(made) == [f"cell-{number}" for number in left]


@pytest.mark.parametrize(
    ("cells", "added"),
    [
        (["%%submarine\nacc = 1"], "submarine_job = %submarine run two-words --return acc"),
        (["%%submarine --only\nx = 1"], "submarine_job = %submarine run two-words"),
        (["%%submarine\nacc = 1", "%submarine run x"], None),
        (["%%submarine run x\nacc = 1"], None),
        (["acc = 1"], None),
    ],
)
def test_a_program_without_a_run_line_gets_one(cells: list[str], added: str | None) -> None:
    made = notebook(*cells)
    assert document.add_run_cell(made, "two words", (), ("acc", "rows")) is (added is not None)
    if added is not None:
        assert made.cells[-1].source.split("\n")[0] == added
        assert made.cells[-1]["id"] == "submarine-run"


# What a kernel says


def test_failures_go_to_the_cells_that_started_the_jobs() -> None:
    made = notebook("a", "b", "c")
    for count, cell in enumerate(made.cells, start=1):
        cell.execution_count = count
    jobs = barrier.JobsEnd()
    failures = [
        {
            "job_id": "j1",
            "cell_id": "cell-0",
            "ename": "E",
            "evalue": "v",
            "traceback": ["t1", "t2"],
        },
        {"job_id": "j2", "cell_id": None, "execution_count": 2},
        {"job_id": "j3", "cell_id": "gone"},
    ]
    jobs.take({barrier.MIME_TYPE: {"failed": failures, "detached": [{"job_id": "j4"}]}})
    assert jobs.told
    assert jobs.detached == ["j4"]
    barrier.show_failures(made, jobs)
    assert [len(cell.outputs) for cell in made.cells] == [1, 1, 1]
    assert made.cells[0].outputs[0].traceback == ["t1", "t2"]
    assert made.cells[1].outputs[0].evalue == "j2"
    assert made.metadata.papermill.exception is True
    assert {cell.metadata.papermill.status for cell in made.cells} == {"failed"}
    nbformat.validate(made)


@pytest.mark.parametrize(
    "said",
    [None, 1, [], {}, {"failed": 3}, {"failed": [1, None], "detached": 3}, {"detached": [None]}],
)
def test_nonsense_of_a_kernel_breaks_nothing(said: Any) -> None:
    jobs, returned = barrier.JobsEnd(), returning.Returned()
    lines: list[str] = []
    jobs.take({barrier.MIME_TYPE: said})
    returned.take({returning.MIME_TYPE: said})
    announcer = Announcer(lines.append)
    announcer.seen({MIME_TYPE: said})
    barrier.show_failures(notebook(), jobs)
    assert jobs.failed == []
    assert lines == []
    assert returned.values == {}


def test_jobs_are_said_once_with_their_applications() -> None:
    lines: list[str] = []
    announcer = Announcer(lines.append)
    application = "application_1700000000000_0001"
    for state, known in (
        ("SUBMITTING", None),
        ("PENDING", application),
        ("RUNNING", application),
        ("RUNNING", application),
        ("FAILED", application),
    ):
        record = {"application_id": known}
        announcer.seen({MIME_TYPE: {"job_id": "a\x1b[2J", "state": state, "record": record}})
    assert [line.split(": ")[1] for line in lines] == ["SUBMITTING", "PENDING", "FAILED"]
    assert application in lines[1]
    assert "\x1b" not in "".join(lines)


# Wishes


def test_settings_of_papermill() -> None:
    environ = {
        "SUBMARINE_RUN_ID": "night",
        "SUBMARINE_RUN_TIMEOUT": "2h",
        "SUBMARINE_RUN_LEASE": "10m",
        "SUBMARINE_RUN_ON_INTERRUPT": "cancel",
    }
    keywords = {"timeout": 60, "run_timeout": 5, "log_output": True}
    settings = Settings.from_keywords(keywords, environ)
    assert keywords == {"timeout": 60, "log_output": True}
    assert settings == Settings(run_id="night", on_interrupt="cancel", lease=600.0, timeout=5)
    told = settings.headless()
    assert (told.run_id, told.on_interrupt, told.lease, told.barrier) == (
        "night",
        "cancel",
        600,
        True,
    )


def test_a_lease_of_seconds_is_warned_of() -> None:
    assert "With a lease of 10s jobs may end" in Settings(lease=10.0).warning
    assert not Settings(lease=60.0).warning
    assert not Settings().warning


def test_a_notebook_without_our_extension_is_told_how_to_load_it() -> None:
    said = "UsageError: Line magic function `%submarine` not found."
    told = []
    for text in (said, "something else\n\x1b[31mred"):
        ending = Ending(error=CellExecutionError(text, "UsageError", "no"))
        told.append(Report("a", "b", notebook("%submarine run x"), ending, 1.0).reason)
    assert "%load_ext submarine_magics" in told[0]
    assert told[1] == "A cell failed: something else red"


def test_jobs_of_a_run_with_an_id_are_left_for_the_next_attempt() -> None:
    assert Settings().ended_jobs == "cancel"
    assert Settings(run_id="x").ended_jobs == "detach"
    assert Settings(run_id="x", on_interrupt="cancel").ended_jobs == "cancel"


@pytest.mark.parametrize(
    "environ",
    [
        {"SUBMARINE_RUN_ON_INTERRUPT": "ignore"},
        {"SUBMARINE_RUN_TIMEOUT": "soon"},
        {"SUBMARINE_RUN_ID": "x" * 500},
        {"SUBMARINE_RUN_ID": "a\nb"},
    ],
)
def test_settings_that_make_no_sense(environ: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        Settings.from_keywords({}, environ)


def test_a_stretch_of_time_that_is_none_is_told_with_who_says_it() -> None:
    with pytest.raises(UsageError, match=r"^SUBMARINE_RUN_LEASE: 'soon' is not a stretch of time"):
        Settings.from_keywords({}, {"SUBMARINE_RUN_LEASE": "soon"})
    with pytest.raises(UsageError, match=r"^run_timeout: 'soon'"):
        Settings.from_keywords({"run_timeout": "soon"}, {"SUBMARINE_RUN_TIMEOUT": "2h"})


def test_values_that_json_has_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    class Shell:
        user_ns: ClassVar[dict[str, Any]] = {"acc": 0.5, "odd": object(), "nan": float("nan")}

    shown: list[dict[str, Any]] = []
    display = types.SimpleNamespace(display=lambda data, raw: shown.append(data))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    # As the kernel does it.
    exec(returning.ask_for(["acc", "rows", "odd", "nan"]), {"get_ipython": Shell})
    returned = returning.Returned()
    returned.take(json.loads(json.dumps(shown[0])))
    assert returned.values == {"acc": 0.5, "nan": "nan"}
    assert returned.missing == ["rows"]
    assert returned.unfit == ["odd"]
