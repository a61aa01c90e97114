"""The thrift server: a thread for each connection of Zeppelin's pool."""

from __future__ import annotations

import io
import logging
import select
import socket
import threading
import time
from typing import Any

from thriftpy2.server import TThreadedServer
from thriftpy2.thrift import TProcessor
from thriftpy2.transport import TTransportException

from submarine_zeppelin.service import Handler
from submarine_zeppelin.thrift.access import Callers
from submarine_zeppelin.thrift.idl import protocol
from submarine_zeppelin.thrift.transport import BoundSocket, MalformedCallError, read_call

log = logging.getLogger(__name__)
_here = threading.local()


class ThriftServer(TThreadedServer):  # type: ignore[misc]
    """Serves calls on a bound socket until it is stopped, or the process ends."""

    def __init__(self, processor: Any, bound: BoundSocket) -> None:
        super().__init__(processor, bound, daemon=True)

    def start(self) -> None:
        """Serve from now on, in a thread."""
        self.trans.listen()
        threading.Thread(target=self.serve, daemon=True, name="serve").start()

    def stop(self) -> None:
        """Take no more connections."""
        self.closed = True
        self.trans.close()

    def serve(self) -> None:
        """Take connections until ``stop``; too many open files are waited out, not spun on."""
        while not self.closed:
            try:
                client = self.trans.accept()
            except (OSError, AssertionError):  # the latter: of thriftpy2, for a closed socket
                if not self.closed:
                    log.exception("no connection could be taken")
                    time.sleep(0.2)
                continue
            threading.Thread(target=self.handle, args=(client,), daemon=True).start()

    def handle(self, client: Any) -> None:
        """Serve one connection until the other side has done with it."""
        transport = self.itrans_factory.get_transport(client)
        answers = self.oprot_factory.get_protocol(transport)
        try:
            with client.sock.makefile("rb") as stream:
                while (call := read_call(stream)) is not None:
                    whole = self.itrans_factory.get_transport(io.BytesIO(call))
                    self.processor.process(self.iprot_factory.get_protocol(whole), answers)
        except MalformedCallError as error:
            log.warning("a connection is closed: %s", error)
        except (TTransportException, OSError):
            pass
        except Exception:
            log.exception("a connection was ended")
        finally:
            transport.close()


class InterpreterServer(ThriftServer):
    """Serves Zeppelin's calls of interpreters, and nobody else's."""

    def __init__(self, handler: Handler, bound: BoundSocket, callers: Callers) -> None:
        super().__init__(_Processor(protocol.RemoteInterpreterService, handler), bound)
        self._callers = callers

    def handle(self, client: Any) -> None:
        """Serve one connection, if it is Zeppelin's."""
        why = self._callers.refusal(client.sock)
        if why is not None:
            self._callers.log_refusal(why)
            client.close()
            return
        _here.socket = client.sock
        super().handle(client)


class _Processor(TProcessor):  # type: ignore[misc]
    """Notes whether the result of a paragraph has reached the server."""

    def send_result(self, oprot: Any, api: str, result: Any, seqid: int) -> None:
        reached = False
        try:
            there = _is_there(getattr(_here, "socket", None))
            super().send_result(oprot, api, result, seqid)
            reached = there
        finally:
            self._handler.answered(reached=reached)


def _is_there(client: socket.socket | None) -> bool:
    """Whether the other side of a connection has not closed it."""
    if client is None:
        return True
    try:
        if not select.select([client], [], [], 0)[0]:
            return True
        return bool(client.recv(1, socket.MSG_PEEK))
    except (OSError, ValueError):
        return False
