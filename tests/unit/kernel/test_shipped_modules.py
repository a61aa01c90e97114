"""Modules that are copied into a container without the rest of the project."""

from __future__ import annotations

import ast
from importlib.resources import files

import pytest


@pytest.mark.parametrize(
    "package", ["submarine_kernel.notebook_server.container", "submarine_kernel.remote.container"]
)
def test_the_modules_import_nothing_else_of_this_project(package: str) -> None:
    imported = {
        (item.name, node.module)
        for item in files(package).iterdir()
        if item.name.endswith(".py")
        for node in ast.walk(ast.parse(item.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and not node.level and node.module
    }
    ours = {(name, module) for name, module in imported if module.startswith("submarine_")}
    # A copy of the module of the runtime replaces this file.
    allowed = {
        ("connection_limit.py", "submarine_runtime.network"),
        ("__init__.py", "submarine_runtime.lazy"),
    }
    assert ours <= allowed
