"""Thrift server with one thread for each connection."""

from __future__ import annotations

import io
import logging
import select
import socket
import threading
import time
from typing import Any, Protocol

from thriftpy2.server import TThreadedServer
from thriftpy2.thrift import TProcessor
from thriftpy2.transport import TTransportException

from submarine_zeppelin.thrift.access import AccessPolicy
from submarine_zeppelin.thrift.idl import protocol
from submarine_zeppelin.thrift.transport import BoundSocket, MalformedCallError, read_call

log = logging.getLogger(__name__)
_connection = threading.local()


class ThriftServer(TThreadedServer):  # type: ignore[misc]
    """Serves calls on a bound socket until it is stopped or the process ends."""

    def __init__(self, processor: Any, bound: BoundSocket) -> None:
        super().__init__(processor, bound, daemon=True)

    def start(self) -> None:
        """Serve in a background thread."""
        self.trans.listen()
        threading.Thread(target=self.serve, daemon=True, name="serve").start()

    def stop(self) -> None:
        """Stop accepting connections."""
        self.closed = True
        self.trans.close()

    def serve(self) -> None:
        """Accept connections until ``stop``; pause after errors such as too many open files."""
        while not self.closed:
            try:
                client = self.trans.accept()
            except (OSError, AssertionError):  # thriftpy2 raises AssertionError for a closed socket
                if not self.closed:
                    log.exception("a connection could not be accepted")
                    time.sleep(0.2)
                continue
            threading.Thread(target=self.handle, args=(client,), daemon=True).start()

    def handle(self, client: Any) -> None:
        """Serve one connection until the other side closes it."""
        transport = self.itrans_factory.get_transport(client)
        answers = self.oprot_factory.get_protocol(transport)
        try:
            with client.sock.makefile("rb") as stream:
                while (call := read_call(stream)) is not None:
                    whole = self.itrans_factory.get_transport(io.BytesIO(call))
                    self.processor.process(self.iprot_factory.get_protocol(whole), answers)
        except MalformedCallError as error:
            log.warning("closed a connection: %s", error)
        except (TTransportException, OSError):
            pass
        except Exception:
            log.exception("a connection was closed after an error")
        finally:
            transport.close()


class DeliveryObserver(Protocol):
    """Part of a handler that records whether its last result was delivered."""

    def result_sent(self, *, delivered: bool) -> None:
        """Record whether the last result of this thread has reached the server."""


class InterpreterServer(ThriftServer):
    """Serves calls of Zeppelin's server and rejects other connections."""

    def __init__(self, handler: DeliveryObserver, bound: BoundSocket, access: AccessPolicy) -> None:
        super().__init__(_Processor(protocol.RemoteInterpreterService, handler), bound)
        self._access = access

    def handle(self, client: Any) -> None:
        """Serve one connection if it comes from Zeppelin's server."""
        reason = self._access.rejection(client.sock)
        if reason is not None:
            self._access.log_rejection(reason)
            client.close()
            return
        _connection.socket = client.sock
        super().handle(client)


class _Processor(TProcessor):  # type: ignore[misc]
    """Reports to the handler whether a result has reached the server."""

    def send_result(self, oprot: Any, api: str, result: Any, seqid: int) -> None:
        delivered = False
        try:
            is_open = _is_open(getattr(_connection, "socket", None))
            super().send_result(oprot, api, result, seqid)
            delivered = is_open
        finally:
            self._handler.result_sent(delivered=delivered)


def _is_open(client: socket.socket | None) -> bool:
    """Whether the other side has not closed a connection."""
    if client is None:
        return True
    try:
        if not select.select([client], [], [], 0)[0]:
            return True
        return bool(client.recv(1, socket.MSG_PEEK))
    except (OSError, ValueError):
        return False
