"""The program of ``submarine predict``: which functions it takes, and what it checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from submarine_jobs.checks import uses_data
from submarine_jobs.commands import CellBody
from submarine_jobs.commands.predict import check_functions, functions_of, with_call
from submarine_jobs.commands.run import Program
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend
from submarine_jobs.options import RunOptions
from submarine_jobs.program import Cell, CellCollection, bundle_from_file, cell_verbs, starts_job


class Notebook(Frontend):
    kind = "notebook"

    def __init__(self, *cells: Cell) -> None:
        super().__init__()
        self.collection = CellCollection()
        for cell in cells:
            self.collection.add(cell)


TRAINS = Cell("1", "train()", label="[1]")
HELPS = Cell("2", "HELP = 1", "helping.py", label="[2]")
PREDICTS = Cell("3", "def predict(batch): ...", "predict.py", label="[3]")
BODY = CellBody("def predict(batch):\n    pass", 2, "[4]")


def files(program: Program) -> dict[str, str]:
    assert program.bundle is not None
    return {name: program.bundle.text(name) for name in program.bundle.files}


def test_a_cell_and_collected_files_without_the_training() -> None:
    found = functions_of(RunOptions(), Notebook(TRAINS, HELPS), BODY)
    assert files(found) == {
        "helping.py": "HELP = 1\n",
        "predict.py": "def predict(batch):\n    pass\n",
    }
    assert found.bundle is not None
    place = found.bundle.source_map.lookup("predict.py", 2)
    assert place is not None
    assert (place.label, place.line) == ("[4]", 3)


def test_collected_functions_precede_the_program() -> None:
    both = files(functions_of(RunOptions(), Notebook(TRAINS, PREDICTS), None))
    assert both == {"predict.py": "def predict(batch): ...\n"}
    joined = files(functions_of(RunOptions(), Notebook(PREDICTS), BODY))
    assert list(joined) == ["predict.py"]
    assert joined["predict.py"].count("def predict") == 2
    only = functions_of(RunOptions(), Notebook(TRAINS), CellBody("  \n"))
    assert files(only) == {"main.py": "train()\n"}


def test_a_file_and_a_cell_exclude_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("score.py").write_text("def predict(batch): ...")
    options = RunOptions(program="score.py")
    assert list(files(functions_of(options, Frontend(), None))) == ["score.py"]
    with pytest.raises(UsageError, match="the cell has functions too"):
        functions_of(options, Frontend(), BODY)


def test_the_call_follows_the_functions_and_ships_the_library(tmp_path: Path) -> None:
    path = tmp_path / "score.py"
    path.write_text("def predict(batch): ...")
    program = with_call(
        Program("score", bundle_from_file(path)), {"input": "x", "keys": ["größe", "a'b"]}
    )
    assert program.bundle is not None
    text = files(program)["score.py"]
    assert text.startswith("def predict(batch): ...\n\n\n# Added by submarine predict.\n")
    assert "    keys=['größe', \"a'b\"],\n" in text
    compile(text, "score.py", "exec")
    assert uses_data(program.bundle.files)


@pytest.mark.parametrize(
    ("source", "model", "sentence"),
    [
        ("x = 1", False, r"defines no function predict\(batch\)"),
        ("def predict(batch, model): ...", True, r"needs a function load_model\(path\)"),
        (
            "def predict(batch, model): ...\ndef load_model(path): ...",
            False,
            r"load_model\(path\) of score\.py needs a model",
        ),
    ],
)
def test_missing_functions_are_refused(
    tmp_path: Path, source: str, model: bool, sentence: str
) -> None:
    (tmp_path / "score.py").write_text(source)
    program = Program("score", bundle_from_file(tmp_path / "score.py"))
    with pytest.raises(UsageError, match=sentence):
        check_functions(program, model=model)


@pytest.mark.parametrize(
    ("source", "model", "warnings"),
    [
        ("from m import *", True, 0),
        ("def predict(batch): ...", False, 0),
        ("def predict(batch): ...", True, 1),
        ("import os\ndef predict(batch): os.environ['SUBMARINE_INPUT_MODEL']", True, 0),
        ("def load_model(path=''): ...\nclass P: ...\npredict = P()", False, 0),
        ("def predict(", True, 0),
    ],
)
def test_complete_functions_are_accepted(
    tmp_path: Path, source: str, model: bool, warnings: int
) -> None:
    (tmp_path / "score.py").write_text(source)
    program = Program("score", bundle_from_file(tmp_path / "score.py"))
    assert len(check_functions(program, model=model)) == warnings


def test_cells_with_the_verb_are_known() -> None:
    assert "predict" in cell_verbs()
    assert starts_job("%%submarine predict a@b --input x=/a --output /b\ndef predict(b): ...")
    assert starts_job("job = %submarine predict --input x=/a")
    assert not starts_job("%submarine predictions")
