"""The kernelspec: what is installed, where, and what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from jupyter_client.kernelspec import KernelSpecManager

from submarine_jobs.commands import Mouth, execute
from submarine_jobs.errors import SubmarineError, UsageError
from submarine_kernel.install import install_kernel, kernel_json


def test_kernel_json_starts_our_kernel_with_this_interpreter() -> None:
    spec = kernel_json()
    assert spec["argv"] == [sys.executable, "-m", "submarine_kernel", "-f", "{connection_file}"]
    assert spec["display_name"] == "Python + Submarine"
    assert spec["language"] == "python"
    assert spec["metadata"]["debugger"] is True


def test_install_uninstall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share" / "jupyter"))
    outcome = execute(["kernel", "install", "--prefix", str(tmp_path)], Mouth())
    place = Path(outcome.value["path"])
    assert place == tmp_path / "share" / "jupyter" / "kernels" / "submarine"
    assert {item.name for item in place.iterdir()} == {
        "kernel.json",
        "logo-32x32.png",
        "logo-64x64.png",
        "logo-svg.svg",
    }
    assert "submarine" in KernelSpecManager().find_kernel_specs()
    again = execute(
        ["kernel", "install", "--prefix", str(tmp_path), "--display-name", "Mine"], Mouth()
    )
    assert "Mine" in again.text
    assert json.loads((place / "kernel.json").read_text())["display_name"] == "Mine"
    assert "Removed" in execute(["kernel", "uninstall"], Mouth()).text
    assert not place.exists()


@pytest.mark.parametrize("name", ["", "a b", "../x", "ü", "x" * 200])
def test_impossible_names_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be a kernel's name"):
        install_kernel(name=name, prefix=str(tmp_path))


def test_other_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share" / "jupyter"))
    with pytest.raises(UsageError, match="exclude each other"):
        execute(["kernel", "install", "--user", "--prefix", str(tmp_path)], Mouth())
    with pytest.raises(UsageError, match="no kernel"):
        execute(["kernel", "uninstall", "--name", "nothing-here"], Mouth())
    other = tmp_path / "share" / "jupyter" / "kernels" / "other"
    other.mkdir(parents=True)
    spec = {"argv": ["other", "{connection_file}"], "display_name": "Other", "language": "x"}
    (other / "kernel.json").write_text(json.dumps(spec))
    with pytest.raises(UsageError, match="not one of Submarine's"):
        execute(["kernel", "uninstall", "--name", "other"], Mouth())
    (tmp_path / "file").write_text("")
    with pytest.raises(SubmarineError, match="cannot be written"):
        install_kernel(prefix=str(tmp_path / "file"))
