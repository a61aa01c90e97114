from submarine_runtime.yarn import TAG as TAG

from .application_poll import Survey as Survey
from .applications import (
    active_jobs as active_jobs,
    application as application,
    find_application as find_application,
    jobs_of as jobs_of,
    localizing_on as localizing_on,
    needed_containers as needed_containers,
    observe as observe,
)
from .cache import APPS as APPS, NODES as NODES, SCHEDULER as SCHEDULER
from .certificates import authorities as authorities
from .file_system import (
    default_file_system as default_file_system,
    free_disk as free_disk,
    other_file_system as other_file_system,
)
from .hadoop_configuration import (
    HadoopConf as HadoopConf,
    read_properties as read_properties,
    write_properties as write_properties,
)
from .identity import Identity as Identity
from .overview import overview_of as overview_of
from .pending_reasons import Waits as Waits
from .resource_manager import ResourceManager as ResourceManager
from .tags import (
    BESIDE_TAG as BESIDE_TAG,
    GANG_TAG as GANG_TAG,
    added_tags as added_tags,
    tag_of as tag_of,
)
from .ticket_cache import (
    CachedTicket as CachedTicket,
    cached_ticket as cached_ticket,
    renew_ticket as renew_ticket,
)
from .ticket_renewal import RENEWAL as RENEWAL, TicketRenewal as TicketRenewal
from .token_file import (
    client_tokens as client_tokens,
    token_file_name as token_file_name,
)
from .token_source import TokenSource as TokenSource
