"""The notice of a lost kernel: it waits for the clients that had been connected."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import zmq
from jupyter_client.session import Session

from submarine_kernel.remote.loss_notice import LossNotice
from submarine_kernel.remote.socket_directory import channel_url


@contextmanager
def client(connection: dict[str, Any]) -> Iterator[Any]:
    with zmq.Context() as context, context.socket(zmq.SUB) as socket:
        socket.linger = 0
        socket.connect(channel_url(connection, "iopub"))
        socket.subscribe(b"")
        yield socket


@pytest.mark.slow
def test_publish_waits_for_a_client_that_reconnects_later(tmp_path: Path) -> None:
    connection = {
        "transport": "ipc",
        "ip": str(tmp_path / "kernel"),
        "key": b"key",
        "signature_scheme": "hmac-sha256",
        **{f"{name}_port": number for number, name in enumerate(("iopub", "shell"), 1)},
    }
    session = Session(key=b"key", signature_scheme="hmac-sha256")
    notice = LossNotice("The node is lost.", connection, clients=2)
    heard: list[str] = []

    def connect_late() -> None:
        # Later than the time in which a client shows a message.
        time.sleep(0.8)
        with client(connection) as socket:
            while socket.poll(2000):
                _, parts = session.feed_identities(socket.recv_multipart())
                heard.append(session.deserialize(parts)["content"]["text"])

    thread = threading.Thread(target=connect_late)
    thread.start()
    with client(connection):
        notice.publish()
        assert heard == ["The node is lost.\n"]
    notice.stop()
    thread.join(10)
    assert heard == ["The node is lost.\n"]
