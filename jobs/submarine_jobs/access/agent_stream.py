"""Read the live stream of an agent or coordinator with asyncio: lines of JSON over HTTPS.

``AgentClient.stream`` is the same for threads.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any
from urllib.parse import urlencode

from submarine_jobs.access.agent_client import ANSWER_SECONDS, MAX_LINE, AgentAddress, tls_context
from submarine_runtime.protocol import wire
from submarine_runtime.translation import _

#: Timeout of a line; an agent sends one at least every ``PING_SECONDS``.
SILENCE = wire.PING_SECONDS * 3


class StreamBrokenError(Exception):
    """The connection to the agent failed or ended before the job."""


async def open_stream(
    address: AgentAddress, position: Mapping[str, str | int], events: int = 1 << 30
) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the lines of ``GET /v1/stream`` until ``end``.

    Parameters
    ----------
    position
        Query parameters: offsets and tasks; see ``protocol.wire``.
    events
        Number of events to skip; by default all.

    Raises
    ------
    StreamBrokenError
        If the agent cannot be reached, rejects the request, or sends nothing in time.
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
            raise StreamBrokenError(_("the agent rejected the request"))
        while line := await asyncio.wait_for(reader.readline(), SILENCE):
            message = json.loads(line)
            if isinstance(message, dict):
                yield message
                if message.get("type") == "end":
                    return
    except (OSError, asyncio.IncompleteReadError, ValueError, RecursionError) as exc:
        raise StreamBrokenError(str(exc)) from exc
    except asyncio.LimitOverrunError as exc:
        raise StreamBrokenError(_("the agent sent a line that is too long")) from exc
    finally:
        if writer is not None:
            writer.close()
