"""Snapshots of checkpoints, model versions and TensorBoard files in the job directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.snapshots.catalog import (
        Found as Found,
        Piece as Piece,
        chosen_snapshot as chosen_snapshot,
        final_of as final_of,
        from_path as from_path,
        snapshots_of as snapshots_of,
    )
    from submarine_runtime.snapshots.checkpoint_path import Mirror as Mirror, base_of as base_of
    from submarine_runtime.snapshots.event_pieces import (
        EVENT_FILE as EVENT_FILE,
        Growing as Growing,
        assemble as assemble,
        shipped_lengths as shipped_lengths,
        task_directory as task_directory,
    )
    from submarine_runtime.snapshots.manifest import is_below as is_below
    from submarine_runtime.snapshots.restoration import (
        forget as forget,
        put_back as put_back,
        restore as restore,
        restore_as_told as restore_as_told,
    )
    from submarine_runtime.snapshots.scan import (
        STATE_FILE as STATE_FILE,
        Seen as Seen,
        is_coherent as is_coherent,
        is_metadata as is_metadata,
        is_whole as is_whole,
        look as look,
        step_of as step_of,
    )
    from submarine_runtime.snapshots.versions import (
        NAME as NAME,
        VERSION_FILE as VERSION_FILE,
        Draft as Draft,
        VersionError as VersionError,
        check_name as check_name,
        save_version as save_version,
    )
    from submarine_runtime.snapshots.writer import (
        KEEP as KEEP,
        ChangedError as ChangedError,
        Reader as Reader,
        Snapshots as Snapshots,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "catalog": (
                "Found",
                "Piece",
                "chosen_snapshot",
                "final_of",
                "from_path",
                "snapshots_of",
            ),
            "checkpoint_path": ("Mirror", "base_of"),
            "event_pieces": (
                "EVENT_FILE",
                "Growing",
                "assemble",
                "shipped_lengths",
                "task_directory",
            ),
            "manifest": ("is_below",),
            "restoration": ("forget", "put_back", "restore", "restore_as_told"),
            "scan": (
                "STATE_FILE",
                "Seen",
                "is_coherent",
                "is_metadata",
                "is_whole",
                "look",
                "step_of",
            ),
            "versions": (
                "Draft",
                "NAME",
                "VERSION_FILE",
                "VersionError",
                "check_name",
                "save_version",
            ),
            "writer": ("ChangedError", "KEEP", "Reader", "Snapshots"),
        },
    )
