"""Packages of the project: their public APIs, and the files that the architecture page names."""

from __future__ import annotations

import ast
import re
import warnings
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TOPS = {
    "runtime": "submarine_runtime",
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


def source_of(package: str) -> tuple[ast.Module, Path]:
    """The syntax tree and the folder of a package."""
    folder = next(key for key, top in TOPS.items() if top == package.split(".")[0])
    path = ROOT / folder / Path(*package.split("."))
    return ast.parse((path / "__init__.py").read_text(encoding="utf-8")), path


@pytest.mark.parametrize("package", PACKAGES)
def test_the_lazy_exports_are_those_that_type_checkers_see(package: str) -> None:
    tree, path = source_of(package)
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        (str(node.module).removeprefix(f"{package}."), alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    (call,) = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "lazy_exports"
    ]
    exports: dict[str, tuple[str, ...]] = ast.literal_eval(call.args[1])
    assert {(module, name) for module, names in exports.items() for name in names} == seen
    # A name that equals a submodule would be replaced by that module once it is imported.
    assert [name for _, name in seen if (path / f"{name}.py").exists()] == []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other projects, at their first import
        assert [name for _, name in seen if not hasattr(import_module(package), name)] == []


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
