"""Checks before a submit: the problem, its cell, and how to fix it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import nbformat
import pytest

from submarine_jobs.checks import (
    Finding,
    Level,
    check_calls,
    check_program,
    checkpoint_links,
    expected_rule,
    has_own_launcher,
    missing_imports,
    uses_data,
)
from submarine_jobs.errors import UsageError
from submarine_jobs.program import (
    Bundle,
    Cell,
    CellCollection,
    DocumentCell,
    NotebookDocument,
    build_bundle,
    bundle_from_notebook,
)
from submarine_runtime.protocol import SourceMap


def cell(text: str, label: str = "[1]", filename: str = "main.py") -> Cell:
    return Cell(label.strip("[]"), text, filename, label)


def seen(text: str, label: str, cell_id: str | None = None) -> DocumentCell:
    return DocumentCell(cell_id, text, label)


def names(findings: list[Finding]) -> list[str]:
    return [finding.code for finding in findings]


def only(findings: list[Finding]) -> Finding:
    assert len(findings) == 1, findings
    return findings[0]


def bundle_of(*cells: Cell) -> Bundle:
    return build_bundle(cells)


def test_a_sound_program_has_no_findings() -> None:
    bundle = bundle_of(
        cell("import os\nfrom model import f\nx = [y for y in f()]\nprint(__name__, x, exit)"),
        cell("def f():\n    return later()\ndef later():\n    return range(3)", "[2]", "model.py"),
        cell("try:\n    unknown\nexcept NameError:\n    pass\nfrom os.path import *\njoin", "[3]"),
    )
    assert check_program(bundle) == []


def test_a_syntax_error_names_cell_and_line() -> None:
    finding = only(check_program(bundle_of(cell("x = 1"), cell("y = 2\nz = = 3", "[8]"))))
    assert finding.level is Level.ERROR
    assert (finding.code, finding.file, finding.line) == ("syntax", "main.py", 4)
    assert (finding.cell, finding.cell_line) == ("[8]", 3)
    assert finding.message.startswith("Cell [8], line 3 is not valid Python: invalid syntax")


@pytest.mark.parametrize("text", ["return 1", "x = '\0'", "def f(:", "\tx\n        y", "break"])
def test_what_python_refuses_is_a_syntax_finding(text: str) -> None:
    assert names(check_program(bundle_of(cell(text)))) == ["syntax"]


def test_a_name_that_an_uncollected_cell_defines() -> None:
    document = [seen("x_train = load()", "[2]"), seen("unrelated = 1", "[3]")]
    finding = only(
        check_program(
            bundle_of(cell("a = 1\nfit(x_train)\nfit = 1\nfit(x_train)", "[5]")),
            None,
            document,
            ["fit"],
        )
    )
    assert finding.code == "undefined-name"
    assert (finding.cell, finding.cell_line) == ("[5]", 3)
    assert "main.py uses x_train (cell [5], line 3)" in finding.message
    assert "cell [2] does" in finding.message
    assert finding.fix == (
        "Add %%submarine to cell [2] and run it, or send the value with --with x_train."
    )
    assert finding.to_json()["level"] == "error"


@pytest.mark.parametrize(
    ("definition", "fix"),
    [
        ("import numpy as np", "or write import numpy as np in a collected cell."),
        ("from a.b import c as np", "or write from a.b import c as np in a collected cell."),
        ("def np(): pass", "Add %%submarine to cell [2] and run it."),
        ("class np: pass", "Add %%submarine to cell [2] and run it."),
        ("np = !ls", "--with np."),
        ("%matplotlib inline\nfor np in []: pass", "--with np."),
        ("%%submarine\nnp = 1", "Run cell [2]."),
        ("with f() as np: pass", "--with np."),
    ],
)
def test_the_fix_fits_the_definition(definition: str, fix: str) -> None:
    finding = only(check_program(bundle_of(cell("print(np)")), None, [seen(definition, "[2]")]))
    assert finding.fix.endswith(fix)


def test_what_does_not_define_a_name_is_not_named() -> None:
    document = [seen("def f():\n    x = 1\n[x for x in []]\nprint(x)", "[2]"), seen("x = (", "[3]")]
    finding = only(check_program(bundle_of(cell("print(x)")), None, document))
    assert finding.message.endswith("which nothing defines.")


def test_history_is_searched_after_the_document_and_sent_cells_not_at_all() -> None:
    bundle = bundle_of(cell("print(x)", "[1]"))
    history = [seen("x = 1", "[4]")]
    assert "cell [4]" in only(check_program(bundle, history=history)).message
    found = only(check_program(bundle, None, [seen("x = 2", "#9")], history=history))
    assert "cell #9" in found.message
    assert (
        "nothing defines" in only(check_program(bundle, history=[seen("x=1", "[1]", "1")])).message
    )


def test_a_marked_cell_of_the_history_is_not_taken_for_a_definition() -> None:
    bundle = bundle_of(cell("print(x)", "[5]"))
    found = check_program(bundle, history=[seen("%%submarine\nx = 1", "[2]")])
    assert "nothing defines" in only(found).message


def test_values_sent_reach_the_program_only() -> None:
    bundle = bundle_of(cell("import model\nprint(x)"), cell("print(x)", "[2]", "model.py"))
    finding = only(check_program(bundle, with_names=["x"]))
    assert (finding.file, "reach main.py only" in finding.message) == ("model.py", True)


def test_a_name_of_another_file_and_one_that_comes_too_late() -> None:
    bundle = bundle_of(
        cell("import json\nprint(f, early)", "[1]"),
        cell("early = 1", "[2]"),
        cell("def f(): return json", "[3]", "pkg/model.py"),
    )
    late, other, module = sorted(check_program(bundle), key=lambda f: f.message.split()[2])
    assert "before it is defined (cell [2], line 2)" in late.message
    assert other.fix == "Add from pkg.model import f to a cell of main.py."
    assert module.fix == (
        "Every file needs its own imports: add import json to a cell of pkg/model.py."
    )


def test_what_exists_in_a_notebook_only_and_a_slip() -> None:
    found = check_program(bundle_of(cell("lenght = 1\ndisplay(length)\nget_ipython()")))
    by_name = {finding.message.split()[2]: finding for finding in found}
    assert "exists in a notebook only" in by_name["display"].message
    assert "exists in a notebook only" in by_name["get_ipython"].message
    assert by_name["length"].fix == "Did you mean lenght?"


def test_names_made_at_run_time_are_a_warning_only() -> None:
    finding = only(check_program(bundle_of(cell("globals().update(x=1)\nprint(x)"))))
    assert (finding.level, finding.code) == (Level.WARNING, "undefined-name")


def test_names_to_return_must_be_assigned_at_the_top() -> None:
    bundle = bundle_of(cell("def f():\n    acc = 1\nhistory = f()"))
    finding = only(check_program(bundle, return_names=["acc", "history"]))
    assert (finding.code, "--return names acc" in finding.message) == ("undefined-return", True)
    assert check_program(bundle, with_names=["acc"], return_names=["acc"]) == []
    dynamic = bundle_of(cell("globals()['acc'] = 1"))
    assert check_program(dynamic, return_names=["acc"]) == []


def test_cells_that_differ_from_the_saved_document() -> None:
    collection = CellCollection()
    collection.add(cell("a = 1", "[1]"), ran_at=10)
    collection.add(cell("b = 1", "[2]"), ran_at=30)
    collection.add(cell("c = 1", "[3]"), ran_at=30)
    cells = (
        seen("%%submarine\na = 2", "[1]", "1"),
        seen("%%submarine\nb = 2", "[2]", "2"),
        seen("%%submarine\nnever = 1", "#4", "9"),
    )
    bundle = build_bundle(collection.cells())
    assert check_program(bundle, collection) == []
    collection.follow(NotebookDocument("n.ipynb", cells, b"", modified=20))
    findings = check_program(bundle, collection)
    assert names(findings) == ["cell-edited", "cell-unsaved", "cell-not-run"]
    assert all(finding.level is Level.WARNING for finding in findings)
    assert [finding.cell for finding in findings] == ["[1]", "[2]", "#4"]
    assert "[2] and [3] differ" in findings[1].message


def test_errors_come_before_warnings() -> None:
    collection = CellCollection()
    collection.add(cell("print(x)", "[1]"), ran_at=1)
    collection.follow(NotebookDocument("n", (seen("%%submarine\ny", "[1]", "1"),), b"", 2))
    found = check_program(build_bundle(collection.cells()), collection)
    assert names(found) == ["undefined-name", "cell-edited"]


IMPORTS = """\
import os, json.decoder
import nowhere_at_all.sub
from sklearn_missing import x
import model
import nbformat
import pytest
from . import relative
try:
    import optional_one
