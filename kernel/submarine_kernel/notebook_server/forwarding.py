"""``--forward``: forward a port of this machine to the application through the job's port.

It is for browsers that cannot reach the node, or that do not accept a self-signed certificate.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from submarine_jobs.access import TUNNEL_HOST, TunnelPorts, tunnel_loop
from submarine_jobs.errors import SubmarineError, UsageError
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.client import Job

NAME = "app"
#: Seconds between two checks of the job's state and address.
POLL_SECONDS = 5.0


def forward(job: Job, port: int, on_ready: Callable[[str], object]) -> str:
    """Serve until the job has ended or Ctrl-C; return why it ended.

    Parameters
    ----------
    port
        Port of this machine; 0 for any free port.
    on_ready
        Called with ``http://127.0.0.1:PORT`` when the port accepts connections.

    Raises
    ------
    UsageError
        If the port is taken.
    SubmarineError
        If the job has no address.
    """
    address = job.directory.address()
    if address is None:
        raise SubmarineError(
            _("{id} has no address.").format(id=job.id),
            _("`submarine notebook list` shows its state."),
        )
    loop = tunnel_loop()
    ports = TunnelPorts([NAME])
    ports.address = address
    starting = asyncio.run_coroutine_threadsafe(ports.start({NAME: port}), loop)
    try:
        taken = starting.result()[NAME]
    except OSError as error:
        raise UsageError(
            _("--port {port} cannot be used: {strerror}.").format(
                port=port, strerror=error.strerror
            )
        ) from None
    try:
        on_ready(f"http://{TUNNEL_HOST}:{taken}")
        while not (record := job.record()).state.ended:
            time.sleep(POLL_SECONDS)
            ports.address = job.directory.address() or address
        return _("{id} has ended: {state}.").format(id=job.id, state=record.state.value)
    except KeyboardInterrupt:
        return _("Stopped forwarding; {id} continues.").format(id=job.id)
    finally:
        loop.call_soon_threadsafe(ports.close)
