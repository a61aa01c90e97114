from .application_poll import Survey as Survey
from .applications import (
    active_jobs as active_jobs,
    application as application,
    containers_of as containers_of,
    find_application as find_application,
    localizing_on as localizing_on,
    observe as observe,
)
from .cache import APPS as APPS, FRESH as FRESH, NODES as NODES, SCHEDULER as SCHEDULER
from .hadoop_configuration import (
    HadoopConf as HadoopConf,
    read_properties as read_properties,
    write_properties as write_properties,
)
from .overview import overview_of as overview_of
from .pending_reasons import Waits as Waits
from .resource_manager import ResourceManager as ResourceManager
from .scheduler import (
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
from .tags import (
    BESIDE_TAG as BESIDE_TAG,
    GANG_TAG as GANG_TAG,
    TAG as TAG,
    added_tags as added_tags,
    tag_of as tag_of,
)
