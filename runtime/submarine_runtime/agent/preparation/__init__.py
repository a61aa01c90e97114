"""What a task needs before its program starts: devices, bundle and inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.agent.preparation.inputs import (
        WHOLE as WHOLE,
        InputError as InputError,
        SourceFile as SourceFile,
        look as look,
        part_of as part_of,
        parts as parts,
    )
    from submarine_runtime.agent.preparation.preparation import Preparing as Preparing
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "inputs": ("InputError", "SourceFile", "WHOLE", "look", "part_of", "parts"),
            "preparation": ("Preparing",),
        },
    )
