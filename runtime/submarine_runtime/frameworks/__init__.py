"""The environment that each framework expects: a registry, and one module for each framework."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.frameworks.registry import (
        KNOWN as KNOWN,
        Helper as Helper,
        Setup as Setup,
        complaint_of as complaint_of,
        framework_of as framework_of,
        not_collective_sentence as not_collective_sentence,
        policy_of as policy_of,
        process_count as process_count,
        setup as setup,
        sharing_tasks as sharing_tasks,
        trait as trait,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "registry": (
                "Helper",
                "KNOWN",
                "Setup",
                "complaint_of",
                "framework_of",
                "not_collective_sentence",
                "policy_of",
                "process_count",
                "setup",
                "sharing_tasks",
                "trait",
            ),
        },
    )
