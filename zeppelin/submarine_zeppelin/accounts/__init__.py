"""Cluster user, configuration and YARN driver of each Zeppelin user."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_zeppelin.accounts.configuration import (
        child_environment as child_environment,
        paragraph_config as paragraph_config,
        shared_session as shared_session,
    )
    from submarine_zeppelin.accounts.drivers import release_drivers as release_drivers
    from submarine_zeppelin.accounts.users import common_state_dir as common_state_dir
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "configuration": ("child_environment", "paragraph_config", "shared_session"),
            "drivers": ("release_drivers",),
            "users": ("common_state_dir",),
        },
    )
