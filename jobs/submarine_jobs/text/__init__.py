"""Format sizes and times, and sanitize untrusted text for display."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.text.formatting import (
        duration as duration,
        memory as memory,
        running_duration as running_duration,
        size as size,
        timestamp as timestamp,
    )
    from submarine_jobs.text.sanitize import (
        escape_html as escape_html,
        escape_html_line as escape_html_line,
        one_line as one_line,
        printable as printable,
        web_link as web_link,
    )
    from submarine_jobs.text.siblings import sibling_hint as sibling_hint
    from submarine_jobs.text.terminal import (
        TerminalFilter as TerminalFilter,
        filter_for_terminal as filter_for_terminal,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "formatting": (
                "duration",
                "memory",
                "running_duration",
                "size",
                "timestamp",
            ),
            "sanitize": (
                "escape_html",
                "escape_html_line",
                "one_line",
                "printable",
                "web_link",
            ),
            "siblings": ("sibling_hint",),
            "terminal": (
                "TerminalFilter",
                "filter_for_terminal",
            ),
        },
    )
