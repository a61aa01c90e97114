from .applications import (
    ACTIVE_STATES as ACTIVE_STATES,
    JOB_TAG as JOB_TAG,
    TAG as TAG,
    TYPES as TYPES,
    Application as Application,
    Container as Container,
    ContainerRequest as ContainerRequest,
    application_of as application_of,
    applications_of as applications_of,
    attempt_diagnostics as attempt_diagnostics,
    containers_of as containers_of,
)
from .cluster_queries import (
    ALL_DETAILS as ALL_DETAILS,
    FRESH as FRESH,
    FRESH_LARGE as FRESH_LARGE,
    REQUESTS_AND_TIMEOUTS as REQUESTS_AND_TIMEOUTS,
    applications_query as applications_query,
    lifetime as lifetime,
    max_bytes as max_bytes,
)
from .container import (
    LAUNCH_SCRIPT as LAUNCH_SCRIPT,
    first_change as first_change,
    reachable_host as reachable_host,
    skein_started_container as skein_started_container,
    wait_reporter as wait_reporter,
    write_error as write_error,
    write_log as write_log,
    write_traceback as write_traceback,
)
from .digest import DigestClient as DigestClient
from .fields import (
    GPU as GPU,
    GPU_RESOURCES as GPU_RESOURCES,
    NVIDIA_GPU as NVIDIA_GPU,
    Size as Size,
    printable as printable,
    total_size as total_size,
)
from .master import ApplicationMaster as ApplicationMaster, MasterError as MasterError
from .nodes import (
    Node as Node,
    largest_node as largest_node,
    nodes_of as nodes_of,
    offered_gpu_resource as offered_gpu_resource,
)
from .page import PageServer as PageServer, PageThread as PageThread
from .page_html import render_page as render_page
from .pending import (
    ClusterAnswers as ClusterAnswers,
    amounts as amounts,
    explain_pending as explain_pending,
    localizing_sentence as localizing_sentence,
)
from .queues import (
    Queue as Queue,
    find_queue as find_queue,
    queues_of as queues_of,
    smallest_memory as smallest_memory,
)
from .rest import (
    ResourceManagerClient as ResourceManagerClient,
    application as application,
    application_is_over as application_is_over,
    application_was_killed as application_was_killed,
    container_has_ended as container_has_ended,
    container_started as container_started,
    containers_path as containers_path,
)
from .skein_import import import_skein as import_skein
from .unregistration import (
    UnregistrationError as UnregistrationError,
    unregister as unregister,
)
