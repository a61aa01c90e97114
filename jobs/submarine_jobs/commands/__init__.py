"""The command language: one grammar for magics, command line, Python and Zeppelin.

``execute`` and ``complete`` run and complete a command line; neither prints nor ends the process.
"""

from __future__ import annotations

from submarine_jobs.commands.grammar.cell_body import CellBody
from submarine_jobs.commands.grammar.execution import complete, execute

__all__ = ["CellBody", "complete", "execute"]
