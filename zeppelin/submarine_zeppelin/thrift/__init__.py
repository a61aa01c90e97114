"""The process that Zeppelin's server talks to: its thrift protocol, executions, outputs, its end.

Turns Zeppelin's calls into those of ``paragraph`` and back; knows nothing of jobs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_zeppelin.thrift.access import Callers as Callers
    from submarine_zeppelin.thrift.conversion import (
        ANONYMOUS as ANONYMOUS,
        context_of as context_of,
        wire_completion as wire_completion,
        wire_result as wire_result,
    )
    from submarine_zeppelin.thrift.event_client import (
        EventClient as EventClient,
        EventRefusedError as EventRefusedError,
        ServerAwayError as ServerAwayError,
    )
    from submarine_zeppelin.thrift.idl import protocol as protocol
    from submarine_zeppelin.thrift.server import (
        InterpreterServer as InterpreterServer,
        ThriftServer as ThriftServer,
    )
    from submarine_zeppelin.thrift.transport import (
        BoundSocket as BoundSocket,
        connected as connected,
        is_local as is_local,
        own_address as own_address,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "access": ("Callers",),
            "conversion": ("ANONYMOUS", "context_of", "wire_completion", "wire_result"),
            "event_client": ("EventClient", "EventRefusedError", "ServerAwayError"),
            "idl": ("protocol",),
            "server": ("InterpreterServer", "ThriftServer"),
            "transport": ("BoundSocket", "connected", "is_local", "own_address"),
        },
    )
