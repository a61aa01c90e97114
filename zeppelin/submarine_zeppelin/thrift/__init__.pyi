from .access import AccessPolicy as AccessPolicy
from .conversion import (
    FORM_TYPE as FORM_TYPE,
    context_of as context_of,
    wire_completion as wire_completion,
    wire_result as wire_result,
)
from .event_client import (
    EventClient as EventClient,
    EventRefusedError as EventRefusedError,
    ServerUnavailableError as ServerUnavailableError,
)
from .idl import protocol as protocol
from .server import InterpreterServer as InterpreterServer, ThriftServer as ThriftServer
from .transport import (
    BoundSocket as BoundSocket,
    address_towards as address_towards,
    is_local as is_local,
    open_protocol as open_protocol,
)
