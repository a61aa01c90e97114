"""What can be known of a program before it is submitted: syntax, names, imports, stale cells.

Reads the bundle, the collection and the saved document; runs nothing of the user's. The size of
the job and the cluster are judged by the backends.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence

from submarine_jobs.checks.findings import Finding, Level
from submarine_jobs.checks.imports import python_builtins
from submarine_jobs.checks.names import check_names, check_returned
from submarine_jobs.checks.stale import check_document
from submarine_jobs.checks.syntax import check_syntax
from submarine_jobs.program import Bundle, CellCollection, DocumentCell


def check_program(
    bundle: Bundle,
    collection: CellCollection | None = None,
    document_cells: Sequence[DocumentCell] = (),
    with_names: Iterable[str] = (),
    *,
    return_names: Iterable[str] = (),
    history: Sequence[DocumentCell] = (),
    builtins: Collection[str] | None = None,
) -> list[Finding]:
    """All findings about the program, errors first, then warnings, then notes.

    Parameters
    ----------
    collection
        The collected cells, for what changed since they ran; None for a program from files.
    document_cells
        Code cells of the saved document: where a name that is missing may be defined.
    with_names, return_names
        Names that ``--with`` provides to the program, and that ``--return`` takes from it.
    history
        Cells executed in this session, oldest first; searched after the document.
    builtins
        Builtins of the Python that runs the program; None: those of this interpreter.
    """
    given = tuple(with_names)
    findings = check_syntax(bundle)
    broken = {finding.file for finding in findings}
    known = python_builtins(sys.executable) if builtins is None else builtins
    findings += check_names(bundle, broken, document_cells, history, given, known)
    findings += check_returned(bundle, broken, tuple(return_names), given)
    if collection is not None:
        findings += check_document(collection)
    else:
        findings += _notes(bundle)
    findings.sort(key=lambda finding: list(Level).index(finding.level))
    return findings


def _notes(bundle: Bundle) -> list[Finding]:
    """What was left out or taken along; collecting a cell has said it already, files have not."""
    return [
        Finding(
            Level.WARNING if notice.code else Level.NOTE,
            notice.code or "note",
            notice.message,
            cell=notice.label or None,
            cell_line=notice.line or None,
            fix=notice.fix,
        )
        for notice in bundle.notices
    ]
