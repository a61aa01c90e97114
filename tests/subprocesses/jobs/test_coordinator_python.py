"""The Python that travels with a distributed job, unpacked as on a node."""

from __future__ import annotations

import os
import py_compile
import subprocess
import tarfile
from pathlib import Path

from submarine_jobs.backends.yarn.application import coordinator_python
from submarine_jobs.backends.yarn.application.coordinator_python import CoordinatorPython
from submarine_jobs.environments import EnvironmentFile
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
import importlib.util, json
assert json.decoder.__file__.endswith("/json/decoder.pyc"), json.decoder.__file__
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


def test_byte_code_replaces_its_source_if_it_is_current(tmp_path: Path) -> None:
    files = []
    for name in ("current", "changed", "replaced", "compiled-never", "hashed", "cut"):
        source = tmp_path / f"{name}.py"
        source.write_text("answer = 42\n")
        files.append((f"lib/{name}.py", source))
        if name == "compiled-never":
            continue
        mode = py_compile.PycInvalidationMode["CHECKED_HASH" if name == "hashed" else "TIMESTAMP"]
        code = Path(py_compile.compile(str(source), invalidation_mode=mode) or "")
        files.append((f"lib/__pycache__/{code.name}", code))
    (tmp_path / "changed.py").write_text("answer = 4200\n")
    os.utime(tmp_path / "replaced.py", (1, 1))
    os.truncate(files[-1][1], 10)
    items = []
    for name, path in files:
        info = path.stat()
        items.append(EnvironmentFile(name, str(path), info.st_size, info.st_mtime_ns, 0o644))
    kept = [item.name for item in coordinator_python._without_sources(items)]
    assert kept == [
        "lib/current.pyc",
        "lib/changed.py",
        "lib/replaced.py",
        "lib/compiled-never.py",
        "lib/hashed.py",
        "lib/cut.py",
    ]
