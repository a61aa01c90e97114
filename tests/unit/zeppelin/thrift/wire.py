"""Exchange recorded messages with the thrift server and with the event client."""

from __future__ import annotations

import socket
import threading
from typing import Any

from submarine_zeppelin.interface import Code, Completion, Context, Message, Result
from submarine_zeppelin.service.handler import Handler
from submarine_zeppelin.thrift import AccessPolicy, BoundSocket, InterpreterServer


class Parts:
    """Components of a handler, which answer as the interpreter of the recording did."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.messages: tuple[Message, ...] = ()

    def get(self, session: str, class_name: str) -> Parts:
        self.calls.append(("get", (session, class_name)))
        return self

    def create(self, session: str, class_name: str, properties: dict[str, str]) -> None:
        self.calls.append(("create", (session, class_name, properties)))

    def close(self, session: str, class_name: str) -> None:
        self.calls.append(("close", (session, class_name)))

    def run(self, interpreter: Any, text: str, context: Context) -> Parts:
        self.calls.append(("run", (text, context)))
        return self

    @property
    def result(self) -> Result:
        return Result(Code.SUCCESS if self.messages else Code.KEEP, self.messages)

    def result_sent(self, execution: Any, *, delivered: bool) -> None:
        self.calls.append(("result_sent", delivered))

    def expect_close(self, interpreter: Any) -> None:
        self.calls.append(("expect_close", None))

    def cancel(self, interpreter: Any, context: Context) -> None:
        self.calls.append(("cancel", context.paragraph_id))

    def status(self, paragraph: str) -> str:
        self.calls.append(("status", paragraph))
        return "RUNNING"

    def completion(self, text: str, cursor: int, context: Context) -> list[Completion]:
        self.calls.append(("completion", (text, cursor)))
        return [Completion(f"after {text[:cursor]}", "value", "meta")]

    def describe(self) -> list[str]:
        return []

    def serialized(self, name: str) -> bytes:
        return b""

    def remove(self, name: str) -> bool:
        return False

    def progress(self, context: Context) -> int:
        return 700


def exchange(parts: Parts, request: bytes) -> bytes:
    """Return the server's answer to the bytes of a request."""
    bound = BoundSocket("127.0.0.1", range(0))
    handler = Handler(
        parts,  # type: ignore[arg-type]
        parts,  # type: ignore[arg-type]
        parts,  # type: ignore[arg-type]
        lambda properties: parts.calls.append(("init", dict(properties))),
        lambda host, port: parts.calls.append(("reconnect", (host, port))),
        lambda: parts.calls.append(("shutdown", ())),
    )
    server = InterpreterServer(handler, bound, AccessPolicy("127.0.0.1", bound.port))
    server.start()
    with socket.create_connection(("127.0.0.1", bound.port), timeout=30) as client:
        client.sendall(request)
        answer = client.recv(65536)
    server.stop()
    return answer


class Wire:
    """Accepts one call of the client, keeps its bytes and sends a recorded answer."""

    def __init__(self, answer: bytes) -> None:
        self.request = b""
        self._answer = answer
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._listening.accept()
        with connection:
            self.request = connection.recv(65536)
            connection.sendall(self._answer)
            connection.recv(1)

    def done(self) -> bytes:
        self._listening.close()
        return self.request


def without_number(message: bytes) -> bytes:
    """Return a message without the sequence number after the method name."""
    end = 8 + int.from_bytes(message[4:8], "big")
    return message[:end] + message[end + 4 :]
