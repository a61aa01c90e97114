"""Finds where the collected cells and the saved document differ. Reads neither from disk."""

from __future__ import annotations

from submarine_jobs.cells import CellCollection, CellState
from submarine_jobs.checks.findings import Finding, Level


def check_document(collection: CellCollection) -> list[Finding]:
    """Warnings for cells that were edited, not saved or not run; none without a document."""
    if collection.document is None:
        return []
    findings = []
    unsaved = []
    for row in collection.listing():
        label = row.cell.label
        if row.state is CellState.EDITED:
            findings.append(
                Finding(
                    Level.WARNING,
                    "cell-edited",
                    f"Cell {label} was edited after it ran; the job gets the text that ran.",
                    row.cell.filename,
                    cell=label,
                    cell_line=1,
                    fix="Run the cell again.",
                )
            )
        elif row.state is CellState.UNSAVED:
            unsaved.append(label)
    if unsaved:
        many = len(unsaved) > 1
        findings.append(
            Finding(
                Level.WARNING,
                "cell-unsaved",
                f"Cell{'s' if many else ''} {', '.join(unsaved)} {'differ' if many else 'differs'} "
                "from the saved notebook, so the order of cells and the snapshot may be old.",
                cell=unsaved[0],
                cell_line=1,
                fix="Save the notebook.",
            )
        )
    findings += [
        Finding(
            Level.WARNING,
            "cell-not-run",
            f"Cell {cell.label} carries %%submarine but was not run, so the job does not have it.",
            cell=cell.label,
            cell_line=1,
            fix="Run the cell, or remove %%submarine from it.",
        )
        for cell in collection.not_run()
    ]
    return findings
