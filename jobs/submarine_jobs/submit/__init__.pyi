from .program_secrets import (
    readable_secret_files as readable_secret_files,
    secret_sources as secret_sources,
)
from .runtime_zip import write_runtime_zip as write_runtime_zip
from .submission import (
    StartTakenError as StartTakenError,
    environments_in_use as environments_in_use,
    submit as submit,
)
from .validation import probe_job_root as probe_job_root, validate as validate
