from .files import save_outputs as save_outputs
from .saving import (
    OutputSaver as OutputSaver,
    VersionSaver as VersionSaver,
    all_outputs as all_outputs,
    missing_value_reasons as missing_value_reasons,
    model_version as model_version,
    result_files as result_files,
)
