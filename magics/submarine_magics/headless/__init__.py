"""Wait for the jobs of a headless run at the end of a cell or of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_magics.headless.cell_end import end_cell as end_cell
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "cell_end": ("end_cell",),
        },
    )
