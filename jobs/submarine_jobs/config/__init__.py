"""Configuration: files, environment and options become one profile; trust in project files."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.config.file import (
        CONFIG_FILE as CONFIG_FILE,
        ConfigFile as ConfigFile,
        project_file as project_file,
        read_file as read_file,
    )
    from submarine_jobs.config.file_safety import (
        check_file as check_file,
        check_private as check_private,
        make_private as make_private,
    )
    from submarine_jobs.config.jupyter_server import (
        back_links as back_links,
        server_url as server_url,
        tensorboard_path as tensorboard_path,
    )
    from submarine_jobs.config.loader import (
        OWN_VARIABLES as OWN_VARIABLES,
        Config as Config,
        SectionValue as SectionValue,
        load_config as load_config,
        load_section as load_section,
        user_section as user_section,
    )
    from submarine_jobs.config.project_trust import (
        UntrustedConfigError as UntrustedConfigError,
        confirmed_keys as confirmed_keys,
        forget as forget,
        is_trusted as is_trusted,
        summary as summary,
        trust as trust,
    )
    from submarine_jobs.config.values import (
        BACKENDS as BACKENDS,
        hdfs_wait as hdfs_wait,
        python_of as python_of,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "file": (
                "CONFIG_FILE",
                "ConfigFile",
                "project_file",
                "read_file",
            ),
            "file_safety": (
                "check_file",
                "check_private",
                "make_private",
            ),
            "jupyter_server": (
                "back_links",
                "server_url",
                "tensorboard_path",
            ),
            "loader": (
                "Config",
                "OWN_VARIABLES",
                "SectionValue",
                "load_config",
                "load_section",
                "user_section",
            ),
            "project_trust": (
                "UntrustedConfigError",
                "confirmed_keys",
                "forget",
                "is_trusted",
                "summary",
                "trust",
            ),
            "values": (
                "BACKENDS",
                "hdfs_wait",
                "python_of",
            ),
        },
    )
