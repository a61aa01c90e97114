"""Runs of paragraphs, their outputs, and the interpreters that run them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_zeppelin.execution.executions import (
        UNKNOWN as UNKNOWN,
        Execution as Execution,
        Executions as Executions,
    )
    from submarine_zeppelin.execution.output_writer import OutputWriter as OutputWriter
    from submarine_zeppelin.execution.sessions import (
        InterpreterSessions as InterpreterSessions,
        UnknownInterpreterError as UnknownInterpreterError,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "executions": ("UNKNOWN", "Execution", "Executions"),
            "output_writer": ("OutputWriter",),
            "sessions": ("InterpreterSessions", "UnknownInterpreterError"),
        },
    )
