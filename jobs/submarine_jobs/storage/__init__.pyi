from .base import DEFAULT_PORTS as DEFAULT_PORTS, Storage as Storage
from .hdfs import HdfsStorage as HdfsStorage, hdfs_storage as hdfs_storage
from .local import LocalStorage as LocalStorage
from .webhdfs import WebHdfsStorage as WebHdfsStorage
