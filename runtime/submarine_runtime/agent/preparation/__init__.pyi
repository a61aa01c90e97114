from .inputs import (
    MAX_FILES as MAX_FILES,
    WHOLE as WHOLE,
    InputError as InputError,
    SourceFile as SourceFile,
    divide as divide,
    is_metadata as is_metadata,
    list_input as list_input,
    shard_of_task as shard_of_task,
    write_listing as write_listing,
)
from .preparation import Preparation as Preparation
