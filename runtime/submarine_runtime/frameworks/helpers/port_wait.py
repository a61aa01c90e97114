"""Wait until a port of the chief accepts connections: ``await --address A --port P``.

A helper of the other tasks. Their agents start the program after its line "the chief serves",
because some frameworks try to connect to the rendezvous or tracker only a few times.
"""

from __future__ import annotations

import argparse
import socket
import threading
import time
from typing import Sequence

PAUSE = 0.05
#: Seconds that it keeps running, so that the agent reads its line before it notices its end.
EXIT_DELAY = 5.0


def main(arguments: Sequence[str]) -> int:
    """Try to connect until the port accepts; the agent limits the time."""
    parser = argparse.ArgumentParser(prog="await")
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args(arguments)
    while True:
        try:
            socket.create_connection((options.address, options.port), timeout=5.0).close()
            break
        except OSError:
            time.sleep(PAUSE)
    print("the chief serves", flush=True)
    time.sleep(EXIT_DELAY)
    return 0


def open_ready_port(address: str, port: int) -> None:
    """Open the port by which ``await`` notices that the helper of this process serves."""
    listener = socket.create_server((address, port), backlog=1024)

    def accept() -> None:
        while True:
            listener.accept()[0].close()

    threading.Thread(target=accept, name="ready-port", daemon=True).start()
