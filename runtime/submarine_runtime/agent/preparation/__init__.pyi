from .inputs import (
    WHOLE as WHOLE,
    InputError as InputError,
    SourceFile as SourceFile,
    divide as divide,
    list_input as list_input,
    part_of as part_of,
)
from .preparation import Preparation as Preparation
