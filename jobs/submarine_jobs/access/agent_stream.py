"""The live stream of agent or coordinator for an event loop: one HTTPS connection, lines of JSON.

The same requests for a thread are in ``live``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any
from urllib.parse import urlencode

from submarine_jobs.access.agent_client import ANSWER_SECONDS, MAX_LINE, AgentAddress, tls_context
from submarine_runtime.protocol import wire

#: An agent speaks at least every ``PING_SECONDS``.
SILENCE = wire.PING_SECONDS * 3


class StreamBrokenError(Exception):
    """The connection to the agent ended before the job did, or was refused."""


async def open_stream(
    address: AgentAddress, position: Mapping[str, str | int], events: int = 1 << 30
) -> AsyncGenerator[dict[str, Any], None]:
    """Lines of ``GET /v1/stream`` until ``end``.

    Parameters
    ----------
    position
        Words of the request: from which offsets, and of which tasks; see ``protocol.wire``.
    events
        So many events are known; by default none is wanted.

    Raises
    ------
    StreamBrokenError
        If the agent cannot be reached, refuses, or falls silent.
    """
    writer = None
    try:
        reader, writer = await asyncio.wait_for(
            asyncio.open_connection(
                address.host,
                address.port,
                ssl=tls_context(address.secret),
                limit=MAX_LINE,
            ),
            ANSWER_SECONDS,
        )
        query = urlencode({"events": events, **position})
        request = (
            # HTTP/1.0: the body is not chunked and ends with the connection.
            f"GET {wire.STREAM}?{query} HTTP/1.0\r\nHost: {address.host}\r\n"
            f"Authorization: Bearer {address.secret.token}\r\n\r\n"
        )
        writer.write(request.encode())
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), ANSWER_SECONDS)
        if b" 200 " not in head.split(b"\r\n", 1)[0]:
            raise StreamBrokenError("the agent refused")
        while line := await asyncio.wait_for(reader.readline(), SILENCE):
            message = json.loads(line)
            if isinstance(message, dict):
                yield message
                if message.get("type") == "end":
                    return
    except (OSError, asyncio.IncompleteReadError, ValueError, RecursionError) as exc:
        raise StreamBrokenError(str(exc)) from exc
    except asyncio.LimitOverrunError as exc:
        raise StreamBrokenError("the agent sent too long a line") from exc
    finally:
        if writer is not None:
            writer.close()
