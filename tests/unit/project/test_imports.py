"""Costs of imports: what a process loads at its start, and why an import is in a function."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = sorted(path.parent for path in ROOT.glob("*/submarine_*/__init__.py"))
LISTS = Path(__file__).with_name("loaded_modules.toml")
HEADER = """\
# The modules of this project, by package, and the other distributions' packages that a process has
# loaded at its start. tests/unit/project/test_imports.py compares this file with new processes.
# To update it: python tests/unit/project/test_imports.py
"""
#: Imports in functions. Lower this number when an import is removed or moved to the top.
FUNCTION_LEVEL_IMPORTS = 175

_SHELL = """
from traitlets.config import Config
from IPython.core.interactiveshell import InteractiveShell
config = Config()
config.HistoryManager.enabled = False
shell = InteractiveShell(config=config)
before = set(sys.modules)
shell.run_line_magic("load_ext", "submarine_magics")
"""
_COMMAND = """
from submarine_jobs.cli import main
sys.argv[1:] = {words}
with contextlib.redirect_stdout(io.StringIO()):
    main()
"""
_VERB = """
from importlib import import_module
from submarine_runtime.__main__ import VERBS
import_module(VERBS[{verb!r}])
"""
PROCESSES = {
    "%load_ext submarine_magics": _SHELL,
    "submarine --help": _COMMAND.format(words=["--help"]),
    "submarine list": _COMMAND.format(words=["list", "--backend", "local"]),
    "agent of a job with one task": (
        _VERB.format(verb="agent")
        + "from submarine_runtime.agent.single_task import SingleTaskAgent"
    ),
    "agent of a gang": (
        _VERB.format(verb="agent") + "from submarine_runtime.agent.gang_task import TaskAgent"
    ),
    "coordinator": _VERB.format(verb="coordinator"),
    "supervisor of the coordinator": _VERB.format(verb="supervise"),
}
_PROGRAM = """
import contextlib, io, json, sys
before = set(sys.modules)
{code}
before = {{name.partition(".")[0] for name in before}} | sys.stdlib_module_names
loaded = [name for name in sys.modules if name.partition(".")[0] not in before]
print(json.dumps(sorted(loaded)))
"""


def loaded_modules(process: str) -> dict[str, list[str]]:
    """Modules by package that are loaded in a new process, and packages of others."""
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM.format(code=PROCESSES[process])],
            env={"HOME": home, "PATH": os.environ["PATH"]},
            cwd=home,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode == 0, done.stderr
    names: list[str] = json.loads(done.stdout)
    ours = [name for name in names if name.startswith("submarine_")]
    found = {"others": sorted({name.partition(".")[0] for name in {*names} - {*ours}})}
    for name in ours:
        package, _, module = name.rpartition(".")
        if any(other.startswith(f"{name}.") for other in ours):
            found.setdefault(name, [])
        elif package:
            found.setdefault(package, []).append(module)
        else:
            found[name] = []
    return found


@pytest.mark.slow
@pytest.mark.parametrize("process", PROCESSES)
def test_a_process_loads_the_listed_modules_at_its_start(process: str) -> None:
    listed = tomllib.loads(LISTS.read_text(encoding="utf-8"))[process]
    found = loaded_modules(process)
    others = set(found.pop("others")) - set(listed.pop("others"))
    assert not others
    assert found == listed, f"see {LISTS.name}"


def function_level_imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line of each import in a function of a module, and the comment above its block."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    inside = {
        node.lineno: node
        for function in ast.walk(ast.parse(text))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    ends = {node.end_lineno: line for line, node in inside.items()}
    for line in inside:
        first = line
        while first - 1 in ends:
            first = ends[first - 1]
        comment = first - 1
        while lines[comment - 2].strip().startswith("#"):
            comment -= 1
        yield line, lines[comment - 1].strip()


@pytest.mark.slow
def test_each_import_in_a_function_states_the_cost_that_it_avoids() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{line}": comment
        for package in PACKAGES
        for path in package.rglob("*.py")
        for line, comment in function_level_imports(path)
    }
    missing = [place for place, comment in found.items() if not comment.startswith("# cost: ")]
    assert not missing
    assert len(found) <= FUNCTION_LEVEL_IMPORTS, f"{len(found)} imports are in functions"


if __name__ == "__main__":
    tables = [
        "\n".join([f'["{process}"]', *(f'"{key}" = {json.dumps(value)}' for key, value in modules)])
        for process in PROCESSES
        for modules in [loaded_modules(process).items()]
    ]
    LISTS.write_text(HEADER + "\n" + "\n\n".join(tables) + "\n", encoding="utf-8")
