"""The command language: one grammar for magics, command line, Python and Zeppelin.

``execute`` and ``complete`` are all that a mouth needs. Neither prints nor ends the process.
"""

from __future__ import annotations

from submarine_jobs.commands.cell_body import CellBody
from submarine_jobs.commands.execute import complete, execute
from submarine_jobs.commands.mouth import Mouth
from submarine_jobs.commands.outcome import Outcome

__all__ = ["CellBody", "Mouth", "Outcome", "complete", "execute"]
