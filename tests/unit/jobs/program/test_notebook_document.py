"""Reading notebook documents of all ages and states, and bundles made from files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest

from submarine_jobs.checks import check_program
from submarine_jobs.errors import UsageError
from submarine_jobs.program import (
    NotebookError,
    bundle_from_file,
    bundle_from_notebook,
    notebook_document as notebook,
    read_notebook,
)
from submarine_jobs.program.notebook_document import parse_notebook
from submarine_jobs.program.scripts import bundle_from_script


def code(source: Any, count: int | None = None, **more: Any) -> dict[str, Any]:
    output = {"output_type": "stream", "name": "stdout", "text": "secret output"}
    return {
        "cell_type": "code",
        "source": source,
        "execution_count": count,
        "metadata": {},
        "outputs": [output],
        **more,
    }


def text(source: str, **more: Any) -> dict[str, Any]:
    return {"cell_type": "markdown", "source": source, "metadata": {}, **more}


def saved(*cells: dict[str, Any], minor: int = 5, metadata: Any = None) -> bytes:
    data = {"nbformat": 4, "nbformat_minor": minor, "metadata": metadata or {}, "cells": cells}
    return json.dumps(data).encode()


def test_code_cells_in_order_with_ids_and_labels() -> None:
    document = parse_notebook(
        saved(code("a = 1", 7, id="x"), text("# Title", id="t"), code(["b = 1\r\n", "c"], id="y"))
    )
    assert [(c.cell_id, c.source, c.label) for c in document.cells] == [
        ("x", "a = 1", "[7]"),
        ("y", "b = 1\nc", "#3"),
    ]


def test_the_snapshot_has_no_outputs_and_does_not_change_by_running() -> None:
    metadata = {"widgets": {"state": "secret output"}, "language_info": {"name": "python"}}
    first = parse_notebook(saved(code("a", 1, id="x"), text("t", id="t"), metadata=metadata))
    again = parse_notebook(saved(code("a", 5, id="x"), text("t", id="t"), metadata=metadata))
    assert first.snapshot == again.snapshot
    assert b"secret output" not in first.snapshot
    nbformat.validate(nbformat.reads(first.snapshot.decode(), as_version=4))


def test_a_document_without_ids_gets_none() -> None:
    first = parse_notebook(saved(code("a"), text("t"), minor=4))
    assert [c.cell_id for c in first.cells] == [None]
    assert first.snapshot == parse_notebook(saved(code("a"), text("t"), minor=4)).snapshot
    nbformat.validate(nbformat.reads(first.snapshot.decode(), as_version=4))


def test_version_3() -> None:
    cell = {
        "cell_type": "code",
        "input": "a = 1",
        "prompt_number": 3,
        "language": "python",
        "outputs": [],
        "metadata": {},
    }
    data = {
        "nbformat": 3,
        "nbformat_minor": 0,
        "metadata": {"name": "old"},
        "worksheets": [{"cells": [cell], "metadata": {}}],
    }
    document = parse_notebook(json.dumps(data).encode())
    assert [(c.cell_id, c.source, c.label) for c in document.cells] == [(None, "a = 1", "[3]")]
    assert document.snapshot == parse_notebook(json.dumps(data).encode()).snapshot


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"1",
        b"\xff\xfe",
        b"{}",
        b'{"nbformat": "4"}',
        b'{"nbformat": 99}',
        b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": {}}',
        b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [1]}',
        b'{"nbformat": 4, "nbformat_minor": 5, "metadata": [], "cells": []}',
        b'{"nbformat": 3, "metadata": {}, "worksheets": 1}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_notebook_is_refused(data: bytes) -> None:
    with pytest.raises(NotebookError, match="notebook"):
        parse_notebook(data)


def test_a_document_that_is_not_there_or_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NotebookError, match="No such file"):
        read_notebook(tmp_path / "gone.ipynb")
    with pytest.raises(NotebookError, match="cannot be read"):
        read_notebook(tmp_path)
    path = tmp_path / "n.ipynb"
    path.write_bytes(saved(code("a")))
    assert read_notebook(path).modified == path.stat().st_mtime
    monkeypatch.setattr(notebook, "MAX_BYTES", 10)
    with pytest.raises(NotebookError, match="larger"):
        read_notebook(path)


def test_marked_cells_of_a_notebook_make_the_program(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    path.write_bytes(
        saved(
            code("import secret_of_the_notebook", 1, id="a"),
            code("%%submarine --file model.py\nx = 1", 2, id="b"),
            code("\n%%submarine\nimport model\n", None, id="c"),
            code("%%submarine run digits --gpu 1\nprint(model.x)", None, id="d"),
        )
    )
    bundle = bundle_from_notebook(path)
    assert bundle.text() == "import model\n\nprint(model.x)\n"
    assert bundle.text("model.py") == "x = 1\n"
    assert bundle.source_map.lookup("main.py", 1) == ("#3", "c", 3)
    assert bundle.source_map.lookup("model.py", 1) == ("[2]", "b", 2)
    assert bundle.notebook is not None
    assert b"digits" in bundle.notebook


def test_all_code_cells_where_none_is_marked(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    path.write_bytes(saved(code("%matplotlib inline\na = 1", 1), code(""), code("print(a)", 2)))
    bundle = bundle_from_file(path)
    assert bundle.text() == "# %matplotlib inline\na = 1\n\nprint(a)\n"
    assert bundle.source_map.lookup("main.py", 4) == ("[2]", None, 1)
    assert len(bundle.notices) == 1


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            saved(code("x")).replace(
                b'"metadata": {}, "cells"', b'"metadata": {"language_info": {"name": "R"}}, "cells"'
            ),
            "in r",
        ),
        (saved(text("only text")), "no code cell"),
        (saved(code("%%submarine --file ../x.py\na", 4)), r"Cell \[4\]: --file"),
        (saved(code("%%bash\nls", 5)), r"Cell \[5\], line 1"),
    ],
)
def test_notebooks_that_are_no_program(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "n.ipynb"
    path.write_bytes(data)
    with pytest.raises(UsageError, match=words):
        bundle_from_notebook(path)


def write(directory: Path, **files: str) -> None:
    for name, content in files.items():
        path = directory / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def test_a_script_takes_along_what_it_imports_and_nothing_else(tmp_path: Path) -> None:
    write(
        tmp_path,
        train="import os, helper\nfrom pkg.sub import thing\ndef f():\n    import late\n",
        helper="import json\nfrom other import x\n",
        other="x = 1\n",
        late="",
        unrelated="",
        pkg__sub="from . import near\nfrom .far import y\n",
        pkg__near="",
        pkg__far="y = 1",
        pkg__unused="",
    )
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "data.csv").write_text("1")
    bundle = bundle_from_script(tmp_path / "train.py")
    assert bundle.program == "train.py"
    assert set(bundle.files) == {
        "train.py",
        "helper.py",
        "other.py",
        "late.py",
        "pkg/__init__.py",
        "pkg/sub.py",
        "pkg/near.py",
        "pkg/far.py",
    }
    (notice,) = bundle.notices
    assert "other.py" in notice.message
    assert notice.message.endswith("are taken along, because train.py imports them.")
    (finding,) = check_program(bundle_from_file(tmp_path / "helper.py"))
    assert str(finding.level) == "note"
    assert finding.message == "other.py is taken along, because helper.py imports it."
    assert bundle.zip_bytes() == bundle_from_script(tmp_path / "train.py").zip_bytes()


def test_a_script_may_be_called_as_scripts_are_and_keeps_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "my-train.v2.py"
    path.write_bytes(b"# coding: latin-1\nx = '\xe9'\r\n")
    assert bundle_from_file(path).files == {"my-train.v2.py": path.read_bytes()}


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("gone.py", None, "No such file"),
        ("a b.py", "", "Rename it"),
        ("train.txt", "", "neither"),
        ("train.py", "import random\n", "hides"),
    ],
)
def test_scripts_that_are_refused(
    tmp_path: Path, name: str, content: str | None, words: str
) -> None:
    (tmp_path / "random.py").write_text("")
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(UsageError, match=words):
        bundle_from_file(tmp_path / name)
