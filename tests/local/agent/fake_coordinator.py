"""A fake coordinator: real TLS and sockets, and messages that the test chooses."""

from __future__ import annotations

import json
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from submarine_jobs.access import JobSecret
from submarine_minicluster.machine import free_port
from submarine_runtime.protocol import Member, to_json
from tests.waiting import PATIENCE

Line = dict[str, Any]


class FakeCoordinator:
    """Accept links, keep each line, and acknowledge heartbeats while ``acknowledge`` is set."""

    def __init__(
        self,
        directory: Path,
        secret: JobSecret,
        *,
        port: int = 0,
        heartbeat: float = 0.1,
        lost_after: float = 5.0,
    ) -> None:
        self._secret = secret
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        files = directory / "certificate.pem"
        files.write_text(secret.certificate + "\n" + secret.key)
        self._context.load_cert_chain(files)
        self.heartbeat, self.lost_after = heartbeat, lost_after
        self.acknowledge = self.welcome = True
        self.refuse = ""
        self.lines: list[Line] = []
        self.heads: list[str] = []
        self._changed = threading.Condition()
        self._using = threading.Lock()
        self._links: list[ssl.SSLSocket] = []
        # Not an ephemeral port: another coordinator may come back on it.
        self.port = port or free_port()
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def environment(self, task: str = "worker:0", seat: str = "worker-0.1") -> dict[str, str]:
        return {
            "SUBMARINE_AGENT_TASK": task,
            "SUBMARINE_AGENT_SEAT": seat,
            "SUBMARINE_AGENT_COORDINATOR": f"127.0.0.1:{self.port}",
        }

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                plain, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        with suppress(OSError, ValueError):
            link = self._context.wrap_socket(plain, server_side=True)
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += link.recv(1)
            self.heads.append(head.decode())
            if f"Bearer {self._secret.token}".encode() not in head:
                link.sendall(b"HTTP/1.1 401 Unauthorized\r\n\r\n")
                link.close()
                return
            link.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: submarine-link\r\n\r\n")
            link.setblocking(False)
            received = b""
            while True:
                received += self._receive(link)
                *whole, received = received.split(b"\n")
                for raw in whole:
                    self._hear(link, json.loads(raw))

    def _receive(self, link: ssl.SSLSocket) -> bytes:
        """Return received bytes. Only one thread at a time may use a TLS connection."""
        while True:
            with self._using:
                try:
                    data = link.recv(1 << 16)
                except ssl.SSLWantReadError:
                    data = None
            if data == b"":
                raise OSError("the agent has hung up")
            if data is not None:
                return data
            select.select([link], [], [], 0.1)

    def _hear(self, link: ssl.SSLSocket, line: Line) -> None:
        with self._changed:
            if line["type"] == "register":
                self._links.append(link)
            self.lines.append({**line, "_at": time.monotonic()})
            self._changed.notify_all()
        if line["type"] == "register" and self.refuse:
            self._say(link, {"type": "refused", "why": self.refuse})
        elif line["type"] == "register" and self.welcome:
            words = {"heartbeat": self.heartbeat, "lost_after": self.lost_after}
            self._say(link, {"type": "welcome", **words})
        elif line["type"] == "heartbeat" and self.acknowledge:
            self._say(link, {"type": "ack", "n": line["n"]})

    def _say(self, link: ssl.SSLSocket, line: Mapping[str, Any]) -> None:
        with self._using:
            link.sendall(json.dumps(line).encode() + b"\n")

    def say(self, kind: str, **fields: Any) -> None:
        """Send a line on the newest link."""
        self._say(self._links[-1], {"type": kind, **fields})

    def start(self, *members: Member, epoch: int = 1, attempt: int = 1, **fields: Any) -> None:
        """Send a start, by default for a gang of one task."""
        gang = members or (Member("worker:0", "worker", 0, "127.0.0.1", "127.0.0.1", (4711,)),)
        listed = to_json(gang)
        self.say("start", epoch=epoch, attempt=attempt, members=listed, **fields)

    def wait(
        self, wanted: Callable[[Line], Any], seconds: float = PATIENCE, after: int = 0
    ) -> Line:
        """Wait for the first line from number ``after`` on that is wanted."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while True:
                for line in self.lines[after:]:
                    if wanted(line):
                        return line
                left = deadline - time.monotonic()
                assert left > 0, [
                    one for one in self.lines if one["type"] not in ("heartbeat", "register")
                ]
                self._changed.wait(left)

    def state(self, word: str, after: int = 0, **fields: Any) -> Line:
        """Wait for a ``state`` line."""

        def wanted(line: Line) -> bool:
            right = line["type"] == "state" and line["state"] == word
            return right and all(line[key] == value for key, value in fields.items())

        return self.wait(wanted, after=after)

    def registered(self, after: int = 0) -> Line:
        """Wait for a ``register`` line."""
        return self.wait(lambda line: line["type"] == "register", after=after)

    def cut(self) -> None:
        """Break all links; new ones are accepted."""
        for link in self._links:
            with suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
            link.close()

    def close(self) -> None:
        """Stop listening and cut all links."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
