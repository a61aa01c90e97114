"""The zip that travels: the same bytes each time, nothing but the standard library, old Pythons."""

from __future__ import annotations

import ast
import hashlib
import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import submarine_runtime
from submarine_jobs.access import JobDirectory
from submarine_jobs.storage import LocalStorage
from submarine_jobs.submit import write_runtime_zip
from submarine_jobs.submit.job_directory import upload
from submarine_jobs.submit.runtime_zip import (
    data_zip,
    runtime_name,
    runtime_zip,
    without_docstrings,
)

INSTALLED = sorted(Path.home().glob(".pyenv/versions/3.*/bin/python"))
PYTHONS = [sys.executable] + [
    str(path) for path in INSTALLED if int(path.parts[-3].split(".")[1]) >= 8
]


def test_the_same_sources_give_the_same_bytes() -> None:
    first = runtime_zip()
    data = data_zip()
    for make in (runtime_zip, data_zip):
        make.cache_clear()
    assert (runtime_zip(), data_zip()) == (first, data)
    other = subprocess.run(
        [
            sys.executable,
            "-c",
            "from submarine_jobs.submit.runtime_zip import data_zip, runtime_zip\n"
            "print(runtime_zip().digest, data_zip().digest)",
        ],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert other.stdout.split() == [first.digest, data.digest]
    names = zipfile.ZipFile(io.BytesIO(first.data)).namelist()
    assert "__main__.py" in names
    assert "submarine_runtime/launcher/launch.py" in names
    assert not any("__pycache__" in name for name in names)
    assert len(first.data) < 5 << 18  # node managers keep it, but each brings it once


def test_docstrings_and_comments_are_left_out_and_lines_stay() -> None:
    source = (
        b'"""A module.\n\nIts second line.\n"""\n\ndef f():\n    """Of f."""\n    return 1  # b\n'
    )
    source += b"#: c\nx = '# d'\n"
    shipped = b'""\n\n\n\n\ndef f():\n    ""\n    return 1  # b\n\nx = \'# d\'\n'
    assert without_docstrings(source) == shipped


def test_modules_without_docstrings_are_otherwise_the_same() -> None:
    for path in sorted(Path(submarine_runtime.__file__).parent.rglob("*.py")):
        source = path.read_bytes()
        shipped = without_docstrings(source)
        assert shipped.count(b"\n") == source.count(b"\n"), path
        code, same = (statements(ast.parse(text)) for text in (source, shipped))
        assert same == code, path
        assert b'""' in shipped or b'"""' not in source, path


def statements(tree: ast.Module) -> list[tuple[int, str]]:
    """Line and content of each statement that is no docstring."""
    return [
        (node.lineno, "" if hasattr(node, "body") else ast.dump(node))
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]


def test_it_is_freed_after_an_upload_and_built_again_for_another_root(tmp_path: Path) -> None:
    for root in (tmp_path / "one", tmp_path / "other"):
        directory = JobDirectory(LocalStorage(), str(root / "job"))
        path = root / runtime_name()
        upload(directory, str(path), {"spec.json": b"{}"})
        assert runtime_zip.cache_info().currsize == 0
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert path.name == f"runtime-{digest}.zip"


@pytest.mark.parametrize("python", PYTHONS)
def test_it_runs_with_every_python_and_imports_only_the_standard_library(
    tmp_path: Path, python: str
) -> None:
    path = write_runtime_zip(tmp_path)
    assert write_runtime_zip(tmp_path) == path
    code = (
        "import sys, pkgutil, importlib\n"
        "before = set(sys.path)\n"
        f"sys.path.insert(0, {str(path)!r})\n"
        "import submarine_runtime\n"
        "for m in pkgutil.walk_packages(submarine_runtime.__path__, 'submarine_runtime.'):\n"
        "    if 'coordinator' not in m.name: importlib.import_module(m.name)\n"
        "bad = [n for n, m in sys.modules.items() if 'site-packages' in (getattr(m, '__file__', '')"
        " or '')]\n"
        "print(bad, submarine_runtime.__file__)\n"
    )
    done = subprocess.run([python, "-I", "-S", "-c", code], capture_output=True, text=True)
    assert done.stdout.startswith(f"[] {path}/submarine_runtime/__init__.py"), done.stderr
    usage = subprocess.run([python, "-I", str(path)], capture_output=True, text=True)
    assert usage.returncode == 2
    assert usage.stderr.startswith("usage: python -I runtime.zip agent|")


def test_the_same_python_uses_the_byte_code_and_another_the_source(tmp_path: Path) -> None:
    """The sources in this copy cannot be run, so whatever runs was compiled before."""
    spoilt = tmp_path / "spoilt.zip"
    with (
        zipfile.ZipFile(io.BytesIO(runtime_zip().data)) as whole,
        zipfile.ZipFile(spoilt, "w") as copy,
    ):
        for name in whole.namelist():
            ours = name.startswith("submarine_runtime/") and name.endswith(".py")
            copy.writestr(name, b"(" if ours else whole.read(name))
    done = subprocess.run([sys.executable, "-I", str(spoilt)], capture_output=True, text=True)
    assert done.stderr.startswith("usage: ")
    others = [python for python in PYTHONS if "3.8" in python]
    for python in others:
        done = subprocess.run([python, "-I", str(spoilt)], capture_output=True, text=True)
        assert "SyntaxError" in done.stderr, done.stderr
