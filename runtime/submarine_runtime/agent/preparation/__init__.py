"""What a task needs before its program starts: devices, bundle and inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.agent.preparation.inputs import (
        WHOLE as WHOLE,
        InputError as InputError,
        SourceFile as SourceFile,
        divide as divide,
        list_input as list_input,
        part_of as part_of,
    )
    from submarine_runtime.agent.preparation.preparation import Preparation as Preparation
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "inputs": ("InputError", "SourceFile", "WHOLE", "divide", "list_input", "part_of"),
            "preparation": ("Preparation",),
        },
    )
