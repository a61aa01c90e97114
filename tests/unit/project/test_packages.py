"""Packages of the project: their public APIs, and the files that the architecture page names."""

from __future__ import annotations

import ast
import re
import warnings
from importlib import import_module
from importlib.util import resolve_name
from pathlib import Path
from typing import cast

import pytest

ROOT = Path(__file__).parents[3]
TOPS = {
    "runtime": "submarine_runtime",
    "data": "submarine_data",
    "jobs": "submarine_jobs",
    "magics": "submarine_magics",
    "kernel": "submarine_kernel",
    "minicluster": "submarine_minicluster",
    "server_ext": "submarine_server",
    "workflows": "submarine_workflows",
    "zeppelin": "submarine_zeppelin",
}
PACKAGES = [
    ".".join(path.parent.relative_to(ROOT / folder).parts)
    for folder, top in TOPS.items()
    for path in sorted((ROOT / folder / top).rglob("__init__.py"))
    if "lazy_exports(" in path.read_text(encoding="utf-8")
]


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_each_name_of_a_stub_is_exported(package: str) -> None:
    folder = next(key for key, top in TOPS.items() if top == package.split(".")[0])
    path = ROOT / folder / Path(*package.split("."))
    stub = ast.parse((path / "__init__.pyi").read_text(encoding="utf-8"))
    assert [ast.unparse(node) for node in stub.body if not isinstance(node, ast.ImportFrom)] == []
    names = [alias.name for node in stub.body for alias in cast("ast.ImportFrom", node).names]
    # A name that equals a submodule would be replaced by that module once it is imported.
    assert [name for name in names if (path / f"{name}.py").exists()] == []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other projects, at their first import
        module = import_module(package)
        assert [name for name in names if not hasattr(module, name)] == []
    assert set(names) <= set(dir(module))


def public_names() -> dict[tuple[str, str], str]:
    """Return the package that exports a name, by the name's module and the name."""
    exports = {}
    for package in PACKAGES:
        folder = next(key for key, top in TOPS.items() if top == package.split(".")[0])
        stub = ROOT / folder / Path(*package.split("."), "__init__.pyi")
        for node in ast.parse(stub.read_text(encoding="utf-8")).body:
            assert isinstance(node, ast.ImportFrom)
            module = resolve_name("." * node.level + (node.module or ""), package)
            # A package also exports names of other packages, which are public there.
            if module.startswith(f"{package}.") and module not in PACKAGES:
                exports.update({(module, alias.name): package for alias in node.names})
    return exports


@pytest.mark.slow
def test_exported_names_are_imported_from_their_package() -> None:
    exports = public_names()
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}: import {alias.name} from {package}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if (package := exports.get((node.module or "", alias.name)))
    ]
    assert not wrong, "\n".join(wrong)


def test_each_file_that_the_feature_table_names_exists() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text.partition("| feature | file |")[2].partition("\n## ")[0]
    files = re.findall(r"\| `([^`]+)` \|", table)
    assert len(files) >= 40
    assert [name for name in files if not (ROOT / name).is_file()] == []


def test_each_step_of_the_data_paths_is_one_module() -> None:
    text = (ROOT / "docs" / "data-paths.md").read_text(encoding="utf-8")
    paths = text.split("\n## ")[1:]
    for path in paths:
        steps = re.findall(r"^\d+\. `([^`]+)` ", path, re.MULTILINE)
        assert 10 < len(steps) <= 15
        assert [name for name in steps if not (ROOT / name).is_file()] == []
    assert len(paths) == 2
