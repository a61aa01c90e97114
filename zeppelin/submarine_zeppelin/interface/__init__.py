"""Interface between the Zeppelin process and the interpreters, and their settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_zeppelin.interface.entries import (
        ENTRIES as ENTRIES,
        Entry as Entry,
        make_interpreter as make_interpreter,
    )
    from submarine_zeppelin.interface.interpreter import (
        ANONYMOUS as ANONYMOUS,
        Code as Code,
        Completion as Completion,
        Context as Context,
        Interpreter as Interpreter,
        Kind as Kind,
        Message as Message,
        NoteParagraph as NoteParagraph,
        Output as Output,
        ParagraphGoneError as ParagraphGoneError,
        ParagraphKey as ParagraphKey,
        Result as Result,
        Server as Server,
    )
    from submarine_zeppelin.interface.output_limits import (
        DEFAULT_LIMIT as DEFAULT_LIMIT,
        LIMIT_PROPERTY as LIMIT_PROPERTY,
        fit as fit,
        last_lines as last_lines,
        output_limit as output_limit,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "entries": ("ENTRIES", "Entry", "make_interpreter"),
            "interpreter": (
                "ANONYMOUS",
                "Code",
                "Completion",
                "Context",
                "Interpreter",
                "Kind",
                "Message",
                "NoteParagraph",
                "Output",
                "ParagraphGoneError",
                "ParagraphKey",
                "Result",
                "Server",
            ),
            "output_limits": (
                "DEFAULT_LIMIT",
                "LIMIT_PROPERTY",
                "fit",
                "last_lines",
                "output_limit",
            ),
        },
    )
