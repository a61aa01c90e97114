"""Snapshots of checkpoints, model versions and TensorBoard files in the job directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.snapshots.catalog import (
        StoredFile as StoredFile,
        StoredFiles as StoredFiles,
        chosen_snapshot as chosen_snapshot,
        files_at_path as files_at_path,
        final_checkpoints as final_checkpoints,
        snapshots_of as snapshots_of,
    )
    from submarine_runtime.snapshots.checkpoint_path import (
        CheckpointPathWriter as CheckpointPathWriter,
        base_of as base_of,
    )
    from submarine_runtime.snapshots.event_pieces import (
        EVENT_FILE as EVENT_FILE,
        PieceWriter as PieceWriter,
        assemble as assemble,
        shipped_lengths as shipped_lengths,
        task_directory as task_directory,
    )
    from submarine_runtime.snapshots.manifest import is_below as is_below
    from submarine_runtime.snapshots.restoration import (
        delete_snapshots as delete_snapshots,
        replace_directory as replace_directory,
        restore as restore,
        restore_chosen as restore_chosen,
    )
    from submarine_runtime.snapshots.scan import (
        STATE_FILE as STATE_FILE,
        FileState as FileState,
        is_coherent as is_coherent,
        is_complete as is_complete,
        is_metadata as is_metadata,
        scan_directory as scan_directory,
        step_of as step_of,
    )
    from submarine_runtime.snapshots.versions import (
        NAME as NAME,
        VERSION_FILE as VERSION_FILE,
        VersionDraft as VersionDraft,
        VersionError as VersionError,
        check_name as check_name,
        save_version as save_version,
    )
    from submarine_runtime.snapshots.writer import (
        KEEP as KEEP,
        ChangedError as ChangedError,
        FileReader as FileReader,
        SnapshotWriter as SnapshotWriter,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "catalog": (
                "StoredFile",
                "StoredFiles",
                "chosen_snapshot",
                "files_at_path",
                "final_checkpoints",
                "snapshots_of",
            ),
            "checkpoint_path": ("CheckpointPathWriter", "base_of"),
            "event_pieces": (
                "EVENT_FILE",
                "PieceWriter",
                "assemble",
                "shipped_lengths",
                "task_directory",
            ),
            "manifest": ("is_below",),
            "restoration": ("delete_snapshots", "replace_directory", "restore", "restore_chosen"),
            "scan": (
                "FileState",
                "STATE_FILE",
                "is_coherent",
                "is_complete",
                "is_metadata",
                "scan_directory",
                "step_of",
            ),
            "versions": (
                "NAME",
                "VERSION_FILE",
                "VersionDraft",
                "VersionError",
                "check_name",
                "save_version",
            ),
            "writer": ("ChangedError", "FileReader", "KEEP", "SnapshotWriter"),
        },
    )
