"""Bundling: the same cells give the same bytes, and every line leads back to its cell."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from submarine_jobs.errors import UsageError
from submarine_jobs.program import Bundle, Cell, build_bundle
from submarine_runtime.protocol import SourceMap


def cell(text: str, label: str = "[1]", filename: str = "main.py", first_line: int = 2) -> Cell:
    return Cell(label.strip("[]"), text, filename, label, None, first_line)


def run(bundle: Bundle, directory: Path) -> subprocess.CompletedProcess[str]:
    with zipfile.ZipFile(io.BytesIO(bundle.zip_bytes())) as archive:
        archive.extractall(directory)
    command = [sys.executable, str(directory / bundle.program)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def test_cells_of_one_file_are_merged_with_a_blank_line_between() -> None:
    bundle = build_bundle([cell("a = 1\n\n"), cell("b = 2", "[2]"), cell("x", "[3]", "p/m.py")])
    assert bundle.text() == "a = 1\n\nb = 2\n"
    assert bundle.text("p/m.py") == "x\n"
    assert bundle.files["p/__init__.py"] == b""
    assert bundle.source_map.lookup("main.py", 1) == ("[1]", "1", 2)
    assert bundle.source_map.lookup("main.py", 2) is None
    assert bundle.source_map.lookup("main.py", 3) == ("[2]", "2", 2)
    assert bundle.source_map.lookup("main.py", 4) is None
    assert bundle.source_map.lookup("other.py", 1) is None


def test_the_zip_holds_program_map_and_notebook() -> None:
    bundle = build_bundle([cell("a = 1")], notebook=b"{}")
    with zipfile.ZipFile(io.BytesIO(bundle.zip_bytes())) as archive:
        names = archive.namelist()
        assert names == [".submarine/notebook.ipynb", ".submarine/sourcemap.json", "main.py"]
        data = json.loads(archive.read(".submarine/sourcemap.json"))
        assert data == {
            "version": 1,
            "files": {
                "main.py": [{"start": 1, "end": 1, "cell": "[1]", "cell_id": "1", "line": 2}]
            },
        }
        assert SourceMap.from_json(data) == bundle.source_map


@pytest.mark.slow
def test_bytes_and_digest_are_those_of_every_machine() -> None:
    bundle = build_bundle([cell("x = 'é'"), cell("y = 1", "[2]", "pkg/m.py")])
    assert bundle.digest.startswith("8bccd79852450ada")
    digest = hashlib.sha256(bundle.zip_bytes()).hexdigest()
    assert digest.startswith("8ad5bf0a22b6f566")
    assert (
        bundle.zip_bytes()
        == build_bundle([cell("y = 1", "[2]", "pkg/m.py"), cell("x = 'é'")]).zip_bytes()
    )


def test_labels_and_snapshot_do_not_change_the_digest_but_code_does() -> None:
    first = build_bundle([cell("a = 1")], notebook=b"1")
    assert first.digest == build_bundle([cell("a = 1", "[9]")], notebook=b"2").digest
    assert first.digest != build_bundle([cell("a = 2")]).digest
    renamed = build_bundle([cell("a = 1", filename="other.py")], program="other.py")
    assert first.digest != renamed.digest


LINES = st.lists(
    st.sampled_from(["a = 1", "", "b = 2  # c", "%matplotlib inline", "!ls"]), max_size=6
)
FUTURE = ["", "from __future__ import annotations\n", "'''doc\nstring'''\n"]


@given(st.lists(st.tuples(st.sampled_from(FUTURE), LINES, st.booleans()), min_size=1, max_size=6))
def test_every_line_of_a_cell_is_found_again(parts: list[tuple[str, list[str], bool]]) -> None:
    cells = [
        cell(start + "\n".join(lines), f"[{n}]", "m.py" if module else "main.py", n + 1)
        for n, (start, lines, module) in enumerate(parts, start=1)
    ]
    cells.append(cell("end = 1", "[99]"))
    bundle = build_bundle(cells)
    assert bundle.zip_bytes() == build_bundle(list(cells)).zip_bytes()
    seen = set()
    for file in bundle.files:
        text = bundle.text(file)
        compile(text, file, "exec")
        for number, line in enumerate(text.split("\n")[:-1], start=1):
            position = bundle.source_map.lookup(file, number)
            if position is None:
                assert line == "" or line.startswith("from __future__")
                continue
            source = next(c for c in cells if c.label == position.label)
            original = source.source.split("\n")[position.line - source.first_line]
            assert line == original or line in ("# " + original, "pass", "# " + original.strip())
            seen.add((position.label, position.line))
    assert seen == {
        (c.label, c.first_line + n) for c in cells for n in range(len(c.source.split("\n")))
    }


def test_future_imports_move_below_the_docstring(tmp_path: Path) -> None:
    bundle = build_bundle(
        [
            cell('"""A program."""\nx = 1'),
            cell(
                "y = 2; from __future__ import annotations; z = 3\nfrom __future__ import (\n"
                "    division,\n    annotations as a,\n)\nprint(__doc__, x, y, z)\n1 / 0",
                "[2]",
            ),
        ]
    )
    assert len(bundle.notices) == 1
    assert "annotations, division" in bundle.notices[0].message
    result = run(bundle, tmp_path)
    assert result.stdout == "A program. 1 2 3\n"
    assert 'Cell [2] "main.py", line 8' in bundle.source_map.map_traceback(result.stderr)


def test_a_future_import_that_cannot_be_moved_is_refused() -> None:
    text = "x = 1; from __future__ import (\n annotations)"
    with pytest.raises(UsageError, match=r"Cell \[2\], line 2"):
        build_bundle([cell("a = 1"), cell(text, "[2]")])


def test_an_encoding_declaration_does_not_bind_the_file(tmp_path: Path) -> None:
    bundle = build_bundle([cell("# -*- coding: latin-1 -*-\nprint(ascii('é'))")])
    assert run(bundle, tmp_path).stdout == "'\\xe9'\n"


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([], "No cell is collected"),
        ([cell("a = 1", filename="model.py")], "there are cells of model.py only"),
        ([cell("a"), cell("b", filename="m.py"), cell("c", filename="m/x.py")], "only one of them"),
        ([cell("x = '\ud800'")], "not valid Unicode"),
        ([cell("x = !ls")], r"Cell \[1\], line 2"),
    ],
)
def test_what_is_no_program_is_refused(cells: list[Cell], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        build_bundle(cells)


def test_a_program_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("submarine_jobs.program.job_bundle.MAX_BYTES", 1 << 20)
    with pytest.raises(UsageError, match="larger than 1 MiB"):
        build_bundle([cell("x = '" + "a" * (1 << 20) + "'")])


def test_200_cells_take_less_than_50_ms() -> None:
    body = "import os\n\ndef f{0}(x):\n    '''Doc of {0}.'''\n    return x % {0}\n\n" * 4
    cells = [cell(body.format(n), f"[{n}]", f"m{n % 7}.py") for n in range(199)]
    cells.append(cell("%matplotlib inline\nawaited = 1", "[200]"))
    best = min(_seconds(cells) for _ in range(3))
    assert best < 0.05


def _seconds(cells: list[Cell]) -> float:
    start = time.thread_time()
    build_bundle(cells).zip_bytes()
    return time.thread_time() - start
