"""Install the wheel with each extra into an empty environment, use it, and print a table of sizes.

In each environment every feature either works, or says in one sentence which command installs its
extra. TensorFlow's environment has more than a gigabyte.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import venv
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

from wheel_test import (
    JUPYTERLAB,
    PROGRAM,
    build_wheel,
    check_extra_missing,
    environment,
    run,
)

ROOT = Path(__file__).resolve().parent.parent
#: TensorFlow's byte code takes minutes on a busy machine.
INSTALL_SECONDS = 1800
#: Each installation, and the extras that it has.
INSTALLATIONS = {
    "": (),
    "data": ("data",),
    "zeppelin": ("zeppelin",),
    "workflows": ("workflows",),
    "tensorflow": ("tensorflow",),
    "all": ("data", "zeppelin", "workflows", "tensorflow"),
}
FLOW = """nodes:
  - name: hello
    type: command
    config: {command: echo hello from the node}
"""
NOTEBOOK = {
    "cells": [{"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [],
               "id": "one", "source": "print(6 * 7)"}],
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python"}},
    "nbformat": 4, "nbformat_minor": 5,
}  # fmt: skip
SKEIN = "from submarine_runtime.yarn import import_skein; import_skein()"
READING = """
import pathlib
import submarine_data
from importlib.util import find_spec
pathlib.Path("lines.txt").write_text("a\\nb\\n")
print([record["text"] for record in submarine_data.open_dataset("lines.txt").records()])
if find_spec("pyarrow"):
    import pyarrow, pyarrow.parquet
    pyarrow.parquet.write_table(pyarrow.table({"x": [1, 2]}), "x.parquet")
    print([record["x"] for record in submarine_data.open_dataset("x.parquet").records()])
