"""The Python that travels with a distributed job, unpacked as on a node."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

from submarine_jobs.backends.yarn.application.coordinator_python import CoordinatorPython
from submarine_jobs.storage import LocalStorage

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import sys
from submarine_runtime.yarn import import_skein
skein = import_skein()
assert skein.__file__.startswith(sys.prefix), skein.__file__
assert hasattr(skein.proto, "AppMasterStub")
spec = skein.ApplicationSpec(name="x", master=skein.Master(script="true"))
assert skein.ApplicationSpec.from_protobuf(spec.to_protobuf()) == spec
import importlib.util
print(*(name for name in ("distutils", "setuptools") if importlib.util.find_spec(name)))
"""


def test_it_imports_skein_without_distutils(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    archive = CoordinatorPython(LocalStorage(), str(cache), tmp_path / "state").path()
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path / "unpacked", filter="fully_trusted")
    done = subprocess.run(
        [tmp_path / "unpacked" / "bin" / "python3", "-c", PROGRAM],
        env={"PYTHONPATH": str(ROOT / "runtime"), "HOME": str(tmp_path)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "\n"
