from .runtime_zip import write_runtime_zip as write_runtime_zip
from .submission import StartTakenError as StartTakenError, submit as submit
from .validation import probe_job_root as probe_job_root, validate as validate
