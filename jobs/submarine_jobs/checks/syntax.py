"""Finds what Python itself would refuse to compile. Compiles only; nothing is run."""

from __future__ import annotations

import warnings

from submarine_jobs.checks.findings import Finding, Level, finding_at, place_of
from submarine_jobs.program import Bundle


def check_syntax(bundle: Bundle) -> list[Finding]:
    """One finding for each file that this Python cannot compile."""
    findings = []
    for name, content in sorted(bundle.python_files.items()):
        found = _compile(content, name)
        if found is None:
            continue
        line, problem = found
        where = place_of(bundle, name, line)
        findings.append(
            finding_at(
                bundle,
                Level.ERROR,
                "syntax",
                f"{where[0].upper()}{where[1:]} is not valid Python: {problem}."
                if where.startswith("cell")
                else f"{where} is not valid Python: {problem}.",
                name,
                line,
                "Mend the cell and run it again." if where.startswith("cell") else "Mend the file.",
            )
        )
    return findings


def _compile(content: bytes, name: str) -> tuple[int, str] | None:
    """Line and problem, or None where the file compiles."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(content, name, "exec", dont_inherit=True)
        except SyntaxError as error:
            return error.lineno or 1, (error.msg or "syntax error").rstrip(".")
        except ValueError as error:
            line = content[: content.find(b"\0") + 1].count(b"\n") + 1
            return line, str(error).rstrip(".")
        except (RecursionError, MemoryError):
            return 1, "it is nested too deeply"
    return None
