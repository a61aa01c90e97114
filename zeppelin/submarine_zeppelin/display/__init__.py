"""Contents of a paragraph: text and terminal output, HTML, job cards and their updates."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_zeppelin.display.card_updater import CardUpdater as CardUpdater
    from submarine_zeppelin.display.output_buffer import (
        OutputBuffer as OutputBuffer,
        terminal_html as terminal_html,
    )
    from submarine_zeppelin.display.page import JobCard as JobCard, Page as Page
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "card_updater": ("CardUpdater",),
            "output_buffer": ("OutputBuffer", "terminal_html"),
            "page": ("JobCard", "Page"),
        },
    )
