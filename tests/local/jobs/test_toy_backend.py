"""The backend of ``examples/toy_backend``, installed as a package: the contract test suite on it.

And the suite on that backend without one of its methods: it names the method.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from submarine_jobs.backends import Backend
from tests.local.jobs.installed_package import SUBMARINE, install, pytest_in, python

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "toy_backend"
REQUIRED = sorted(Backend.__abstractmethods__)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which the package is installed."""
    source = tmp_path_factory.mktemp("source") / "toy"
    shutil.copytree(EXAMPLE, source, ignore=shutil.ignore_patterns("__pycache__", "test_*"))
    return install(source, tmp_path_factory.mktemp("site"))


def suite(site: Path, cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the contract test suite as the example does."""
    shutil.copy(EXAMPLE / "test_contract.py", cwd)
    return pytest_in(site, cwd, "test_contract.py", *words)


def test_the_installed_backend_passes_the_suite(site: Path, tmp_path: Path) -> None:
    done = suite(site, tmp_path)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
    assert re.search(r"^contract test suite: 16 tests in \d+\.\d s, ", done.stdout, re.MULTILINE)


def test_the_command_line_runs_jobs_on_it(site: Path, tmp_path: Path) -> None:
    (tmp_path / "hello.py").write_text("print('hello')\n", encoding="utf-8")
    done = python(site, tmp_path, *SUBMARINE, "run", "hello.py", "--backend", "toy", "--wait")
    assert done.returncode == 0, done.stderr
    assert "hello" in done.stdout
    done = python(site, tmp_path, *SUBMARINE, "list", "--backend", "toi")
    assert done.returncode == 2
    assert done.stderr.endswith("There is no backend 'toi'; installed are yarn, local, toy.\n")
    # Without the package its jobs are still listed, in their last known state.
    done = python(tmp_path, tmp_path, *SUBMARINE, "list")
    assert "hello-" in done.stdout, done.stderr


def without(source: str, method: str) -> str:
    """Return the source of a module without a method."""
    tree = ast.parse(source)
    (found,) = (
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == method
    )
    lines = source.splitlines(keepends=True)
    return "".join([*lines[: found.lineno - 1], *lines[found.end_lineno :]])


@pytest.mark.parametrize("method", REQUIRED)
def test_a_missing_method_is_named(site: Path, tmp_path: Path, method: str) -> None:
    other = tmp_path / "site"
    shutil.copytree(site, other, ignore=shutil.ignore_patterns("__pycache__"))
    module = other / "toy_backend.py"
    module.write_text(without(module.read_text("utf-8"), method), encoding="utf-8")
    done = suite(other, tmp_path, "-x", "-k", "registered")
    assert done.returncode == 1, done.stdout
    sentence = f"The backend toy is incomplete: toy_backend:ToyBackend does not define {method}."
    assert sentence in done.stdout, done.stdout


#: A change of the toy backend -> the tests that find the broken promise, and words of the message.
MUTANTS = {
    "find forgets": (
        ("return found if isinstance(found, dict) else None", "return None"),
        ("running_job", "find must find a job of another process"),
    ),
    "stop does nothing": (
        (
            "        if process is not None and process.sig",
            "        return\n        if process.sig",
        ),
        ("running_job", "observe must report ENDED"),
    ),
    "prepare waits": (
        ('"""See ``Backend.prepare``: there is nothing to prepare."""', "time.sleep(1.2)"),
        ("prepare", "prepare must return immediately"),
    ),
    "nothing is removed": (
        ("shutil.rmtree(scratch, ignore_errors=True)", "pass"),
        ("cancelled", "has left"),
    ),
    "secrets are left out": (
        (
            "                localize(submission, scratch)\n",
            "                localize(submission, scratch)\n"
            "                [path.unlink() for path in scratch.rglob('secret-env.json')]\n",
        ),
        ("secret", "The container has no value of --secret CONTRACT_TOKEN, CONTRACT_KEY"),
    ),
    "no reason": (
        ("Observation(Stage.ENDED, lost,", "Observation(Stage.ENDED, None,"),
        ("lost_agent", "observe must give a reason for a lost job"),
    ),
    "another error": (
        ("raise ClusterError(\n", "raise OSError(\n"),
        ("does_not_answer", "The toy system"),
    ),
}


@pytest.mark.full
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_broken_promise_is_found(site: Path, tmp_path: Path, mutant: str) -> None:
    (old, new), (test, words) = MUTANTS[mutant]
    other = tmp_path / "site"
    shutil.copytree(site, other, ignore=shutil.ignore_patterns("__pycache__"))
    module = other / "toy_backend.py"
    source = module.read_text("utf-8")
    assert source.count(old) == 1
    module.write_text(source.replace(old, new), encoding="utf-8")
    done = suite(other, tmp_path, "-x", "-k", test)
    assert done.returncode == 1, done.stdout
    assert words in done.stdout, done.stdout
