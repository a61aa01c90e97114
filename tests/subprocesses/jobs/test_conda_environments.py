"""``conda:NAME``: an environment of a channel in a directory, packed and run elsewhere."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from submarine_jobs.environments import provide_environment
from submarine_jobs.errors import UsageError
from submarine_jobs.model import parse_python_env
from submarine_jobs.storage import LocalStorage

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[3]
CONDA = ROOT / ".venv-conda"


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the environment ``toys``."""
    if not (CONDA / "bin/python").exists():
        pytest.skip("scripts/setup.sh conda makes .venv-conda")
    if platform.machine() != "x86_64":
        pytest.skip("the channel has packages for linux-64")
    root = tmp_path_factory.mktemp("conda")
    script = str(Path(__file__).with_name("conda_channel.py"))
    words = [sys.base_prefix, str(root / "channel"), str(root / "envs" / "toys")]
    subprocess.run([str(CONDA / "bin/python"), script, *words], check=True, timeout=900)
    return root / "envs"


@pytest.fixture
def packer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """conda-pack of the other environment, without the rest of it."""
    (tmp_path / "packer").mkdir()
    for found in CONDA.glob("lib/python3*/site-packages/conda_pack*"):  # with its metadata
        (tmp_path / "packer" / found.name).symlink_to(found)
    monkeypatch.syspath_prepend(str(tmp_path / "packer"))


@pytest.mark.usefixtures("packer")
@pytest.mark.parametrize("by", ["name", "path"])
def test_conda_environment_runs_elsewhere(
    environments: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    monkeypatch.setenv("CONDA_ENVS_PATH", str(environments))
    text = f"conda:{'toys' if by == 'name' else environments / 'toys'}"
    storage, cache, state = LocalStorage(), str(tmp_path / "cache"), tmp_path / "state"
    first = provide_environment(parse_python_env(text), storage, cache, state)
    again = provide_environment(parse_python_env(text), storage, cache, state)
    assert first is not None
    assert again is not None
    assert (again.files, again.uploaded) == (first.files, 0)
    assert first.uploaded > 1_000_000
    place = tmp_path / "elsewhere"
    place.mkdir()
    archive = first.files.archive.removeprefix("file://")
    subprocess.run(["tar", "-xzf", archive, "-C", str(place)], check=True)
    code = "import json, sys, toy; print(json.dumps([toy.VALUE, sys.prefix]))"
    done = subprocess.run(
        [str(place / "bin/python3"), "-I", "-c", code], capture_output=True, check=True, env={}
    )
    assert json.loads(done.stdout) == [42, str(place)]


@pytest.mark.usefixtures("packer")
def test_new_package_changes_the_environment(environments: Path, tmp_path: Path) -> None:
    from submarine_jobs.environments.conda import conda_fingerprint

    prefix = environments / "toys"
    before = conda_fingerprint(str(prefix))
    (prefix / "conda-meta" / "more-1.0-0.json").write_text("{}")
    try:
        assert conda_fingerprint(str(prefix)) != before
    finally:
        (prefix / "conda-meta" / "more-1.0-0.json").unlink()


def test_without_conda_pack_the_sentence_names_it(
    environments: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "conda_pack", None)
    env = parse_python_env(f"conda:{environments / 'toys'}")
    with pytest.raises(UsageError, match="conda-pack, which is not installed"):
        provide_environment(env, LocalStorage(), str(tmp_path / "cache"), tmp_path / "state")
