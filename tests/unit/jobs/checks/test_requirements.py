"""Requirements of imported libraries, in an environment of projects that are only metadata."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from submarine_jobs.checks import required_projects
from submarine_jobs.commands.run import parse_run
from submarine_jobs.model import Profile
from submarine_jobs.options import spec_from_options
from submarine_jobs.program import Cell, build_bundle


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("environment")
    (root / "bin").mkdir()
    base = os.path.realpath(sys.executable)
    (root / "pyvenv.cfg").write_text(f"home = {os.path.dirname(base)}\n")
    (root / "bin/python3").symlink_to(base)
    packages = root / f"lib/python3.{sys.version_info[1]}/site-packages"
    add(packages, "torch", (), "torch")
    add(packages, "tensorflow", (), "tensorflow")
    add(packages, "Some_Trainer", ("middle>=1", "odd ; extra == 'all'"), "some_trainer")
    add(packages, "middle", ("numpy", "torch (>=2)", "absent"), "middle")
    add(packages, "other-name", ("tensorflow; python_version > '3'",), "inside")
    add(packages, "plain", ("numpy", "torch; extra == 'torch'"), "plain")
    return str(root / "bin/python3")


def add(packages: Path, name: str, requires: Sequence[str], module: str) -> None:
    place = packages / f"{name}-1.0.dist-info"
    place.mkdir(parents=True)
    lines = [f"Requires-Dist: {one}" for one in requires]
    text = "\n".join(["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0", *lines, ""])
    (place / "METADATA").write_text(text)
    (place / "RECORD").write_text(f"{module}/__init__.py,,\n")


def test_requirements_through_other_projects(python: str) -> None:
    asked = ["some_trainer", "inside", "plain", "sklearn", "unknown"]
    found = required_projects(python, asked, ["jax", "torch", "tensorflow"])
    assert found == {"torch": "some_trainer", "tensorflow": "inside"}
    assert required_projects(python, ["plain"], ["torch"]) == {}
    assert required_projects("/no/python3", ["some_trainer"], ["torch"]) == {}


def test_an_interpreter_that_cannot_be_queried_is_the_reason(tmp_path: Path) -> None:
    broken = tmp_path / "python3"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    bundle = build_bundle([Cell("cell-1", "import x_y", label="[1]", execution_count=1)])
    profile = Profile(backend="local", python=str(broken))
    spec = spec_from_options(parse_run(["job", "--name", "job"]), profile, bundle)
    assert spec.framework == "any"
    assert spec.framework_reason.endswith(f"were not read: {broken} could not be queried")


@pytest.mark.parametrize(
    ("source", "framework", "reason"),
    [
        ("import torch", "pytorch", "the program imports torch"),
        (
            "import some_trainer",
            "pytorch",
            "the program imports some_trainer, which requires torch",
        ),
        (
            "from inside import x",
            "tensorflow",
            "the program imports inside, which requires tensorflow",
        ),
        ("import plain, json", "any", ""),
    ],
)
def test_the_spec_has_framework_and_reason(
    python: str, source: str, framework: str, reason: str
) -> None:
    bundle = build_bundle([Cell("cell-1", source, label="[1]", execution_count=1)])
    profile = Profile(backend="local", python=python)
    spec = spec_from_options(parse_run(["job", "--name", "job"]), profile, bundle)
    assert (spec.framework, spec.framework_reason) == (framework, reason)


@pytest.mark.parametrize("word", ["caffe", "Theano", "sklearn"])
def test_words_of_systems_without_a_shared_training(python: str, word: str) -> None:
    bundle = build_bundle([Cell("cell-1", "import torch", label="[1]", execution_count=1)])
    options = parse_run(["job", "--name", "job", "--framework", word])
    spec = spec_from_options(options, Profile(backend="local", python=python), bundle)
    assert (spec.framework, spec.framework_reason) == ("any", "")


@pytest.mark.parametrize(
    ("source", "words", "memory"),
    [
        ("import torch", "", 2048),
        ("import torch", "--gpu 4", 2048),
        ("import lightning", "--gpu 4", 2048 + 3 * 1536),
        ("import torch", "--worker 2 --gpu 4", 2048 + 3 * 1536),
        ("import torch", "--processes 2", 2048 + 1536),
        ("import torch", "--worker 2 --gpu 4 --memory 8G", 8192),
        ("import tensorflow", "--worker 2 --gpu 4", 2048),
    ],
)
def test_the_default_memory_suffices_for_the_processes(
    python: str, source: str, words: str, memory: int
) -> None:
    bundle = build_bundle([Cell("cell-1", source, label="[1]", execution_count=1)])
    options = parse_run(["job", "--name", "job", *words.split()])
    spec = spec_from_options(options, Profile(backend="yarn", python=python), bundle)
    assert spec.worker.resources.memory == memory
