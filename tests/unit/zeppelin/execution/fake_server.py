"""Fake of Zeppelin's event service in this process, and a controllable interpreter."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from thriftpy2.server import TThreadedServer
from thriftpy2.thrift import TApplicationException, TProcessor

from submarine_zeppelin.interface import (
    Code,
    Context,
    Interpreter,
    Kind,
    Message,
    Output,
    Result,
    Server,
)
from submarine_zeppelin.thrift import BoundSocket, EventClient, protocol

NOTE = "2N8HY5PHA"


def context(paragraph: str = "p1", **more: Any) -> Context:
    return Context(note_id=NOTE, paragraph_id=paragraph, **more)


def html(text: str) -> Message:
    return Message(Kind.HTML, text)


class FakeZeppelin:
    """Handles events as the real server does: shows, saves, rejects deleted paragraphs."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.shown: dict[str, list[Message]] = {}
        self.saved: dict[str, list[Message]] = {}
        self._buffer: dict[str, list[Message]] = {}
        self.deleted: set[str] = set()
        self.refuse = 0

    def _check(self, paragraph: str) -> None:
        if self.refuse:
            self.refuse -= 1
            raise TApplicationException(TApplicationException.INTERNAL_ERROR, "refused")
        if paragraph in self.deleted:
            raise TApplicationException(TApplicationException.INTERNAL_ERROR, "not there")

    def registerInterpreterProcess(self, info: Any) -> None:
        self.calls.append(("register", info.host, info.port, info.interpreterGroupId))

    def unRegisterInterpreterProcess(self, group: str) -> None:
        self.calls.append(("unregister", group))

    def appendOutput(self, event: Any) -> None:
        self._check(event.paragraphId)
        self.calls.append(("append", event.paragraphId, event.index, event.data))
        piece = self.shown[event.paragraphId][event.index]
        self.shown[event.paragraphId][event.index] = Message(piece.kind, piece.data + event.data)

    def updateOutput(self, event: Any) -> None:
        self._check(event.paragraphId)
        self.calls.append(("update", event.paragraphId, event.index, event.data))
        for table in (self.shown, self._buffer):
            pieces = table.setdefault(event.paragraphId, [])
            assert event.index <= len(pieces), "indexes must be contiguous"
            pieces[event.index : event.index + 1] = [Message(Kind(event.type), event.data)]

    def updateAllOutput(self, event: Any) -> None:
        self._check(event.paragraphId)
        self.calls.append(("all", event.paragraphId, len(event.msg or [])))
        for table in (self.shown, self._buffer):
            table[event.paragraphId] = [
                Message(Kind(one.type), one.data) for one in event.msg or []
            ]

    def checkpointOutput(self, note: str, paragraph: str) -> None:
        self._check(paragraph)
        self.calls.append(("checkpoint", paragraph))
        self.saved[paragraph] = list(self._buffer.get(paragraph, []))

    def sendParagraphInfo(self, group: str, info: str) -> None:
        self.calls.append(("info", group, info))

    def getParagraphList(self, user: str, note: str) -> list[Any]:
        return [
            protocol.ParagraphInfo(noteId=note, paragraphId=name, paragraphText="x")
            for name in ("p1", "p2", "p3")
            if name not in self.deleted
        ]


class Running:
    """A listening fake server and a client of it."""

    def __init__(self) -> None:
        self.fake = FakeZeppelin()
        self._clients: list[Any] = []
        self.events = EventClient("127.0.0.1", self._listen(), "submarine-shared_process")

    def _listen(self) -> int:
        self._socket = BoundSocket("127.0.0.1", range(0))
        accept = self._socket.accept

        def recording() -> Any:
            client = accept()
            self._clients.append(client)
            return client

        self._socket.accept = recording
        processor = TProcessor(protocol.RemoteInterpreterEventService, self.fake)
        server = TThreadedServer(processor, self._socket, daemon=True)
        self._server = server
        self._socket.listen()
        threading.Thread(target=self._serve, args=(server,), daemon=True).start()
        return int(self._socket.port)

    @staticmethod
    def _serve(server: Any) -> None:
        while not server.closed:
            try:
                client = server.trans.accept()
            except (OSError, AssertionError, AttributeError):
                return
            threading.Thread(target=_quietly, args=(server.handle, client), daemon=True).start()

    def stop(self) -> None:
        """Close all connections and stop listening."""
        self._server.close()
        self._socket.close()
        for client in self._clients:
            # The thread of the connection closes it.
            with suppress(OSError, AttributeError):
                client.sock.shutdown(socket.SHUT_RDWR)

    def restart(self) -> None:
        """Listen at another address and set it in the client."""
        self.events.set_server("127.0.0.1", self._listen())


def _quietly(work: Callable[[Any], None], argument: Any) -> None:
    try:
        work(argument)
    except (OSError, AssertionError):
        pass


@contextmanager
def running() -> Iterator[Running]:
    server = Running()
    try:
        yield server
    finally:
        server.events.close()
        server.stop()


class NoServer(Server):
    """Server for interpreters that do not call it."""

    def paragraphs(self, note_id: str, user: str) -> list[Any]:
        return []

    def output(self, context: Context) -> Output:
        raise NotImplementedError


class ControlledInterpreter(Interpreter):
    """Runs until the test ends the run, and counts runs."""

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(properties or {}, NoServer(), "session")
        self.began: list[tuple[str, str]] = []
        self.running: set[str] = set()
        self.max_parallel = 0
        self.result = Result(Code.SUCCESS, (Message(Kind.TEXT, "done"),))
        self.raises: BaseException | None = None
        self.go: dict[str, threading.Event] = {}
        self.cancelled: list[str] = []
        self.ignores_cancel = False
        self.is_active = False
        self.closed = False
        self._lock = threading.Lock()

    def hold(self, paragraph: str) -> threading.Event:
        """Return an event that ends the paragraph's runs."""
        return self.go.setdefault(paragraph, threading.Event())

    def interpret(self, text: str, context: Context, output: Output) -> Result:
        with self._lock:
            self.began.append((context.paragraph_id, text))
            self.running.add(context.paragraph_id)
            self.max_parallel = max(self.max_parallel, len(self.running))
        try:
            if context.paragraph_id in self.go:
                assert self.go[context.paragraph_id].wait(60)
            if self.raises is not None:
                raise self.raises
            return self.result
        finally:
            with self._lock:
                self.running.discard(context.paragraph_id)

    def active(self, context: Context) -> bool:
        return self.is_active

    def cancel(self, context: Context) -> None:
        self.cancelled.append(context.paragraph_id)
        if not self.ignores_cancel:
            self.hold(context.paragraph_id).set()

    def close(self) -> None:
        self.closed = True
