"""Interfaces between the interpreter process and the interpreters."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_zeppelin.interface.entries import ENTRIES as ENTRIES, Entry as Entry
    from submarine_zeppelin.interface.interpreter import (
        Code as Code,
        Completion as Completion,
        Context as Context,
        Interpreter as Interpreter,
        Kind as Kind,
        Message as Message,
        NoteParagraph as NoteParagraph,
        Output as Output,
        ParagraphGoneError as ParagraphGoneError,
        Place as Place,
        Result as Result,
        Server as Server,
    )
    from submarine_zeppelin.interface.output_limit import (
        DEFAULT_LIMIT as DEFAULT_LIMIT,
        LIMIT_PROPERTY as LIMIT_PROPERTY,
        fit as fit,
        limit_of as limit_of,
        tail_of_lines as tail_of_lines,
    )
    from submarine_zeppelin.interface.properties import (
        PROPERTIES as PROPERTIES,
        check_given as check_given,
        flag as flag,
        text as text,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "entries": ("ENTRIES", "Entry"),
            "interpreter": (
                "Code",
                "Completion",
                "Context",
                "Interpreter",
                "Kind",
                "Message",
                "NoteParagraph",
                "Output",
                "ParagraphGoneError",
                "Place",
                "Result",
                "Server",
            ),
            "output_limit": ("DEFAULT_LIMIT", "LIMIT_PROPERTY", "fit", "limit_of", "tail_of_lines"),
            "properties": ("PROPERTIES", "check_given", "flag", "text"),
        },
    )
