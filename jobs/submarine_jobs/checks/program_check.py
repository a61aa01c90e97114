"""Check a program before the submit: syntax, names, returned names, stale cells.

The checks use the bundle, the collection and the saved document, and do not run user code. Backends
check the size of the job.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection, Iterable, Sequence

from submarine_jobs.checks.findings import Finding, Level, finding_at, place_of
from submarine_jobs.checks.imports import python_builtins
from submarine_jobs.checks.names import check_names, check_returned
from submarine_jobs.program import Bundle, CellCollection, CellState, DocumentCell, join_labels
from submarine_runtime.translation import _, ngettext


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
    """Return all findings about the program: errors, then warnings, then notes.

    Parameters
    ----------
    collection
        The collected cells, to find changes since they ran; None for a program from files.
    document_cells
        Code cells of the saved document, which may define a missing name.
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
    """Return the notices of a program from files; for cells they are shown at collection."""
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


def check_syntax(bundle: Bundle) -> list[Finding]:
    """Return a finding for each file that this Python cannot compile."""
    findings = []
    for name, content in sorted(bundle.python_files.items()):
        found = _compile(content, name)
        if found is None:
            continue
        line, problem = found
        where = place_of(bundle, name, line)
        in_cell = bundle.source_map.lookup(name, line) is not None
        findings.append(
            finding_at(
                bundle,
                Level.ERROR,
                "syntax",
                _("{where} is not valid Python: {problem}.").format(
                    where=where[0].upper() + where[1:] if in_cell else where, problem=problem
                ),
                name,
                line,
                _("Fix the cell and run it again.") if in_cell else _("Fix the file."),
            )
        )
    return findings


def _compile(content: bytes, name: str) -> tuple[int, str] | None:
    """Return line and problem, or None if the file compiles."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(content, name, "exec", dont_inherit=True)
        except SyntaxError as error:
            return error.lineno or 1, (error.msg or _("syntax error")).rstrip(".")
        except ValueError as error:
            line = content[: content.find(b"\0") + 1].count(b"\n") + 1
            return line, str(error).rstrip(".")
        except (RecursionError, MemoryError):
            return 1, _("it is nested too deeply")
    return None


def check_document(collection: CellCollection) -> list[Finding]:
    """Return warnings for cells that raised, were edited, not saved or not run."""
    findings = [
        Finding(
            Level.WARNING,
            "cell-raised",
            _("Cell {label} raised {raised} when it ran, and is part of the program.").format(
                label=cell.label, raised=raised
            ),
            cell.filename,
            cell=cell.label,
            cell_line=1,
            fix=_("Correct the cell and run it again."),
        )
        for cell, raised in collection.raised()
    ]
    if collection.document is None:
        return findings
    unsaved = []
    for row in collection.listing():
        label = row.cell.label
        if row.state is CellState.EDITED:
            findings.append(
                Finding(
                    Level.WARNING,
                    "cell-edited",
                    _(
                        "Cell {label} was edited after it ran; the job gets the text that ran."
                    ).format(label=label),
                    row.cell.filename,
                    cell=label,
                    cell_line=1,
                    fix=_("Run the cell again."),
                )
            )
        elif row.state is CellState.UNSAVED:
            unsaved.append(label)
    if unsaved:
        words = ngettext(
            "Cell {cells} differs from the saved notebook, so the order of cells and the snapshot "
            "may be old.",
            "Cells {cells} differ from the saved notebook, so the order of cells and the snapshot "
            "may be old.",
            len(unsaved),
        )
        findings.append(
            Finding(
                Level.WARNING,
                "cell-unsaved",
                words.format(cells=join_labels(unsaved)),
                cell=unsaved[0],
                cell_line=1,
                fix=_("Save the notebook."),
            )
        )
    if not_run := [cell.label for cell in collection.not_run()]:
        findings.append(_not_run(not_run))
    return findings


def _not_run(labels: list[str]) -> Finding:
    """Return one finding for all cells: there are many after a restart of the kernel."""
    if len(labels) == 1:
        message = _("Cell {cell} carries %%submarine but was not run, so the job lacks it.").format(
            cell=labels[0]
        )
        fix = _("Run the cell, or remove %%submarine from it.")
    else:
        message = _(
            "Cells {cells} carry %%submarine but were not run, so the job lacks them."
        ).format(cells=join_labels(labels))
        fix = _("Run the cells, or remove %%submarine from them.")
    return Finding(Level.WARNING, "cell-not-run", message, cell=labels[0], cell_line=1, fix=fix)
