"""The command language: one grammar for magics, command line, Python and Zeppelin.

``execute`` and ``complete`` run and complete a command line; neither prints nor ends the process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.commands.doctor import result_lines as result_lines
    from submarine_jobs.commands.grammar.cell_body import CellBody as CellBody
    from submarine_jobs.commands.grammar.execution import complete as complete, execute as execute
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "doctor": ("result_lines",),
            "grammar.cell_body": ("CellBody",),
            "grammar.execution": ("complete", "execute"),
        },
    )
