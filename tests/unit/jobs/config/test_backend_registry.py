"""Backends by entry point: lookup, errors, and no cost for those of this package."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from submarine_jobs.backends import Backend
from submarine_jobs.backends.local import LocalBackend
from submarine_jobs.client import Session
from submarine_jobs.commands import complete, execute
from submarine_jobs.config import backend_registry, load_config
from submarine_jobs.errors import ConfigError, UsageError
from submarine_jobs.frontends import Frontend
from submarine_jobs.model import Profile

ROOT = Path(__file__).resolve().parents[4]


class AbacusBackend(LocalBackend):
    """A complete backend with a setting of its own."""

    name = "abacus"
    settings = {"abacus_beads": "Number of beads."}


class WithoutStop(Backend):
    """A backend without its methods."""

    name = "abacus"


class Misnamed(LocalBackend):
    """A backend with the name of another one."""


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Class that is installed as ``abacus``."""
    values = ["AbacusBackend"]

    def find(*, group: str) -> list[EntryPoint]:
        assert group == "submarine.backends"
        value = values[0] if ":" in values[0] else f"{__name__}:{values[0]}"
        return [EntryPoint("abacus", value, group), EntryPoint("local", "no:Thing", group)]

    monkeypatch.setattr("importlib.metadata.entry_points", find)
    backend_registry._installed.cache_clear()
    yield values
    backend_registry._installed.cache_clear()


def test_the_own_entry_points_are_those_of_pyproject() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["submarine.backends"] == backend_registry._OWN


@pytest.mark.slow
def test_the_own_backends_need_no_metadata(tmp_path: Path) -> None:
    program = (
        "import sys; from submarine_jobs.client import Session\n"
        "from submarine_jobs.config import load_config\n"
        "Session(load_config({'backend': 'local'}, environ={}).profile).backend().job_root()\n"
        "print('importlib.metadata' in sys.modules)"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout == "False\n", done.stderr


def test_another_package_adds_a_backend_and_replaces_none(
    installed: list[str], tmp_path: Path
) -> None:
    assert backend_registry.backend_names() == ("yarn", "local", "abacus")
    session = Session(Profile(backend="abacus", state_dir=tmp_path))
    assert isinstance(session.backend(), AbacusBackend)
    assert type(session.backend("local")) is LocalBackend
    words = complete(["run", "--backend", "a"], Frontend())
    assert [word.partition("\t")[0] for word in words] == ["abacus"]


def test_an_unknown_name_lists_the_installed_ones(installed: list[str], tmp_path: Path) -> None:
    sentence = "There is no backend 'slurm'; installed are yarn, local, abacus."
    with pytest.raises(UsageError) as caught:
        Session(Profile(backend="slurm", state_dir=tmp_path)).backend()
    assert str(caught.value) == sentence
    with pytest.raises(UsageError) as caught:
        execute(["list", "--backend", "slurm"], Frontend())
    assert str(caught.value) == f"--backend: {sentence}"
    with pytest.raises(ConfigError) as failed:
        load_config(environ={"SUBMARINE_BACKEND": "slurm"}, cwd=tmp_path)
    assert str(failed.value) == (
        f"backend = 'slurm' from SUBMARINE_BACKEND is not valid: {sentence}"
    )


def test_its_settings_are_known_with_it_only(installed: list[str], tmp_path: Path) -> None:
    options = {"settings.abacus_beads": "9", "backend": "abacus"}
    found = load_config(options, environ={}, cwd=tmp_path).profile.settings
    assert found == {"abacus_beads": "9"}
    with pytest.raises(ConfigError, match="There is no setting 'abacus_beads'"):
        load_config({**options, "backend": "local"}, environ={}, cwd=tmp_path)


def test_its_settings_in_a_project_need_confirmation(
    installed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBMARINE_CONFIG", "")
    (tmp_path / "submarine.toml").write_text('[settings]\nabacus_beads = "9"\n')
    with pytest.raises(ConfigError, match=r"settings\.abacus_beads, which decides what runs"):
        load_config({"backend": "abacus"}, cwd=tmp_path)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("WithoutStop", "The backend abacus is incomplete: .*:WithoutStop does not define find, "),
        ("Misnamed", "the attribute name of .*:Misnamed is 'local', which must be the name of"),
        ("ROOT", "The backend abacus cannot be used: .* is not a subclass of "),
        ("nowhere:Thing", "cannot be loaded from nowhere:Thing: No module named 'nowhere'"),
    ],
)
def test_a_class_that_is_no_backend(
    installed: list[str], tmp_path: Path, value: str, sentence: str
) -> None:
    installed[0] = value
    with pytest.raises(UsageError, match=sentence):
        Session(Profile(backend="abacus", state_dir=tmp_path)).backend()
