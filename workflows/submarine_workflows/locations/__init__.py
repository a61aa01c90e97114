"""Read and write notebooks and results at URLs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_workflows.locations.local_file import (
        LocalPlace as LocalPlace,
        write_by_rename as write_by_rename,
    )
    from submarine_workflows.locations.location import (
        Place as Place,
        without_password as without_password,
    )
    from submarine_workflows.locations.papermill_handlers import (
        papermill_place as papermill_place,
        whole_at_last as whole_at_last,
    )
    from submarine_workflows.locations.remote import HdfsPlace as HdfsPlace
    from submarine_workflows.locations.urls import (
        is_url as is_url,
        place_of as place_of,
        profile_in_force as profile_in_force,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "local_file": ("LocalPlace", "write_by_rename"),
            "location": ("Place", "without_password"),
            "papermill_handlers": ("papermill_place", "whole_at_last"),
            "remote": ("HdfsPlace",),
            "urls": ("is_url", "place_of", "profile_in_force"),
        },
    )
