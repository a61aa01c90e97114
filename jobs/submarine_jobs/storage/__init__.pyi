from .base import (
    DEFAULT_PORTS as DEFAULT_PORTS,
    PRIVATE_FILE as PRIVATE_FILE,
    SHARED_FILE as SHARED_FILE,
    Acl as Acl,
    Entry as Entry,
    Storage as Storage,
)
from .encryption_zones import (
    check_job_root as check_job_root,
    encryption_zone_error as encryption_zone_error,
)
from .hdfs import HdfsStorage as HdfsStorage, hdfs_storage as hdfs_storage
from .local import LocalStorage as LocalStorage
from .sharing import (
    Traversal as Traversal,
    mark_modifiers as mark_modifiers,
    share_directory as share_directory,
    traversal as traversal,
)
from .webhdfs import WebHdfsStorage as WebHdfsStorage, webhdfs_place as webhdfs_place
