"""Format and sanitize text for people: sizes, times, untrusted text, terminal control sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.text.formatting import (
        duration as duration,
        memory as memory,
        moment as moment,
        size as size,
        ticking as ticking,
    )
    from submarine_jobs.text.neighbours import beside as beside
    from submarine_jobs.text.sanitize import (
        escaped as escaped,
        escaped_line as escaped_line,
        one_line as one_line,
        printable as printable,
        web_link as web_link,
    )
    from submarine_jobs.text.terminal import (
        TerminalFilter as TerminalFilter,
        for_terminal as for_terminal,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "formatting": ("duration", "memory", "moment", "size", "ticking"),
            "neighbours": ("beside",),
            "sanitize": ("escaped", "escaped_line", "one_line", "printable", "web_link"),
            "terminal": ("TerminalFilter", "for_terminal"),
        },
    )
