"""`submarine_data` from the zip of a job, in an interpreter without this project."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from submarine_data.remote import CONFIGURATION_VARIABLE
from submarine_jobs.submit.runtime_zip import data_zip
from submarine_runtime.protocol import to_json
from tests.unit.data.remote.webhdfs_server import serving

IMPORTS = """\
import importlib, pkgutil, sys
sys.path = [place for place in sys.path if "site-packages" not in place] + [sys.argv[1]]
import submarine_data
names = [
    found.name
    for found in pkgutil.walk_packages(submarine_data.__path__, "submarine_data.")
    if found.name != "submarine_data.remote.fsspec_hdfs"
]
for name in names:
    importlib.import_module(name)
assert submarine_data.__file__.startswith(sys.argv[1])
assert sys.modules["submarine_runtime"].__file__.startswith(sys.argv[1])
print(len(names), submarine_data.open_file("hdfs:///d/a.txt").read().decode())
"""

REGISTERS = """\
import sys
import submarine_data
assert "fsspec" not in sys.modules
import fsspec
assert type(fsspec.__spec__.loader).__name__ == "SourceFileLoader"
print(fsspec.open("hdfs:///d/a.txt").open().read())
print([fsspec.get_filesystem_class(name).__module__ for name in ("hdfs", "webhdfs", "viewfs")])
fsspec.register_implementation("hdfs", fsspec.AbstractFileSystem, clobber=True)
submarine_data.register_filesystem()
print(fsspec.get_filesystem_class("hdfs").__module__)
"""


def run(tmp_path: Path, *command: str) -> list[str]:
    """Run a program that reads from a server; return the lines that it prints."""
    with serving() as state:
        state.files = {"/d/a.txt": b"content"}
        path = tmp_path / "configuration.json"
        path.write_text(json.dumps({"hdfs": to_json(state.configuration.hdfs), "user": "a"}))
        environ = {**os.environ, CONFIGURATION_VARIABLE: str(path)}
        done = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_all_modules_are_imported_from_the_zip(tmp_path: Path) -> None:
    package = tmp_path / "submarine_data.zip"
    package.write_bytes(data_zip().data)
    python = os.path.realpath(sys.executable)
    (line,) = run(tmp_path, python, "-I", "-c", IMPORTS, str(package))
    number, text = line.split()
    assert int(number) >= 10
    assert text == "content"


def test_fsspec_uses_it_in_a_container(tmp_path: Path) -> None:
    ours = "submarine_data.remote.fsspec_hdfs"
    lines = run(tmp_path, sys.executable, "-c", REGISTERS)
    assert lines == ["b'content'", str([ours] * 3), ours]
