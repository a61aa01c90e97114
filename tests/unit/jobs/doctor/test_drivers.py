"""The dry run compares the CUDA build of a framework with the drivers of nodes."""

from __future__ import annotations

import json
import venv
from dataclasses import replace
from pathlib import Path

import pytest

from submarine_jobs import doctor
from submarine_jobs.commands import execute
from submarine_jobs.doctor import NodeRow, cuda_warnings, remember_drivers
from submarine_jobs.doctor.nodes import judge
from submarine_jobs.frontends import Frontend
from submarine_jobs.model import JobSpec, Profile, Resources, Role
from submarine_runtime.yarn import Node, Size

#: ``torch/version.py`` of PyTorch 2.6 (CUDA 12.4), of 2.15, and of a build for CPUs.
_TORCH = """\
from typing import Optional

__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'xpu']
__version__ = '{version}'
debug = False
cuda: Optional[str] = {cuda}
git_version = '2236df1770800ffea5697b11b0bb0d910b2e59e1'
hip: Optional[str] = None
xpu: Optional[str] = None
"""


def python_with_torch(tmp_path: Path, cuda: str | None) -> str:
    """Return the interpreter of an environment with this build of PyTorch."""
    place = tmp_path / "env"
    venv.create(place, symlinks=True, with_pip=False)
    [packages] = place.glob("lib/python3*/site-packages")
    (packages / "torch").mkdir()
    (packages / "torch" / "__init__.py").write_text("raise ImportError('the probe imports it')\n")
    text = _TORCH.format(version="2.15.0", cuda=repr(cuda))
    (packages / "torch" / "version.py").write_text(text)
    return str(place / "bin" / "python")


def report(node: str, driver: str, gpus: int = 2) -> NodeRow:
    """Return the row of a node's answer, as ``doctor --nodes`` judges it."""
    found = {
        "python": {"version": "3.11.2", "path": "/usr/bin/python3"},
        "gpus": {"names": ["NVIDIA A100-SXM4-80GB"] * gpus, "driver": driver},
    }
    return judge(node, found)


def profile(tmp_path: Path) -> Profile:
    return Profile(backend="yarn", state_dir=tmp_path / "state")


def spec_of(python: str, *roles: Role, framework: str = "pytorch") -> JobSpec:
    roles = roles or (Role("worker", 2, Resources(0, 1, 1)),)
    return JobSpec("j", "yarn", roles=roles, framework=framework, python=python)


@pytest.fixture
def nodes(tmp_path: Path) -> Profile:
    """Three nodes with drivers, read by ``doctor --nodes``."""
    found = profile(tmp_path)
    rows = [report("gpu1:45454", "580.65.06"), report("gpu2:45454", "535.161.07")]
    remember_drivers(found, [*rows, report("cpu1:45454", "", 0)])
    remember_drivers(found, [report("gpu3:45454", "450.51.06")])
    return found


@pytest.mark.parametrize(
    ("cuda", "old"),
    [
        ("13.2", "580 or newer, and 2 of 3 known nodes have an older one (gpu2:45454: 535.161.07)"),
        ("12.4", "525 or newer, and 1 of 3 known nodes have an older one (gpu3:45454: 450.51.06)"),
        ("11.8", "450.80.02 or newer, and 1 of 3 known nodes"),
        ("10.2", ""),
        ("99.1", ""),
    ],
)
def test_nodes_with_too_old_drivers(tmp_path: Path, nodes: Profile, cuda: str, old: str) -> None:
    found = cuda_warnings(spec_of(python_with_torch(tmp_path, cuda)), nodes)
    if not old:
        assert found == []
        return
    [sentence] = found
    assert sentence.startswith(f"torch is built for CUDA {cuda}, which needs NVIDIA's driver {old}")


def test_only_nodes_that_the_job_may_use_count(tmp_path: Path, nodes: Profile) -> None:
    python = python_with_torch(tmp_path, "13.2")
    size = Resources(0, 1, 1)
    assert cuda_warnings(spec_of(python, Role("worker", 2, size, nodes=("gpu1",))), nodes) == []
    assert cuda_warnings(spec_of(python, Role("w", 1, size, avoid=("gpu2", "gpu3"))), nodes) == []
    [sentence] = cuda_warnings(spec_of(python, Role("w", 1, size, nodes=("gpu3",))), nodes)
    assert "1 of 1 known nodes" in sentence
    preferred = Role("w", 1, size, nodes=("gpu1",), relax=True)
    assert "2 of 3" in cuda_warnings(spec_of(python, preferred), nodes)[0]


