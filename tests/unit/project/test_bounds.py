"""The version bounds of pyproject.toml: lower ones above published vulnerabilities, upper ones."""

from __future__ import annotations

import tomllib
import zipfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
import skein
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ADVISORIES = tomllib.loads((Path(__file__).parent / "advisories.toml").read_text(encoding="utf-8"))
#: Groups whose versions are exact, for tests of an old release, or follow one project's own.
OLD = ("mxnet", "xgboost-older", "airflow")


def requirements() -> Iterator[Requirement]:
    project = PROJECT["project"]
    yield from map(Requirement, PROJECT["build-system"]["requires"])
    yield from map(Requirement, project["dependencies"])
    for extra in project["optional-dependencies"].values():
        yield from map(Requirement, extra)
    for name, group in PROJECT["dependency-groups"].items():
        if name not in OLD:
            yield from map(Requirement, group)


def lowest(requirement: Requirement) -> Version | None:
    found = [Version(one.version) for one in requirement.specifier if one.operator in (">=", "==")]
    return max(found, default=None)


@pytest.mark.parametrize("requirement", list(requirements()), ids=str)
def test_no_lower_bound_admits_a_published_vulnerability(requirement: Requirement) -> None:
    entry = ADVISORIES.get(canonicalize_name(requirement.name))
    if entry is None:
        return
    bound = lowest(requirement)
    assert bound is not None, f"{requirement.name} has no lower bound"
    assert bound >= Version(entry["fixed"]), entry["advisory"]


def test_every_advisory_is_of_a_dependency() -> None:
    assert set(ADVISORIES) <= {canonicalize_name(one.name) for one in requirements()}
    assert list(ADVISORIES) == sorted(ADVISORIES)


def test_every_dependency_has_a_lower_bound() -> None:
    project = PROJECT["project"]
    for text in (*project["dependencies"], *chain(*project["optional-dependencies"].values())):
        requirement = Requirement(text)
        assert requirement.name == project["name"] or lowest(requirement) is not None, text


@pytest.mark.parametrize("name", ["protobuf", "grpcio", "skein"])
def test_skein_and_what_it_leaves_open_have_an_upper_bound(name: str) -> None:
    found = next(
        one
        for one in map(Requirement, PROJECT["project"]["dependencies"])
        if canonicalize_name(one.name) == name
    )
    assert [one.version for one in found.specifier if one.operator == "<"]


def test_skein_has_native_code_for_one_processor() -> None:
    """docs/yarn.md describes what this means for others."""
    with zipfile.ZipFile(Path(skein.__file__).parent / "java" / "skein.jar") as jar:
        native = [name for name in jar.namelist() if name.startswith("META-INF/native/lib")]
    assert [name.rpartition("tcnative_")[2] for name in native] == ["linux_x86_64.so"]
    page = (ROOT / "docs" / "yarn.md").read_text(encoding="utf-8")
    assert "native\ncode for x86_64 only" in page
