"""Outputs that are saved when the program has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.agent.outputs.files import save_outputs as save_outputs
    from submarine_runtime.agent.outputs.saving import (
        OutputSaver as OutputSaver,
        VersionSaver as VersionSaver,
        all_outputs as all_outputs,
        model_version as model_version,
        result_files as result_files,
        unreturned as unreturned,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "files": ("save_outputs",),
            "saving": (
                "OutputSaver",
                "VersionSaver",
                "all_outputs",
                "model_version",
                "result_files",
                "unreturned",
            ),
        },
    )
