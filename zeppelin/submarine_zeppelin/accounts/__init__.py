"""Users of one interpreter process: their sessions, drivers and permissions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_zeppelin.accounts.configuration import (
        config_of as config_of,
        environment_of as environment_of,
        session_of as session_of,
    )
    from submarine_zeppelin.accounts.users import common_state_dir as common_state_dir
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "configuration": ("config_of", "environment_of", "session_of"),
            "users": ("common_state_dir",),
        },
    )
