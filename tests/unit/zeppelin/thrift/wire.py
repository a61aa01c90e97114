"""Zeppelin's wire in tests: our server before recorded calls, our calls before recorded answers."""

from __future__ import annotations

import socket
import threading
from typing import Any

from submarine_zeppelin.interface import Code, Completion, Context, Message, Result
from submarine_zeppelin.service import Handler
from submarine_zeppelin.thrift import BoundSocket, Callers, InterpreterServer


class Parts:
    """What a handler calls, answering as the interpreter of the recording did."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []
        self.messages: tuple[Message, ...] = ()

    def get(self, session: str, class_name: str) -> Parts:
        self.told.append(("get", (session, class_name)))
        return self

    def create(self, session: str, class_name: str, properties: dict[str, str]) -> None:
        self.told.append(("create", (session, class_name, properties)))

    def close(self, session: str, class_name: str) -> None:
        self.told.append(("close", (session, class_name)))

    def run(self, interpreter: Any, text: str, context: Context) -> Parts:
        self.told.append(("run", (text, context)))
        return self

    @property
    def result(self) -> Result:
        return Result(Code.SUCCESS if self.messages else Code.KEEP, self.messages)

    def delivered(self, execution: Any, *, reached: bool) -> None:
        self.told.append(("delivered", reached))

    def closing(self, interpreter: Any) -> None:
        self.told.append(("closing", None))

    def cancel(self, interpreter: Any, context: Context) -> None:
        self.told.append(("cancel", context.paragraph_id))

    def status(self, paragraph: str) -> str:
        self.told.append(("status", paragraph))
        return "RUNNING"

    def completion(self, text: str, cursor: int, context: Context) -> list[Completion]:
        self.told.append(("completion", (text, cursor)))
        return [Completion(f"after {text[:cursor]}", "value", "meta")]

    def progress(self, context: Context) -> int:
        return 700


def exchange(parts: Parts, request: bytes) -> bytes:
    """What our server answers to the bytes of a request."""
    bound = BoundSocket("127.0.0.1", range(0))
    handler = Handler(
        parts,  # type: ignore[arg-type]
        parts,  # type: ignore[arg-type]
        lambda properties: parts.told.append(("init", dict(properties))),
        lambda host, port: parts.told.append(("reconnect", (host, port))),
        lambda: parts.told.append(("shutdown", ())),
    )
    server = InterpreterServer(handler, bound, Callers("127.0.0.1", bound.port))
    server.start()
    with socket.create_connection(("127.0.0.1", bound.port), timeout=30) as client:
        client.sendall(request)
        answer = client.recv(65536)
    server.stop()
    return answer


class Wire:
    """Takes one call of ours, keeps its bytes and answers with recorded ones."""

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
    """A message without the sequence number behind its method's name."""
    end = 8 + int.from_bytes(message[4:8], "big")
    return message[:end] + message[end + 4 :]
