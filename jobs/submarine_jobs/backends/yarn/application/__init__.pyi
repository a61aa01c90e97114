from .distributed import containers_needed as containers_needed
from .localized_files import (
    describe_localized_files as describe_localized_files,
    files_to_localize as files_to_localize,
)
from .maker import ApplicationMaker as ApplicationMaker
from .submission import submit_application as submit_application
