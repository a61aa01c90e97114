"""Read the live stream of a job's port in a test's thread."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any

from submarine_jobs.access import AgentClient
from submarine_jobs.concurrency import background_loop


def read_stream(
    client: AgentClient, events: int = 0, **position: str | int
) -> Generator[dict[str, Any]]:
    """Yield the lines of the stream as they come."""
    loop = background_loop("test-streams")
    lines = client.stream({"stdout": 0, "stderr": 0, **position}, events)
    try:
        while line := asyncio.run_coroutine_threadsafe(anext(lines, None), loop).result():
            yield line
    finally:
        asyncio.run_coroutine_threadsafe(lines.aclose(), loop).result()
