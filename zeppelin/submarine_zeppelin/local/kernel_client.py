"""Around a kernel's process: its clients, its proposals, and what killed owners left behind."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PREFIX = "submarine-kernel-"
#: Seconds that a kernel has for its proposals.
_COMPLETE = 2.0
#: Messages of a session that wait to be shown.
_KEPT = 20_000


def complete(manager: Any, code: str, cursor: int) -> Mapping[str, Any]:
    """A kernel's proposals, asked beside whatever it is asked otherwise; nothing if it is slow."""
    if not manager.is_alive():
        return {}
    client = client_of(manager)
    client.start_channels(iopub=False, stdin=False, hb=False, control=False)
    try:
        reply = client.complete(code, cursor, reply=True, timeout=_COMPLETE)
        return dict(reply["content"])
    except (TimeoutError, queue.Empty):
        return {}
    finally:
        client.stop_channels()


def client_of(manager: Any) -> Any:
    """A client of its own name: two of the same would take each other's replies away."""
    import zmq
    from jupyter_client.blocking.client import BlockingKernelClient

    context: Any = zmq.Context.instance()
    # What is printed faster than it is shown is kept; the default is 1,000 and loses the rest.
    context.setsockopt(zmq.RCVHWM, _KEPT)
    client = BlockingKernelClient(connection_file=manager.connection_file, context=context)
    client.load_connection_file()
    return client


def sweep() -> None:
    """Remove what owners left behind that were killed; their kernels have ended by themselves."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*"):
        owner = path.name[len(PREFIX) :].partition("-")[0]
        if owner.isdecimal() and not Path(f"/proc/{owner}").exists():
            with contextlib.suppress(OSError):
                if path.stat().st_uid == os.getuid():
                    shutil.rmtree(path, ignore_errors=True)
