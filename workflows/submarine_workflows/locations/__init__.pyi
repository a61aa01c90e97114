from .local_file import LocalPlace as LocalPlace, write_by_rename as write_by_rename
from .location import Place as Place, without_password as without_password
from .papermill_handlers import papermill_place as papermill_place, whole_at_last as whole_at_last
from .remote import HdfsPlace as HdfsPlace
from .urls import is_url as is_url, place_of as place_of, profile_in_force as profile_in_force
