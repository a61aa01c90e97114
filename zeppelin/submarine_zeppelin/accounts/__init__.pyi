from .configuration import (
    check_authentication as check_authentication,
    child_environment as child_environment,
    paragraph_config as paragraph_config,
    requires_kerberos as requires_kerberos,
    shared_session as shared_session,
)
from .drivers import release_drivers as release_drivers
from .service_key import hide_service_key as hide_service_key
from .users import common_state_dir as common_state_dir
