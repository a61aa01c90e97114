from .batches import Batch as Batch
from .dataset import Dataset as Dataset, open_dataset as open_dataset
from .epochs import Epochs as Epochs
from .errors import DataError as DataError
from .file_systems import (
    FileEntry as FileEntry,
    FileSystem as FileSystem,
    LocalFileSystem as LocalFileSystem,
    file_system_of as file_system_of,
)
from .ranks import Place as Place, place_of_process as place_of_process
from .reading_ahead import ReadAheadFile as ReadAheadFile
