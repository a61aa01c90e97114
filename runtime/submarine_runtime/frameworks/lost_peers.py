"""Errors that Python or a library raises when a peer of a collective operation is lost.

They follow from the failure of another process, so they are not reported as the cause.
"""

from __future__ import annotations

import re

#: Of ``type: message``; a type without its module, the message also of another exception.
CONSEQUENCE = (
    r"^([\w.]*\.)?(BrokenPipeError|ConnectionResetError|DistBackendError|DistNetworkError"
    r"|DistStoreError|HorovodInternalError|UnavailableError):"
    r"|gloo/transport|Gloo \S+ failed|NCCL (communicator|watchdog)"
    r"|nccl(Remote|System|Internal)Error"
    r"|connection (was )?(reset|closed) by peer|broken pipe|socket (closed|timeout)"
    r"|failed to connect to all addresses|stream removed|collective ops is aborted"
    r"|client socket has (timed out|failed)"
    r"|coordination service|StatusCode\.UNAVAILABLE|^([\w.]*: )?UNAVAILABLE:|store->(get|set|wait)"
)
_CONSEQUENCE = re.compile(CONSEQUENCE, re.IGNORECASE)
#: NCCL reports these for a wrong call: it would fail in the same way again.
_MISUSE = re.compile(r"nccl(InvalidUsage|InvalidArgument)|invalid (usage|argument)", re.IGNORECASE)


def follows_from_lost_peer(name: str, message: str) -> bool:
    """Return whether an exception (empty name: unknown) is such an error."""
    if _MISUSE.search(message):
        return False
    return _CONSEQUENCE.search(f"{name}: {message}") is not None