except ImportError:
    optional_one = None
if TYPE_CHECKING:
    import only_types
with contextlib.suppress(ImportError):
    import suppressed
def f():
    import inside_function
"""


def test_imports_that_the_interpreter_does_not_have() -> None:
    bundle = bundle_of(cell(IMPORTS), cell("import submarine_runtime", "[2]", "model.py"))
    found = missing_imports(bundle, sys.executable)
    assert [(f.level.value, f.message.split()[2]) for f in found] == [
        ("error", "nowhere_at_all"),
        ("error", "sklearn_missing"),
        ("warning", "inside_function"),
    ]
    assert (found[0].cell, found[0].cell_line) == ("[1]", 3)
    assert "--python-env" in found[0].fix


def test_imports_of_a_file_that_the_program_does_not_import_are_warnings() -> None:
    """A notebook collects files for several jobs, such as one of Spark."""
    bundle = bundle_of(
        cell("from pack import part\ndef later():\n    import lazily"),
        cell("from . import second\nfrom nowhere_a import x", "[2]", "pack/part.py"),
        cell("import nowhere_b", "[3]", "pack/second.py"),
        cell("import nowhere_c", "[4]", "lazily.py"),
        cell("import nowhere_d, other_module", "[5]", "other_job.py"),
        cell("import nowhere_e", "[6]", "other_module.py"),
    )
    found = missing_imports(bundle, sys.executable)
    assert {f.message.split()[2]: f.level.value for f in found} == {
        "nowhere_a": "error",
        "nowhere_b": "error",
        "nowhere_c": "error",
        "nowhere_d": "warning",
        "nowhere_e": "warning",
    }


def test_modules_are_looked_up_without_running_them(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    site = tmp_path / "python"
    (tmp_path / "sitething.py").write_text(f"open({str(marker)!r}, 'w')")
    site.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
    site.chmod(0o755)
    bundle = bundle_of(cell("import sitething, nowhere_at_all"))
    assert "nowhere_at_all" in only(missing_imports(bundle, str(site))).message
    assert not marker.exists()


def test_a_module_beside_the_notebook_has_its_own_fix(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("")
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("")
    bundle = bundle_of(cell("import mine, pack"))
    found = missing_imports(bundle, sys.executable, beside=tmp_path)
    assert found[0].fix == "Put its code into a cell with %%submarine --file mine.py."
    assert "--file pack/NAME.py" in found[1].fix


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "words"),
    [
        (None, "is not on this machine"),
        ("#!/bin/sh\nexec sleep 30\n", "did not answer within 0.3 s"),
        ("#!/bin/sh\necho nonsense\n", "could not be queried"),
        ("#!/bin/sh\nexit 3\n", "could not be queried"),
    ],
)
def test_an_interpreter_that_cannot_be_asked(
    tmp_path: Path, script: str | None, words: str
) -> None:
    python = tmp_path / "python"
    if script:
        python.write_text(script)
        python.chmod(0o755)
    start = time.monotonic()
    finding = only(missing_imports(bundle_of(cell("import x_y_z")), str(python), timeout=0.3))
    assert (finding.level, finding.code) == (Level.WARNING, "imports-unchecked")
    assert words in finding.message
    assert time.monotonic() - start < 15


def test_nothing_is_asked_where_nothing_is_imported() -> None:
    assert missing_imports(bundle_of(cell("x = 1")), "/nowhere/python") == []


def test_problems_of_a_program_from_files_name_files() -> None:
    files = {"a.py": b"import b\nprint(x, f)\n", "b.py": b"def f(): pass\n"}
    found = check_program(Bundle("a.py", files, SourceMap({})))
    assert [(f.message, f.fix) for f in found] == [
        ("a.py uses x (a.py, line 2), which nothing defines.", "Define x in a.py."),
        (
            "a.py uses f (a.py, line 2), which is defined in another file (b.py, line 1).",
            "Add from b import f to a.py.",
        ),
    ]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import torch", False),
        ("import lightning as L", True),
        ("from lightning.pytorch import Trainer", True),
        (
            "def f():\n    try:\n        import pytorch_lightning\n    except ImportError: pass",
            True,
        ),
        ("from accelerate import Accelerator", True),
        ("from transformers import AutoModel", False),
        ("from transformers import Seq2SeqTrainer, AutoModel", True),
        ("import transformers\nt = transformers.TrainingArguments('o')", True),
        ("from .lightning import x", False),
        ("import accelerate, torch.distributed as d\nd.init_process_group('gloo')", False),
        ("from torch.distributed import init_process_group as i\nimport lightning\ni()", False),
        ("import lightning  # init_process_group()", True),
        ("import lightning (", False),
    ],
)
def test_a_library_that_starts_the_processes_of_a_training(source: str, expected: bool) -> None:
    assert has_own_launcher({"main.py": source.encode(), "data.csv": b"a,b"}) is expected


def test_another_file_of_the_program_may_initialise_the_process_group() -> None:
    files = {"main.py": b"import accelerate, setup", "setup.py": b"init_process_group()"}
    assert not has_own_launcher(files)


def test_builtins_are_those_of_python_and_not_of_a_notebook() -> None:
    # IPython hides exit and quit from the builtins of a kernel, and adds display and get_ipython.
    program = (
        "import builtins, sys\n"
        "builtins.display = builtins.get_ipython = print\n"
        "del builtins.exit, builtins.quit\n"
        "from submarine_jobs.program.job_bundle import build_bundle\n"
        "from submarine_jobs.program.collection import Cell\n"
        "from submarine_jobs.checks import check_program\n"
        "text = 'print(__file__, __name__)\\ndisplay(1)\\nget_ipython()\\nquit()\\nexit()'\n"
        "for found in check_program(build_bundle([Cell('1', text)])):\n"
        "    print(found.code, found.message.split()[2])\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout.splitlines() == ["undefined-name display", "undefined-name get_ipython"]


def test_submodules_that_do_not_exist(tmp_path: Path) -> None:
    text = (
        "import json.decoder, json.decodr\nimport xml.etree.ElementTree\nfrom xml import nothing\n"
        "from concurrent import futures\nimport os.path, pkg.there, pkg.gone\n"
        "from pkg import there, VALUE, away\nfrom email import mime, message_from_string\n"
    )
    files = (cell("VALUE = 1", "[2]", "pkg/__init__.py"), cell("x = 1", "[3]", "pkg/there.py"))
    found = missing_imports(bundle_of(cell(text), *files), sys.executable)
    assert {f.code for f in found} == {"missing-submodule"}
    assert [(f.level.value, f.message.split()[2]) for f in found] == [
        ("error", "pkg.gone"),
        ("error", "pkg.away"),
        ("error", "json.decodr"),
        ("error", "xml.nothing"),
    ]
    assert found[0].fix == "Collect it in a cell with %%submarine --file pkg/gone.py."
    assert missing_imports(bundle_of(cell("import pkg.x")), sys.executable, given=["pkg"]) == []


def test_calls_that_work_in_a_notebook_only(tmp_path: Path) -> None:
    for name in ("data.csv", "out.txt", "notes.txt", "sent.csv", "data/x.npy"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    text = (
        "import pandas as pd, numpy as np\nfrom pathlib import Path\n"
        "n = input('How many? ')\npd.read_csv('data.csv')\nopen('out.txt', 'w')\nopen('out.txt')\n"
        "np.load('data/x.npy')\nPath('notes.txt').read_text()\npd.read_csv('sent.csv')\n"
        "open('/etc/hosts')\nopen('not_there.csv')\nprint('data.csv')\n"
    )
    bundle = bundle_of(cell(text))
    found = check_calls(bundle, (), directory=tmp_path, localized=["sent.csv"])
    assert [f.level for f in found] == [Level.WARNING] * 4
    assert "it has no keyboard" in found[0].message
    assert (found[0].cell, found[0].cell_line) == ("[1]", 4)
    where = os.path.relpath(tmp_path)
    assert [f.fix for f in found[1:]] == [
        f"Send it with --file {where}/data.csv.",
        f"Send it with --file {where}/data/x.npy:data/x.npy.",
        f"Send it with --file {where}/notes.txt.",
    ]
    own = bundle_of(cell("def input(x):\n    return x\ninput(3)"))
    assert check_calls(own, (), directory=tmp_path) == []


@pytest.mark.parametrize("name", ["MultiWorkerMirroredStrategy", "ParameterServerStrategy"])
def test_keras_3_cannot_fit_under_two_strategies(name: str) -> None:
    text = f"import tensorflow as tf\ns = tf.distribute.{name}()\nmodel = 1\nmodel.fit(x)\n"
    finding = only(check_calls(bundle_of(cell(text)), (), directory=None, keras=lambda: 3))
    assert (finding.code, finding.line, finding.level) == ("keras-strategy", 2, Level.WARNING)
    assert "--env TF_USE_LEGACY_KERAS=1" in finding.fix
    assert check_calls(bundle_of(cell(text)), (), directory=None, keras=lambda: 2) == []
    legacy = "import os\nos.environ['TF_USE_LEGACY_KERAS'] = '1'\n" + text
    assert check_calls(bundle_of(cell(legacy)), (), directory=None) == []
    assert check_calls(bundle_of(cell(text.replace("fit", "run"))), (), directory=None) == []


def test_a_saved_cell_that_raised_and_written_files(tmp_path: Path) -> None:
    def code(source: str, *outputs: object, tags: Sequence[str] = ()) -> object:
        return nbformat.v4.new_code_cell(source, outputs=list(outputs), metadata={"tags": tags})

    error = nbformat.v4.new_output("error", ename="ValueError", evalue="x", traceback=[])
    path = tmp_path / "a.ipynb"
    nbformat.write(
        nbformat.v4.new_notebook(
            cells=[
                code("%%writefile helper.py\nold = 1"),
                code("%%writefile helper.py\nnew = 1\n%this is kept as it is"),
                code("%%writefile -a ./helper.py\nmore = 2"),
                code("%%writefile data.json\n{}", tags=["submarine:data.py"]),
                code("from helper import new", error),
                code("1 / 0", error, tags=["raises-exception"]),
            ]
        ),
        path,
    )
    with pytest.raises(UsageError, match="cell magic"):
        bundle_from_notebook(path)  # data.json is no Python file
    document = nbformat.read(path, as_version=4)
    del document.cells[3]
    nbformat.write(document, path)
    bundle = bundle_from_notebook(path)
    assert bundle.text("helper.py") == "new = 1\n%this is kept as it is\n\nmore = 2\n"
    assert bundle.text() == "from helper import new\n\n1 / 0\n"
    raised = [f for f in check_program(bundle) if f.code == "cell-raised"]
    assert [(f.level, f.cell) for f in raised] == [(Level.WARNING, "#4")]
    assert "raised ValueError" in raised[0].message


def test_the_package_for_data_comes_with_the_job(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.symlink_to(os.path.realpath(sys.executable))
    bundle = bundle_of(cell("def f():\n    from submarine_data.remote import open_file\n"))
    assert missing_imports(bundle, str(python)) == []
    assert uses_data(bundle.files)
    assert not uses_data(bundle_of(cell("print('submarine_data')")).files)
    assert not uses_data({"note.txt": b"import submarine_data"})
    assert uses_data({}, ["python -m submarine_data"])


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import lightning as L\nL.Trainer()", ("checkpoints", "lightning_logs")),
        (
            "from pytorch_lightning import Trainer\nTrainer(default_root_dir='./runs/a')",
            ("checkpoints", "lightning_logs", "runs"),
        ),
        (
            "from transformers import TrainingArguments\nTrainingArguments('out', seed=1)",
            ("out", "tmp_trainer", "trainer_output"),
        ),
        ("import deepspeed\nengine.save_checkpoint('ckpts', tag=1)", ("ckpts",)),
        (
            "import torch.distributed.checkpoint as dcp\nPLACE = 'model'\n"
            "dcp.save(x, checkpoint_id=PLACE)",
            ("model",),
        ),
        (
            "from torch.distributed import checkpoint as dcp\nfor step in a:\n"
            "  dcp.save(x, checkpoint_id=f'ck/step_{step}')",
            ("ck",),
        ),
        ("import accelerate\na.save_state(output_dir='state')", ("state",)),
        # Not below the working directory, or not known.
        ("import accelerate\na.save_state('/data/x')\na.save_state('../x')", ()),
        ("import accelerate\na.save_state('hdfs://x/y')\na.save_state(name)", ()),
        ("import accelerate\nx = 'a'\nx = 'b'\na.save_state(x)", ()),
        # A program that makes its own directory would fail, and so would one that removes it.
        ("import accelerate, os\nos.makedirs('out')\na.save_state('out/1')", ()),
        ("import accelerate, os\nos.makedirs('out', exist_ok=True)\na.save_state('out')", ("out",)),
        ("import accelerate\nPath('out').mkdir()\na.save_state('out')", ()),
        ("import torch\ntorch.save(x, 'out/x')\nf(output_dir='out')", ()),
        ("import accelerate (", ()),
    ],
)
def test_directories_in_which_a_library_writes_checkpoints(
    source: str, expected: tuple[str, ...]
) -> None:
    assert checkpoint_links({"main.py": source.encode(), "data.csv": b"a,b"}) == expected


def test_a_directory_of_the_program_itself_is_no_link() -> None:
    files = {"main.py": b"import accelerate\na.save_state('out')", "out/helper.py": b""}
    assert checkpoint_links(files) == ()


@pytest.mark.parametrize(
    ("source", "policy", "rule"),
    [
        ("import torch", "auto", "chief, if the file names of all tasks are equal; otherwise own"),
        ("import lightning", "strict", "chief, because one task of lightning writes; union, if"),
        ("from transformers import Trainer", "auto", "union, because the tasks of transformers"),
        ("import torch.distributed.checkpoint", "auto", "union, because the tasks of torch.dist"),
        ("import deepspeed", "own", "own, because of --restore own"),
    ],
)
def test_the_rule_that_several_tasks_are_expected_to_restore_by(
    source: str, policy: str, rule: str
) -> None:
    assert expected_rule({"main.py": source.encode()}, policy).startswith(rule)
