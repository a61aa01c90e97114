from .local_file import LocalLocation as LocalLocation, write_by_rename as write_by_rename
from .location import Location as Location, without_password as without_password
from .papermill_handlers import (
    atomic_last_write as atomic_last_write,
    papermill_location as papermill_location,
)
from .remote import HdfsLocation as HdfsLocation
from .urls import (
    current_profile as current_profile,
    find_location as find_location,
    is_url as is_url,
)
