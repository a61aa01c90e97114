"""Client of Azkaban's AJAX interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_workflows.azkaban.api.client import (
        Azkaban as Azkaban,
        options_of as options_of,
        parameters_of as parameters_of,
    )
    from submarine_workflows.azkaban.api.connection import Connection as Connection
    from submarine_workflows.azkaban.api.credentials import find_password as find_password
    from submarine_workflows.azkaban.api.errors import (
        AzkabanError as AzkabanError,
        NoProjectError as NoProjectError,
        UnsureError as UnsureError,
    )
    from submarine_workflows.azkaban.api.executions import (
        Execution as Execution,
        NodeSeen as NodeSeen,
        PastExecution as PastExecution,
        Started as Started,
    )
    from submarine_workflows.azkaban.api.logs import Follower as Follower
    from submarine_workflows.azkaban.api.session_file import SessionFile as SessionFile
    from submarine_workflows.azkaban.api.settings import (
        Settings as Settings,
        load_settings as load_settings,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "client": ("Azkaban", "options_of", "parameters_of"),
            "connection": ("Connection",),
            "credentials": ("find_password",),
            "errors": ("AzkabanError", "NoProjectError", "UnsureError"),
            "executions": ("Execution", "NodeSeen", "PastExecution", "Started"),
            "logs": ("Follower",),
            "session_file": ("SessionFile",),
            "settings": ("Settings", "load_settings"),
        },
    )
