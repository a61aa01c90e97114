from .saving import (
    OutputSaver as OutputSaver,
    VersionSaver as VersionSaver,
    missing_value_reasons as missing_value_reasons,
    model_version as model_version,
    save_all as save_all,
)
