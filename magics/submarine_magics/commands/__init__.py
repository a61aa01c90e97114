"""Command lines of ``%submarine``: completion, help, defaults, headless options."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_magics.commands.completion import (
        complete as complete,
        complete_text as complete_text,
    )
    from submarine_magics.commands.headless_options import (
        with_headless_options as with_headless_options,
    )
    from submarine_magics.commands.help import help_at as help_at, help_on as help_on
    from submarine_magics.commands.run_defaults import (
        default_words as default_words,
        option_named as option_named,
        set_defaults as set_defaults,
        spellings as spellings,
        with_defaults as with_defaults,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "completion": (
                "complete",
                "complete_text",
            ),
            "headless_options": ("with_headless_options",),
            "help": (
                "help_at",
                "help_on",
            ),
            "run_defaults": (
                "default_words",
                "option_named",
                "set_defaults",
                "spellings",
                "with_defaults",
            ),
        },
    )
