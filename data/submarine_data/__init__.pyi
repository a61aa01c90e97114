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
from .remote import (
    filesystem as filesystem,
    open_file as open_file,
    register_filesystem as register_filesystem,
    remote_file_system as remote_file_system,
    use_hadoop_configuration as use_hadoop_configuration,
)
