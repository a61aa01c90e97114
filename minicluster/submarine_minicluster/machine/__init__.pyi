from .files import file_lock as file_lock
from .java import (
    MINIMUM as MINIMUM,
    Java as Java,
    find_java as find_java,
    java_at as java_at,
)
from .ports import (
    accepts_connections as accepts_connections,
    check_host_name as check_host_name,
    choose_ports as choose_ports,
    free_port as free_port,
    is_free_port as is_free_port,
)
from .processes import (
    Identity as Identity,
    find_marked as find_marked,
    launch as launch,
    session_members as session_members,
    terminate as terminate,
)
