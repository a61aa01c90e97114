from .catalog import (
    StoredFile as StoredFile,
    StoredFiles as StoredFiles,
    chosen_snapshot as chosen_snapshot,
    files_at_path as files_at_path,
    final_checkpoints as final_checkpoints,
    snapshots_of as snapshots_of,
)
from .checkpoint_path import CheckpointPathWriter as CheckpointPathWriter, base_of as base_of
from .event_pieces import (
    EVENT_FILE as EVENT_FILE,
    PieceWriter as PieceWriter,
    assemble as assemble,
    shipped_lengths as shipped_lengths,
    task_directory as task_directory,
)
from .manifest import is_below as is_below
from .restoration import (
    delete_snapshots as delete_snapshots,
    replace_directory as replace_directory,
    restore as restore,
    restore_chosen as restore_chosen,
)
from .scan import (
    MAX_METADATA as MAX_METADATA,
    STATE_FILE as STATE_FILE,
    FileState as FileState,
    is_being_saved as is_being_saved,
    is_coherent as is_coherent,
    is_complete as is_complete,
    is_metadata as is_metadata,
    parts_of as parts_of,
    scan_directory as scan_directory,
    state_of as state_of,
    step_of as step_of,
    uncommitted_checkpoints as uncommitted_checkpoints,
)
from .versions import (
    GRACE as GRACE,
    NAME as NAME,
    VERSION_FILE as VERSION_FILE,
    VersionDraft as VersionDraft,
    VersionError as VersionError,
    check_name as check_name,
    digest_of as digest_of,
    put_hashed as put_hashed,
    save_version as save_version,
)
from .writer import (
    KEEP as KEEP,
    ChangedError as ChangedError,
    FileReader as FileReader,
    SnapshotWriter as SnapshotWriter,
)
