from .archive import Project as Project, digest as digest
from .command_values import VERB as VERB, with_values as with_values
from .compiler import unfit_value as unfit_value
from .secrets import looks_secret as looks_secret
from .source import (
    executor_setting as executor_setting,
    has_trigger as has_trigger,
    project_of as project_of,
)
