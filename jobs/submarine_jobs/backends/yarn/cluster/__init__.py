"""The cluster's state through the ResourceManager's REST interface: applications, queues, nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.backends.yarn.cluster.application_poll import Survey as Survey
    from submarine_jobs.backends.yarn.cluster.cache import (
        APPS as APPS,
        FRESH as FRESH,
        NODES as NODES,
        SCHEDULER as SCHEDULER,
    )
    from submarine_jobs.backends.yarn.cluster.hadoop_configuration import (
        HadoopConf as HadoopConf,
        read_properties as read_properties,
        write_properties as write_properties,
    )
    from submarine_jobs.backends.yarn.cluster.overview import overview_of as overview_of
    from submarine_jobs.backends.yarn.cluster.pending_reasons import Waits as Waits
    from submarine_jobs.backends.yarn.cluster.resource_manager import (
        ResourceManager as ResourceManager,
    )
    from submarine_jobs.backends.yarn.cluster.scheduler import (
        Node as Node,
        Queue as Queue,
        Size as Size,
        find as find,
        largest_node as largest_node,
        queues as queues,
        smallest_memory as smallest_memory,
        some_node_holds as some_node_holds,
        usable_nodes as usable_nodes,
    )
    from submarine_jobs.backends.yarn.cluster.tags import (
        BESIDE_TAG as BESIDE_TAG,
        GANG_TAG as GANG_TAG,
        TAG as TAG,
        added_tags as added_tags,
        tag_of as tag_of,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "application_poll": ("Survey",),
            "cache": ("APPS", "FRESH", "NODES", "SCHEDULER"),
            "hadoop_configuration": ("HadoopConf", "read_properties", "write_properties"),
            "overview": ("overview_of",),
            "pending_reasons": ("Waits",),
            "resource_manager": ("ResourceManager",),
            "scheduler": (
                "Node",
                "Queue",
                "Size",
                "find",
                "largest_node",
                "queues",
                "smallest_memory",
                "some_node_holds",
                "usable_nodes",
            ),
            "tags": ("BESIDE_TAG", "GANG_TAG", "TAG", "added_tags", "tag_of"),
        },
    )
