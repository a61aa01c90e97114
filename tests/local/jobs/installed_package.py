"""Packages that extend Submarine, installed into a directory beside this environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

#: Seconds; the machine may be busy.
SECONDS = 400
SUBMARINE = ("-c", "import sys; from submarine_jobs.cli import main; sys.exit(main())")


def install(source: Path, target: Path) -> Path:
    """Install the package of a directory into ``target``, without its dependencies."""
    command = [
        *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
        *("--no-deps", "--no-build-isolation", "--no-index", "--target", str(target), str(source)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    return target


def python(
    site: Path, cwd: Path, *words: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run Python with the packages of ``site``, without the user's configuration."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SUBMARINE_", "HADOOP_", "PYTEST_"))
    }
    environment = {
        **kept,
        "PYTHONPATH": str(site),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "SUBMARINE_STATE_DIR": str(cwd / "state"),
        "SUBMARINE_CONFIG": "",
        **variables,
    }
    return subprocess.run(
        [sys.executable, *words],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


def pytest_in(site: Path, cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run pytest on files of ``cwd``."""
    options = ("-q", "-p", "no:cacheprovider", "--basetemp", str(cwd / "tmp"))
    patience = os.environ.get("TOY_PATIENCE", "120")
    return python(site, cwd, "-m", "pytest", *options, *words, TOY_PATIENCE=patience)
