"""Check a program before it is submitted: syntax, names, imports, stale cells."""

from __future__ import annotations

from submarine_jobs.checks.findings import Finding, Level
from submarine_jobs.checks.imports import missing_imports
from submarine_jobs.checks.program_check import check_program

__all__ = ["Finding", "Level", "check_program", "missing_imports"]
