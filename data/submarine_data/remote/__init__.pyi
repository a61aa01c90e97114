from .choice import (
    filesystem as filesystem,
    open_file as open_file,
    remote_file_system as remote_file_system,
)
from .configuration import (
    CONFIGURATION_VARIABLE as CONFIGURATION_VARIABLE,
    ClientConfiguration as ClientConfiguration,
    Place as Place,
    client_configuration as client_configuration,
    use_hadoop_configuration as use_hadoop_configuration,
)
from .errors import (
    MissingFileError as MissingFileError,
    RefusedAccessError as RefusedAccessError,
    RemoteError as RemoteError,
)
from .fsspec_files import FsspecFileSystem as FsspecFileSystem
from .hadoop_settings import (
    hdfs_clients as hdfs_clients,
    read_hadoop_settings as read_hadoop_settings,
)
from .hdfs_native import HdfsNativeFileSystem as HdfsNativeFileSystem
from .range_reader import RangeReader as RangeReader
from .registration import register_filesystem as register_filesystem
from .webhdfs import WebHdfsFileSystem as WebHdfsFileSystem
