from .addresses import (
    address_of as address_of,
    interface_of as interface_of,
    own_address as own_address,
)
from .connection_limit import ConnectionLimit as ConnectionLimit
from .peers import (
    Address as Address,
    UnknownPeerError as UnknownPeerError,
    addresses_of as addresses_of,
    is_own as is_own,
    listener_uids as listener_uids,
    peer_uid as peer_uid,
    remote_address as remote_address,
)
from .port_client import (
    HEAD_END as HEAD_END,
    PortResponse as PortResponse,
    check_complete as check_complete,
    client_context as client_context,
    port_request as port_request,
    request_head as request_head,
    response_status as response_status,
)
from .ports import (
    PortRangeError as PortRangeError,
    PortUse as PortUse,
    Reservation as Reservation,
    bind_port as bind_port,
    parse_port_range as parse_port_range,
)
from .tls import server_context as server_context
from .tunnel import (
    MAX_TUNNELS as MAX_TUNNELS,
    TunnelForwarder as TunnelForwarder,
    Tunnels as Tunnels,
    keep_alive as keep_alive,
)
