from .initial import initial_record as initial_record, new_record as new_record
from .publication import (
    EventSegments as EventSegments,
    complete_record as complete_record,
    delete_secrets as delete_secrets,
    final_record as final_record,
    live_address as live_address,
)
from .resource_advice import (
    MIN_SECONDS as MIN_SECONDS,
    idle_gpu_sentence as idle_gpu_sentence,
    memory_sentence as memory_sentence,
    resource_hints as resource_hints,
)
from .status import (
    MAX_EVENTS as MAX_EVENTS,
    MAX_MISSING as MAX_MISSING,
    MAX_WARNINGS as MAX_WARNINGS,
    Status as Status,
    TensorBoardClients as TensorBoardClients,
    one_sentence as one_sentence,
)
from .unsaved_files import (
    MAX_UNSAVED as MAX_UNSAVED,
    UnsavedFiles as UnsavedFiles,
    unsaved_sentences as unsaved_sentences,
)
