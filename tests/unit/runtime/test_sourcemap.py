"""Tracebacks: frames of the program name cells, everything else stays as it is."""

from __future__ import annotations

import io
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from submarine_jobs.program import Cell, build_bundle
from submarine_runtime.protocol import CellSegment, SourceMap

MAP = SourceMap(
    {
        "main.py": [CellSegment(1, 3, "[1]", "a", 2), CellSegment(5, 9, "[4]", None, 7)],
        "pkg/model.py": [CellSegment(2, 2, "#3", "c", 2)],
        "pkg/__init__.py": [],
    }
)


def test_lookup_at_the_edges() -> None:
    assert MAP.lookup("main.py", 1) == ("[1]", "a", 2)
    assert MAP.lookup("main.py", 3) == ("[1]", "a", 4)
    assert MAP.lookup("main.py", 4) is None
    assert MAP.lookup("main.py", 5) == ("[4]", None, 7)
    assert MAP.lookup("main.py", 9) == ("[4]", None, 11)
    assert MAP.lookup("main.py", 10) is None
    assert MAP.lookup("main.py", 0) is None
    assert MAP.lookup("pkg/__init__.py", 1) is None


def test_bytes_round_trip() -> None:
    assert SourceMap.from_bytes(MAP.to_bytes()) == MAP
    assert hash(SourceMap.from_bytes(MAP.to_bytes())) == hash(MAP)


@pytest.mark.parametrize(
    "data",
    [
        b"[]",
        b"{}",
        b'{"version": 2, "files": {}}',
        b'{"version": 1, "files": []}',
        b'{"version": 1, "files": {"a": [{"start": 3, "end": 1, "cell": "x", "line": 1}]}}',
        b'{"version": 1, "files": {"a": [{"start": 1}]}}',
        b"nonsense",
    ],
)
def test_what_is_no_map_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        SourceMap.from_bytes(data)


def test_the_forms_of_a_frame() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/c/program/main.py", line 6, in <module>\n'
        "    f()\n"
        '  File "/c/program/pkg/model.py", line 2, in f\n'
        '  File "/usr/lib/python3.11/json/main.py", line 2, in load\n'
        '  File "/c/other/main.py", line 2, in g\n'
        '  File "/c/program/main.py", line 4, in generated\n'
        '  File "./main.py", line 1\r\n'
        '  + Exception Group Traceback\n  |   File "main.py", line 2, in h\n'
        'He said File "main.py", line 2\n'
        '  File "main.py", line 99999999999999999999, in x\n'
    )
    mapped = MAP.map_traceback(text).splitlines()
    plain = text.splitlines()
    assert mapped[1] == '  Cell [4] "main.py", line 8, in <module>'
    assert mapped[3] == '  Cell #3 "pkg/model.py", line 2, in f'
    assert mapped[4:7] == plain[4:7]
    assert mapped[7] == '  Cell [1] "main.py", line 2'
    assert mapped[9] == '  |   Cell [1] "main.py", line 3, in h'
    assert mapped[10:] == plain[10:]
    frames = MAP.frames(text)
    assert [frame.position.label if frame.position else None for frame in frames] == [
        "[4]",
        "#3",
        None,
        None,
        None,
        "[1]",
        "[1]",
    ]
    assert frames[0].function == "<module>"


def test_the_root_decides_where_it_is_given() -> None:
    text = '  File "/other/main.py", line 1, in x\n  File "/c/main.py", line 1, in y\n'
    assert MAP.map_traceback(text, "/c/").count("Cell") == 1
    assert MAP.map_traceback(text, "/c").splitlines()[0] == text.splitlines()[0]


def test_a_library_file_of_the_same_name_is_not_taken_for_the_program() -> None:
    text = '  File "/venv/lib/python3.11/site-packages/keras/main.py", line 1, in x\n'
    assert MAP.map_traceback(text) == text


PROGRAM = """\
from model import fit, Chain
try:
    fit(0)
except ZeroDivisionError as error:
    raise ValueError("chained") from error
"""
MODEL = "def fit(n):\n    return (1 /\n            n)\nclass Chain: pass"


def test_a_real_chained_traceback(tmp_path: Path) -> None:
    cells = [
        Cell("m", MODEL, "model.py", "[2]"),
        Cell("p", "import sys\n", "main.py", "[1]"),
        Cell("q", PROGRAM, "main.py", "[3]"),
    ]
    bundle = build_bundle(cells)
    with zipfile.ZipFile(io.BytesIO(bundle.zip_bytes())) as archive:
        archive.extractall(tmp_path)
    result = subprocess.run(
        [sys.executable, str(tmp_path / "main.py")],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    mapped = bundle.source_map.map_traceback(result.stderr)
    assert 'Cell [3] "main.py", line 4, in <module>' in mapped
    assert 'Cell [2] "model.py", line 3, in fit' in mapped
    assert 'Cell [3] "main.py", line 6, in <module>' in mapped
    assert str(tmp_path) not in mapped
    assert "ZeroDivisionError: division by zero" in mapped


def test_a_real_syntax_error(tmp_path: Path) -> None:
    bundle = build_bundle([Cell("p", "import bad"), Cell("q", "x = 1\ny = (", "bad.py", "[2]")])
    with zipfile.ZipFile(io.BytesIO(bundle.zip_bytes())) as archive:
        archive.extractall(tmp_path)
    result = subprocess.run(
        [sys.executable, "main.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert 'Cell [2] "bad.py", line 3\n' in bundle.source_map.map_traceback(result.stderr)


@given(st.text(alphabet='File "main.py", line 12in\n\t|+-/<>é\r', max_size=300))
def test_text_without_frames_stays_as_it_is(text: str) -> None:
    mapped = MAP.map_traceback(text)
    if not MAP.frames(text):
        assert mapped == text
    assert mapped.count("\n") == text.count("\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        " " * 2_000_000,
        '  File "' * 200_000,
        'File "' + "a" * 2_000_000,
        '  File "/x/main.py", line ' + "1" * 2_000_000,
        '  File "/x/main.py", line 1, in ' + "f" * 2_000_000,
        '  File "/x/y.py", line 1\n' * 80_000,
        "| + -\t" * 300_000,
    ],
)
def test_hostile_text_takes_linear_time(text: str) -> None:
    start = time.thread_time()
    MAP.map_traceback(text)
    assert time.thread_time() - start < 2
