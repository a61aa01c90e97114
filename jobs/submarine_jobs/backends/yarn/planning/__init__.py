"""Check a spec against the live cluster and choose its containers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.backends.yarn.planning.distributed import make_gang_plan as make_gang_plan
    from submarine_jobs.backends.yarn.planning.gang_size import (
        gang_of as gang_of,
        least_of as least_of,
    )
    from submarine_jobs.backends.yarn.planning.single import (
        SLACK_BESIDE as SLACK_BESIDE,
        SLACK_TOGETHER as SLACK_TOGETHER,
        ClusterView as ClusterView,
        make_plan as make_plan,
        steps_of as steps_of,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "distributed": ("make_gang_plan",),
            "gang_size": ("gang_of", "least_of"),
            "single": ("ClusterView", "SLACK_BESIDE", "SLACK_TOGETHER", "make_plan", "steps_of"),
        },
    )
