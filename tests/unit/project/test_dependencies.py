"""Each dependency of pyproject.toml is used, in the packages that its extra is for."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from submarine_jobs.extras import EXTRAS

ROOT = Path(__file__).resolve().parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OPTIONAL = PROJECT["optional-dependencies"]
PAGE = ROOT / "docs" / "dependencies.md"
#: The package that each extra is for; all other code needs no extra. Those of `data` are imported
#: by name, on this side and in programs.
PACKAGES = {"zeppelin": "submarine_zeppelin", "workflows": "submarine_workflows"}
#: Imported by skein's generated code only; the bound is for it.
INDIRECT = {"protobuf"}


def names(requirements: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(text).name) for text in requirements}


def distributions_of(modules: set[str]) -> set[str]:
    known = packages_distributions()
    return {canonicalize_name(name) for module in modules for name in known.get(module, ())}


@cache
def imported_modules() -> dict[str, set[str]]:
    """The top-level modules that the code of each package imports, also by name."""
    found: dict[str, set[str]] = {}
    for init in sorted(ROOT.glob("*/submarine_*/__init__.py")):
        modules = found.setdefault(init.parent.name, set())
        for path in init.parent.rglob("*.py"):
            modules |= set(_imports(ast.parse(path.read_text(encoding="utf-8"))))
    return found


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield str(node.module).partition(".")[0]
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in ("require", "import_module"):
                yield str(node.args[0].value).partition(".")[0]


@pytest.mark.slow
def test_each_dependency_is_imported() -> None:
    used = distributions_of(set().union(*imported_modules().values()))
    assert names(PROJECT["dependencies"]) - used == INDIRECT


@pytest.mark.slow
@pytest.mark.parametrize("extra", PACKAGES)
def test_an_extra_is_what_its_package_imports(extra: str) -> None:
    modules = imported_modules()[PACKAGES[extra]]
    assert set(EXTRAS[extra]) <= modules
    assert distributions_of(set(EXTRAS[extra])) == names(OPTIONAL[extra])
    assert not names(OPTIONAL[extra]) & names(PROJECT["dependencies"])


@pytest.mark.parametrize("extra", PACKAGES)
def test_no_other_package_imports_the_modules_of_an_extra(extra: str) -> None:
    others = {
        package: sorted(set(EXTRAS[extra]) & modules)
        for package, modules in imported_modules().items()
        if package != PACKAGES[extra]
    }
    assert not {package: modules for package, modules in others.items() if modules}


def test_all_is_every_extra_without_spark() -> None:
    (requirement,) = map(Requirement, OPTIONAL["all"])
    assert requirement.name == PROJECT["name"]
    # Spark has 490 MB, and a SPARK_HOME replaces it.
    assert requirement.extras == set(OPTIONAL) - {"all", "spark"}


def test_the_page_lists_each_dependency() -> None:
    text = PAGE.read_text(encoding="utf-8")
    tables = text.partition("\n## Packages")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \|", tables, re.MULTILINE)
    optional = [text for extra, texts in OPTIONAL.items() if extra != "all" for text in texts]
    assert sorted(rows) == sorted(names(PROJECT["dependencies"]) | names(optional))
