"""Zeppelin's thrift protocol: sockets, access control, server, client, conversion."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_zeppelin.thrift.access import AccessPolicy as AccessPolicy
    from submarine_zeppelin.thrift.conversion import (
        FORM_TYPE as FORM_TYPE,
        context_of as context_of,
        wire_completion as wire_completion,
        wire_result as wire_result,
    )
    from submarine_zeppelin.thrift.event_client import (
        EventClient as EventClient,
        EventRefusedError as EventRefusedError,
        ServerUnavailableError as ServerUnavailableError,
    )
    from submarine_zeppelin.thrift.idl import protocol as protocol
    from submarine_zeppelin.thrift.server import (
        InterpreterServer as InterpreterServer,
        ThriftServer as ThriftServer,
    )
    from submarine_zeppelin.thrift.transport import (
        BoundSocket as BoundSocket,
        address_towards as address_towards,
        is_local as is_local,
        open_protocol as open_protocol,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "access": ("AccessPolicy",),
            "conversion": ("FORM_TYPE", "context_of", "wire_completion", "wire_result"),
            "event_client": ("EventClient", "EventRefusedError", "ServerUnavailableError"),
            "idl": ("protocol",),
            "server": ("InterpreterServer", "ThriftServer"),
            "transport": ("BoundSocket", "address_towards", "is_local", "open_protocol"),
        },
    )
