"""Client of the port of an agent or coordinator: pinned certificate, token, one request.

Notebook side, coordinator and agents use it. ``protocol.wire`` lists the requests. For a stream or
an upgrade, the caller sends ``request_head`` over a connection of its own and reads the response up
to its empty line.
"""

from __future__ import annotations

import ssl
from http.client import HTTPConnection, HTTPMessage, HTTPResponse, IncompleteRead
from typing import NamedTuple

from submarine_runtime.protocol import wire

#: Maximum size of a response in bytes; the record of a large job is the largest.
MAX_RESPONSE = 4 * wire.MAX_LOG_BYTES
#: End of the head of a request or a response.
HEAD_END = b"\r\n\r\n"


def client_context(certificate: str) -> ssl.SSLContext:
    """Return a context that accepts only this certificate of a job."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # The certificate is pinned, so the host name is not checked.
    context.check_hostname = False
    context.load_verify_locations(cadata=certificate)
    return context


class PortResponse(NamedTuple):
    """A complete response."""

    status: int
    headers: HTTPMessage
    body: bytes


def port_request(
    connection: HTTPConnection,
    token: str,
    method: str,
    target: str,
    body: bytes | None = None,
) -> PortResponse:
    """Send one request, read its response, and close the connection.

    Raises
    ------
    OSError, http.client.HTTPException
        If the port cannot be reached, or the response is incomplete.
    """
    try:
        headers = {"Authorization": "Bearer " + token}
        connection.request(method, target, body=body, headers=headers)
        # A response after which the server closes keeps the socket open besides the connection.
        with connection.getresponse() as response:
            data = response.read(MAX_RESPONSE)
            check_complete(response, data)
            return PortResponse(response.status, response.headers, data)
    finally:
        connection.close()


def check_complete(response: HTTPResponse, data: bytes = b"") -> None:
    """Raise ``IncompleteRead`` if the response is incomplete; ``data`` is the received part.

    ``http.client`` does not detect this when a body is read with a limit.
    """
    if response.length:
        raise IncompleteRead(data, response.length)


def request_head(target: str, token: str, upgrade: str = "") -> bytes:
    """Return a complete ``GET`` request.

    Parameters
    ----------
    upgrade
        Protocol to switch to. Without it the response is HTTP/1.0: its body is not chunked and
        ends with the connection.
    """
    lines = [f"GET {target} HTTP/1.{1 if upgrade else 0}", "Host: submarine-job"]
    lines += [f"Authorization: Bearer {token}"]
    lines += ["Connection: Upgrade", f"Upgrade: {upgrade}"] if upgrade else []
    return "\r\n".join(lines).encode() + HEAD_END


def response_status(head: bytes) -> int:
    """Return the status of a response; 0 if it is not HTTP."""
    words = head.split(None, 2)
    valid = len(words) > 1 and words[0].startswith(b"HTTP/1.") and words[1].isdigit()
    return int(words[1]) if valid else 0
