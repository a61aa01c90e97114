from .configuration import (
    child_environment as child_environment,
    paragraph_config as paragraph_config,
    shared_session as shared_session,
)
from .drivers import release_drivers as release_drivers
from .users import common_state_dir as common_state_dir
