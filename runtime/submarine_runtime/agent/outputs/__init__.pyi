from .saving import (
    OutputSaver as OutputSaver,
    VersionSaver as VersionSaver,
    missing_value_reasons as missing_value_reasons,
    model_version as model_version,
    save_all as save_all,
    save_output_directory as save_output_directory,
)
from .task_outputs import TaskOutputs as TaskOutputs
