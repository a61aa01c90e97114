from .archive import Project as Project, digest as digest
from .command_values import VERB as VERB, with_values as with_values
from .compiler import unsupported_value as unsupported_value
from .secrets import secret_kind as secret_kind
from .source import (
    executor_settings as executor_settings,
    has_trigger as has_trigger,
    project_of as project_of,
)
