"""ipykernel's own tests, from its source archive, with the kernel of this project.

pip downloads the source archive of the installed version and the packages that its tests need into
``out/`` once. Neither becomes a part of this project or of its environment. The kernel ``python3``,
which these tests start, is replaced by the kernel of this project, and so is the class of the
kernel that they create in their own process.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from submarine_kernel.kernelspecs import kernel_json
from tests.notebook.conftest import clean_environment

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / "out" / f"ipykernel-{version('ipykernel')}"
NEEDED = ("pytest-asyncio", "flaky", "pytest-cov", "coverage", "ipyparallel", "decorator", "tqdm")
PLUGINS = (
    "pytest_asyncio.plugin",
    "flaky.flaky_pytest_plugin",
    "pytest_cov.plugin",
    "pytest_timeout",
)
#: Interrupt, input(), asyncio cells, subshells, debugger, rich output; a second each.
SELECTION = (
    "tests/test_async.py",
    "tests/test_kernel.py::test_raw_input",
    "tests/test_kernel.py::test_interrupt_during_input",
    "tests/test_kernel.py::test_print_to_correct_cell_from_thread",
    "tests/test_kernel.py::test_shutdown",
    "tests/test_debugger.py::test_stop_on_breakpoint",
    "tests/test_message_spec.py::test_display_data",
    "tests/test_message_spec.py::test_oinfo",
    "tests/test_subshells.py::test_thread_ids",
)
SUBSTITUTE = '''
"""Puts our kernel in the place of ipykernel's, for tests that make one in their own process.

The application stays: it is a singleton, and those tests know its class.
"""
import ipykernel.ipkernel

from submarine_kernel.app import SubmarineKernel

ipykernel.ipkernel.IPythonKernel = SubmarineKernel
'''


def pip(*words: str) -> None:
    """Run pip; report the end of its output on failure."""
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"the registry gave no {words[-1]}: {done.stderr[-2000:]}"


@pytest.fixture(scope="module")
def suite() -> Path:
    """Directory with ``tests`` of ipykernel and ``site`` with the packages that they need."""
    if not (CACHE / "complete").exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        name = f"ipykernel=={version('ipykernel')}"
        pip("download", "--no-deps", "--no-binary", "ipykernel", "--dest", str(CACHE), name)
        # All other dependencies are installed.
        pip("install", "--no-deps", "--upgrade", "--target", str(CACHE / "site"), *NEEDED)
        (archive,) = CACHE.glob("ipykernel-*.tar.gz")
        # Filters exist since Python 3.11.4; Debian 12 has an older version.
        safe: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        with tarfile.open(archive) as packed:
            packed.extractall(CACHE, **safe)
        (CACHE / "complete").touch()
    return CACHE


def run_suite(suite: Path, folder: Path, *tests: str, timeout: float) -> tuple[int, str]:
    """Run ipykernel's tests; return exit code and output."""
    (source,) = (path for path in suite.glob("ipykernel-*") if path.is_dir())
    spec = folder / "share" / "jupyter" / "kernels" / "python3"
    spec.mkdir(parents=True)
    (spec / "kernel.json").write_text(json.dumps(kernel_json()))
    (folder / "site").mkdir()
    (folder / "site" / "submarine_substitute.py").write_text(SUBSTITUTE)
    work = folder / "work"
    work.mkdir()
    (work / "tests").symlink_to(source / "tests")
    (work / "pyproject.toml").symlink_to(source / "pyproject.toml")
    environment = {
        **clean_environment(folder),
        "JUPYTER_PATH": str(folder / "share" / "jupyter"),
        "PYTHONPATH": os.pathsep.join([str(folder / "site"), str(suite / "site")]),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    words = [part for name in ("submarine_substitute", *PLUGINS) for part in ("-p", name)]
    words += ["-p", "no:cacheprovider", "--timeout", "120", "-rfE"]
    words += ["-o", "addopts=", "-o", "log_cli=false"]
    words += ["-o", "asyncio_default_fixture_loop_scope=function"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--color=no", *words, *tests],
        cwd=work,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def passed(output: str) -> int:
    """Return the number of passed tests, from pytest's summary."""
    found = re.findall(r"(\d+) passed", output)
    return int(found[-1]) if found else 0


@pytest.mark.full
def test_a_selection_of_ipykernels_tests(suite: Path, tmp_path: Path) -> None:
    code, output = run_suite(suite, tmp_path, *SELECTION, timeout=300)
    assert code == 0, output[-5000:]
    assert passed(output) >= 10, output[-2000:]


def test_the_suite_runs_the_kernel_of_the_project(suite: Path, tmp_path: Path) -> None:
    """Otherwise the other tests would test ipykernel."""
    probe = tmp_path / "test_probe.py"
    probe.write_text(
        "from ipykernel.ipkernel import IPythonKernel\n"
        "from jupyter_client.manager import run_kernel\n"
        "def test_ours():\n"
        "    assert IPythonKernel.__module__ == 'submarine_kernel.app'\n"
        "    with run_kernel() as client:\n"
        "        reply = client.inspect('%submarine run', reply=True, timeout=90)\n"
        "    assert 'Run a program' in reply['content']['data']['text/plain']\n"
    )
    code, output = run_suite(suite, tmp_path, str(probe), timeout=120)
    assert code == 0, output[-5000:]
    assert passed(output) == 1


@pytest.mark.full
@pytest.mark.timeout(1900)  # Three minutes on an idle machine.
def test_the_whole_suite(suite: Path, tmp_path: Path) -> None:
    # The window of Tk, which the suite tests if matplotlib is installed, needs a display.
    window = "tests/test_matplotlib_eventloops.py::test_matplotlib_gui[tk]"
    left = [] if os.environ.get("DISPLAY") else ["--deselect", window]
    code, output = run_suite(suite, tmp_path, "tests", *left, timeout=1800)
    assert code == 0, output[-5000:]
    assert passed(output) >= 200, output[-2000:]
