"""``--forward``: a port of this machine that leads to the application, through the job's own port.

For browsers that cannot reach the node, or are not to see a certificate that nobody has signed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from submarine_jobs.access import HOST, TunnelPorts, tunnel_loop
from submarine_jobs.errors import SubmarineError, UsageError

if TYPE_CHECKING:
    from submarine_jobs.client import Job

NAME = "app"
#: Seconds between two looks whether the job still runs, and where it listens.
LOOK = 5.0


def forward(job: Job, port: int, tell: Callable[[str], object]) -> str:
    """Serve until the job has ended or Ctrl-C; why it ended.

    Parameters
    ----------
    port
        Of this machine; 0: any that is free.
    tell
        Called with ``http://127.0.0.1:PORT`` once it can be used.

    Raises
    ------
    UsageError
        If the port is taken.
    SubmarineError
        If the job does not listen.
    """
    address = job.directory.address()
    if address is None:
        raise SubmarineError(f"{job.id} does not listen.", "Look with `submarine notebook list`.")
    loop = tunnel_loop()
    ports = TunnelPorts([NAME])
    ports.address = address
    starting = asyncio.run_coroutine_threadsafe(ports.start({NAME: port}), loop)
    try:
        taken = starting.result()[NAME]
    except OSError as error:
        raise UsageError(f"--port {port} cannot be used: {error.strerror}.") from None
    try:
        tell(f"http://{HOST}:{taken}")
        while not (record := job.record()).state.ended:
            time.sleep(LOOK)
            ports.address = job.directory.address() or address
        return f"{job.id} has ended: {record.state.value}."
    except KeyboardInterrupt:
        return f"Stopped forwarding; {job.id} goes on."
    finally:
        loop.call_soon_threadsafe(ports.close)
