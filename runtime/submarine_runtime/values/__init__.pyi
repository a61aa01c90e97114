from .archive import (
    DEFAULT_LIMIT as DEFAULT_LIMIT,
    ArchiveContent as ArchiveContent,
    pack_values as pack_values,
    unpack_values as unpack_values,
)
from .encoder import ValuesError as ValuesError
from .frames import read_frame as read_frame, read_stored as read_stored