def test_nothing_is_said_where_it_is_unknown(tmp_path: Path, nodes: Profile) -> None:
    python = python_with_torch(tmp_path, "13.2")
    assert cuda_warnings(spec_of(str(tmp_path / "nowhere" / "python")), nodes) == []
    assert cuda_warnings(spec_of(python), replace(nodes, name="other")) == []
    assert cuda_warnings(spec_of(python, framework="any"), nodes) == []
    assert cuda_warnings(spec_of(python, framework="mxnet"), nodes) == []
    assert cuda_warnings(spec_of(python, Role("worker", 2, Resources(0, 1, 0))), nodes) == []
    assert cuda_warnings(replace(spec_of(python), docker_image="team/image:1"), nodes) == []
    # A file that another program has damaged, and a driver that was read long ago.
    [file] = (nodes.state_dir / "nodes").iterdir()
    file.write_text(json.dumps({"gpu9:1": ["450.51.06", 1.0]}))
    assert cuda_warnings(spec_of(python), nodes) == []
    file.write_text("[{")
    assert cuda_warnings(spec_of(python), nodes) == []


def test_a_build_without_cuda(tmp_path: Path) -> None:
    python = python_with_torch(tmp_path, None)
    [sentence] = cuda_warnings(spec_of(python), profile(tmp_path))
    assert sentence.startswith(f"torch of {python} is built without CUDA, so it will not use")


def test_the_plugin_of_jax_names_its_cuda(tmp_path: Path, nodes: Profile) -> None:
    python = python_with_torch(tmp_path, "13.2")
    [packages] = tmp_path.glob("env/lib/python3*/site-packages")
    (packages / "jax").mkdir()
    assert cuda_warnings(spec_of(python, framework="jax"), nodes) == []
    (packages / "jax_cuda12_plugin").mkdir()
    [sentence] = cuda_warnings(spec_of(python, framework="jax"), nodes)
    assert sentence.startswith("jax is built for CUDA 12, which needs NVIDIA's driver 525 or newer")


def test_a_node_that_has_lost_its_gpus_is_forgotten(tmp_path: Path, nodes: Profile) -> None:
    remember_drivers(nodes, [report("gpu2:45454", "", 0), report("gpu3:45454", "590.1")])
    assert cuda_warnings(spec_of(python_with_torch(tmp_path, "13.2")), nodes) == []


def test_doctor_keeps_the_drivers_that_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = Size()
    node = Node("gpu2", "gpu2:45454", "/rack", "RUNNING", (), empty, empty, empty)
    monkeypatch.setattr(doctor, "running_nodes", lambda context: [node])
    rows = [report("gpu2:45454", "535.161.07")]
    monkeypatch.setattr(doctor, "probe_nodes", lambda *arguments: rows)
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    outcome = execute(["doctor", "--nodes", "--backend", "yarn"], Frontend())
    assert "535.161.07" in outcome.text
    [sentence] = cuda_warnings(spec_of(python_with_torch(tmp_path, "13.2")), profile(tmp_path))
    assert "1 of 1 known nodes have an older one (gpu2:45454: 535.161.07)" in sentence


def test_the_dry_run_has_the_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the local backend the driver is that of this machine."""
    smi = tmp_path / "nvidia-smi"
    smi.write_text("#!/bin/sh\nprintf '535.161.07\\n535.161.07\\n'\n")
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("import torch\n")
    python_with_torch(tmp_path, "13.2")
    words = ["run", "train.py", "--backend", "local", "--gpu", "1", "--dry-run"]
    words += ["--python-env", f"path:{tmp_path / 'env'}"]
    outcome = execute(words, Frontend())
    told = "torch is built for CUDA 13.2, which needs NVIDIA's driver 580 or newer"
    old = "and 1 of 1 known nodes have an older one (this machine: 535.161.07)"
    assert f"warning     {told}, {old}: install" in outcome.text
    assert any(told in sentence for sentence in outcome.value["plan"]["warnings"])
    smi.write_text("#!/bin/sh\necho 580.105.08\n")
    assert "built for CUDA" not in execute(words, Frontend()).text
