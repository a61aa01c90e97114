"""Waits until something serves at a port of the chief: ``await --address A --port P``.

A helper of the other tasks. Their agents start the program once this says that the rendezvous or
tracker is there; frameworks that ask for it only a few times would give up before.
"""

from __future__ import annotations

import argparse
import socket
import threading
import time
from typing import Sequence

PAUSE = 0.05
#: Seconds that it stays when it is done, so that its word is read before its end is seen.
LINGER = 5.0


def main(arguments: Sequence[str]) -> int:
    """Try for as long as the agent has patience."""
    parser = argparse.ArgumentParser(prog="await")
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, required=True)
    asked = parser.parse_args(arguments)
    while True:
        try:
            socket.create_connection((asked.address, asked.port), timeout=5.0).close()
            break
        except OSError:
            time.sleep(PAUSE)
    print("the chief serves", flush=True)
    time.sleep(LINGER)
    return 0


def open_door(address: str, port: int) -> None:
    """Open the port by which ``await`` finds that the helper of this process serves."""
    door = socket.create_server((address, port), backlog=1024)

    def accept() -> None:
        while True:
            door.accept()[0].close()

    threading.Thread(target=accept, name="door", daemon=True).start()
