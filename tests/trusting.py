"""Confirm a project's file as its user; the confirmation is stored in ``XDG_STATE_HOME``."""

from __future__ import annotations

from pathlib import Path

from submarine_jobs.commands import execute
from submarine_jobs.frontends import Frontend


def trusted(file: Path) -> None:
    """Run ``submarine config trust FILE --yes``."""
    execute(["config", "trust", str(file), "--yes"], Frontend())
