"""Which verbs take the text of a cell: ``%%submarine VERB ...`` with lines below it.

Other packages add them by the entry point ``submarine.cells``: a click command that finds the text
by ``commands.CellBody.of``. Reads package metadata only. ``run``, whose text is part of the
program, is not one of them: the cells themselves know it (``collect_line``).
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "submarine.cells"


@functools.cache
def cell_verbs() -> dict[str, EntryPoint]:
    """The verbs by name."""
    from importlib.metadata import entry_points

    found = entry_points(group=ENTRY_POINT_GROUP)
    return {point.name: point for point in found if point.name != "run"}
