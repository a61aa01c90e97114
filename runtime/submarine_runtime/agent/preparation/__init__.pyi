from .inputs import (
    WHOLE as WHOLE,
    InputError as InputError,
    SourceFile as SourceFile,
    divide as divide,
    list_input as list_input,
    shard_of_task as shard_of_task,
)
from .preparation import Preparation as Preparation
