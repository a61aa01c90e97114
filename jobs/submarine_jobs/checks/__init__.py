"""Check a program before it is submitted: syntax, names, imports, stale cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.checks.calls import check_calls as check_calls
    from submarine_jobs.checks.findings import Finding as Finding, Level as Level
    from submarine_jobs.checks.imports import (
        has_own_launcher as has_own_launcher,
        imported_modules as imported_modules,
        lacks_module as lacks_module,
        missing_imports as missing_imports,
        project_version as project_version,
        python_builtins as python_builtins,
    )
    from submarine_jobs.checks.program_check import check_program as check_program
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "calls": ("check_calls",),
            "findings": (
                "Finding",
                "Level",
            ),
            "imports": (
                "has_own_launcher",
                "imported_modules",
                "lacks_module",
                "missing_imports",
                "project_version",
                "python_builtins",
            ),
            "program_check": ("check_program",),
        },
    )
