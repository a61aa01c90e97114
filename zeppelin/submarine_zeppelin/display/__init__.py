"""Displays of Zeppelin: HTML, tables, text, and their refresh."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_zeppelin.display.page import Card as Card, Page as Page
    from submarine_zeppelin.display.refresher import Refresher as Refresher
    from submarine_zeppelin.display.screen import Screen as Screen, terminal_html as terminal_html
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "page": ("Card", "Page"),
            "refresher": ("Refresher",),
            "screen": ("Screen", "terminal_html"),
        },
    )
