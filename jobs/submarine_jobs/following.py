"""Follow the log of one job in the calling thread: live from the agent, else as it is shipped.

Loses and repeats no byte across a broken connection: every piece is asked for by offset. Does not
display.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from submarine_jobs.errors import ClusterError
from submarine_jobs.live import AgentClient, LogChunk, chunk_of
from submarine_jobs.shipped_log import ShippedLog
from submarine_runtime.protocol.layout import STREAMS

if TYPE_CHECKING:
    from submarine_jobs.job import Job

#: Seconds between looks while there is no agent to listen to: from, to, growing by half.
FIRST_PAUSE, LAST_PAUSE = 0.5, 10.0
LIMIT = 1 << 20


def follow(job: Job, stdout: int, stderr: int) -> Iterator[LogChunk]:
    """Pieces of both streams from the offsets given until the job has ended."""
    position = {"stdout": stdout, "stderr": stderr}
    shipped = ShippedLog(job.directory)
    pause = FIRST_PAUSE
    while True:
        ended = job.record().state.ended
        moved = False
        if not ended:
            for chunk in _live(job, position):
                moved = True
                yield chunk
        for chunk in _shipped(shipped, position):
            moved = True
            yield chunk
        if ended:
            return
        pause = FIRST_PAUSE if moved else min(pause * 1.5, LAST_PAUSE)
        time.sleep(pause)


def _live(job: Job, position: dict[str, int]) -> Iterator[LogChunk]:
    """What the agent sends until it stops sending; nothing where there is none."""
    try:
        agent: AgentClient | None = job.agent()
        if agent is None:
            return
        for line in agent.stream(1 << 30, position["stdout"], position["stderr"]):
            if line.get("type") == "log":
                chunk = chunk_of(line)
                position[chunk.stream] = chunk.end
                yield chunk
            elif line.get("type") == "skip":
                yield from _skipped(agent, position, str(line["stream"]), int(line["to"]))
            elif line.get("type") == "end":
                return
    except (ClusterError, FileNotFoundError):
        return


def _skipped(
    agent: AgentClient, position: dict[str, int], stream: str, end: int
) -> Iterator[LogChunk]:
    """Fetch what the agent left out because this reader was slow."""
    while position[stream] < end:
        limit = min(LIMIT, end - position[stream])
        chunk, _ = agent.log("worker:0", stream, position[stream], limit)
        if not chunk.data:
            return
        position[stream] = chunk.end
        yield chunk


def _shipped(log: ShippedLog, position: dict[str, int]) -> Iterator[LogChunk]:
    try:
        log.refresh()
        for stream in STREAMS:
            for chunk in log.read_through(stream, position[stream]):
                position[stream] = chunk.end
                yield chunk
    except FileNotFoundError:
        return