"""
LEARNING = """
import numpy, sklearn, tensorboard, tensorflow
print(float(tensorflow.reduce_sum(tensorflow.constant([1.0, 2.0]))))
"""


@dataclass(frozen=True)
class Sizes:
    """The distributions of an environment with the bytes of their files."""

    packages: dict[str, int]

    def without(self, other: Sizes) -> Sizes:
        """Return the packages that the other environment lacks."""
        left = {name: size for name, size in self.packages.items() if name not in other.packages}
        return Sizes(left)

    def __str__(self) -> str:
        return f"{len(self.packages)} | {sum(self.packages.values()) / 1e6:.0f}"


def main() -> None:
    """Build, install, use, measure."""
    chosen = sys.argv[1:] or list(INSTALLATIONS)
    with tempfile.TemporaryDirectory(prefix="submarine-extras-") as scratch:
        work = Path(scratch)
        cache = os.environ.get("PIP_CACHE_DIR", str(Path.home() / ".cache" / "pip"))
        env = {**environment(work), "PIP_CACHE_DIR": cache}
        wheel = build_wheel(work, env)
        lab = sizes(install(work / "lab", JUPYTERLAB, work, env))
        rows = [f"| JupyterLab | {lab} | | |"]
        for name in chosen:
            extra = "" if name in ("", "base") else name
            place = work / (extra or "base")
            binaries = install(place, f"{wheel}[{extra}]" if extra else str(wheel), work, env)
            check(binaries, INSTALLATIONS[extra], place, env)
            found = sizes(binaries)
            rows.append(f"| {f'[{extra}]' if extra else 'base'} | {found} | {found.without(lab)} |")
    print("\n| | packages | MB | packages over JupyterLab | MB over JupyterLab |")
    print("\n".join(["|---|---|---|---|---|", *rows]))


def install(place: Path, what: str, work: Path, env: dict[str, str]) -> Path:
    """Install into a new environment; return its programs."""
    venv.create(place, with_pip=True)
    binaries = place / "bin"
    pip = (binaries / "python", "-m", "pip")
    # Python 3.11 adds it to each environment.
    run(*pip, "uninstall", "--quiet", "--yes", "setuptools", cwd=work, env=env)
    run(*pip, "install", "--quiet", what, cwd=work, env=env, timeout=INSTALL_SECONDS)
    return binaries


def sizes(binaries: Path) -> Sizes:
    """Return the distributions beside pip, which every environment has, and this project."""
    packages = next(binaries.parent.glob("lib/python3*/site-packages"))
    found = {}
    for distribution in distributions(path=[str(packages)]):
        name = distribution.name.lower().replace("_", "-")
        if name not in ("pip", "jupyter-submarine"):
            files = (Path(str(distribution.locate_file(file))) for file in distribution.files or ())
            found[name] = sum(file.stat().st_size for file in files if file.is_file())
    return Sizes(found)


def check(binaries: Path, extras: tuple[str, ...], place: Path, env: dict[str, str]) -> None:
    """Use what is there; what is missing names its extra."""
    work = place / "work"
    work.mkdir()
    env = {**env, "HOME": str(work), "XDG_DATA_HOME": str(work / "data"),
           "PATH": f"{binaries}{os.pathsep}{env['PATH']}"}  # fmt: skip
    submarine = binaries / "submarine"
    (work / "hello.py").write_text(PROGRAM, encoding="utf-8")
    run(submarine, "run", "hello.py", "--backend", "local", "--wait", cwd=work, env=env)
    listed = run(
        binaries / "jupyter", "server", "extension", "list", cwd=work, env=env, errors=True
    )
    if not any("submarine_server" in line and "OK" in line for line in listed.splitlines()):
        sys.exit(f"the server extension is not valid:\n{listed}")
    run(binaries / "python", "-c", SKEIN, cwd=work, env=env)
    read = run(binaries / "python", "-c", READING, cwd=work, env=env)
    if "['a', 'b']" not in read or ("[1, 2]" in read) != ("data" in extras):
        sys.exit(f"submarine_data read something else:\n{read}")
    (work / "a.flow").write_text(FLOW, encoding="utf-8")
    (work / "a.ipynb").write_text(json.dumps(NOTEBOOK), encoding="utf-8")
    (work / "zeppelin" / "interpreter").mkdir(parents=True)
    if "workflows" in extras:
        check_workflows(binaries, work, env)
    else:
        for words in ("workflow run a.flow", "run a.ipynb -o b.ipynb"):
            check_extra_missing(submarine, words, "workflows", work, env)
    if "zeppelin" in extras:
        run(submarine, "zeppelin", "install", "zeppelin", cwd=work, env=env)
        probe = "import submarine_zeppelin.service.process, submarine_zeppelin.installation.checks"
        run(binaries / "python", "-c", probe, cwd=work, env=env)
    else:
        check_extra_missing(submarine, "zeppelin install zeppelin", "zeppelin", work, env)
    if "tensorflow" in extras and "3.0" not in run(
        binaries / "python", "-c", LEARNING, cwd=work, env=env
    ):
        sys.exit("TensorFlow does not add")


def check_workflows(binaries: Path, work: Path, env: dict[str, str]) -> None:
    """Run a workflow, and a notebook by both commands."""
    submarine = binaries / "submarine"
    run(submarine, "workflow", "run", "a.flow", cwd=work, env=env)
    said = run(submarine, "workflow", "logs", "last", cwd=work, env=env)
    if "hello from the node" not in said:
        sys.exit(f"the node printed something else: {said}")
    run(submarine, "run", "a.ipynb", "-o", "b.ipynb", cwd=work, env=env)
    papermill = (binaries / "papermill", "--engine", "submarine", "a.ipynb", "c.ipynb")
    run(*papermill, cwd=work, env=env)
    for name in ("b.ipynb", "c.ipynb"):
        if '"42\\n"' not in (work / name).read_text(encoding="utf-8"):
            sys.exit(f"{name} has not the output of its cell")


if __name__ == "__main__":
    main()
