"""Client of the event service of Zeppelin's server, over connections that are kept open.

``execution.output_writer`` decides what is sent and how often.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

from thriftpy2.thrift import TApplicationException, TClient, TException

from submarine_zeppelin.interface import Message, NoteParagraph, ParagraphGoneError
from submarine_zeppelin.thrift.idl import protocol
from submarine_zeppelin.thrift.transport import open_protocol

#: Timeout of a call in seconds. The server normally answers in milliseconds.
TIMEOUT = 20.0
#: Maximum number of idle connections.
MAX_IDLE = 4


class ServerUnavailableError(Exception):
    """Zeppelin's server does not answer. It may have received the call."""


class EventRefusedError(Exception):
    """Zeppelin's server received a call and reported an error."""


class EventClient:
    """Calls of Zeppelin's event service. Thread-safe.

    Parameters
    ----------
    host, port
        Address of the event service.
    group
        Id of the interpreter group of this process.
    trusts
        Whether the port still belongs to the server; called before data is sent.
    """

    def __init__(
        self,
        host: str,
        port: int,
        group: str,
        trusts: Callable[[str, int], bool] = lambda host, port: True,
    ) -> None:
        self.group = group
        self._trusts = trusts
        self._address = (host, port)
        self._lock = threading.Lock()
        self._idle: list[Any] = []

    @property
    def address(self) -> tuple[str, int]:
        """Current address of the server."""
        return self._address

    def set_server(self, host: str, port: int) -> None:
        """Set the address of a server that has restarted."""
        with self._lock:
            self._address = (host, port)
        self.close()

    def register(self, host: str, port: int) -> None:
        """Register the address of this process with the server."""
        info = protocol.RegisterInfo(host=host, port=port, interpreterGroupId=self.group)
        self._call("registerInterpreterProcess", info)

    def append(self, note: str, paragraph: str, index: int, text: str) -> None:
        """Append to a message in open browsers. The server does not save it."""
        event = protocol.OutputAppendEvent(
            noteId=note, paragraphId=paragraph, index=index, data=text
        )
        # A retry could append the text twice.
        self._call("appendOutput", event, retry=False)

    def update(self, note: str, paragraph: str, index: int, message: Message) -> None:
        """Replace one message of the output, or add one at the end."""
        event = protocol.OutputUpdateEvent(
            noteId=note,
            paragraphId=paragraph,
            index=index,
            type=message.kind.value,
            data=message.data,
        )
        self._call("updateOutput", event)

    def update_all(self, note: str, paragraph: str, messages: Sequence[Message]) -> None:
        """Replace the whole output."""
        converted = [wire_message(message) for message in messages]
        event = protocol.OutputUpdateAllEvent(noteId=note, paragraphId=paragraph, msg=converted)
        self._call("updateAllOutput", event)

    def checkpoint(self, note: str, paragraph: str) -> None:
        """Save the output that updates have set."""
        self._call("checkpointOutput", note, paragraph)

    def link(self, note: str, paragraph: str, label: str, url: str, tooltip: str) -> None:
        """Set the job link below a paragraph."""
        info = {
            "noteId": note,
            "paraId": paragraph,
            "label": label,
            "tooltip": tooltip,
            "jobUrl": url,
        }
        self._call("sendParagraphInfo", self.group, json.dumps(info))

    def paragraphs(self, note: str, user: str) -> list[NoteParagraph]:
        """Return all paragraphs of a note in order."""
        found = self._call("getParagraphList", user, note)
        return [
            NoteParagraph(
                one.noteId or note,
                one.paragraphId or "",
                one.paragraphTitle or "",
                one.paragraphText or "",
            )
            for one in found
        ]

    def resources(self) -> list[str]:
        """Return the descriptions of the values that other processes share, as JSON."""
        return list(self._call("getAllResources", self.group))

    def resource(self, resource_id: str) -> bytes:
        """Return a shared value in Java's serialization format; empty if it does not exist."""
        found = self._call("getResource", resource_id)
        return found if isinstance(found, bytes) else str(found or "").encode()

    def check_exists(self, note: str, paragraph: str, user: str) -> None:
        """Check that a paragraph exists, after a call for it has failed.

        Raises
        ------
        ParagraphGoneError
            If the paragraph does not exist.
        """
        try:
            ids = {one.paragraph_id for one in self.paragraphs(note, user)}
        except EventRefusedError:
            raise ParagraphGoneError(f"note {note} was deleted") from None
        if paragraph not in ids:
            raise ParagraphGoneError(f"paragraph {paragraph} was deleted")

    def close(self) -> None:
        """Close idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for client in idle:
            client.close()

    def _call(self, method: str, *arguments: Any, retry: bool = True) -> Any:
        """Make a call; if an idle connection has failed, retry with a new connection."""
        with self._lock:
            client = self._idle.pop() if self._idle else None
        if client is not None:
            try:
                return self._once(client, method, arguments)
            except ServerUnavailableError:
                self.close()
                if not retry:
                    raise
        return self._once(self._connect(), method, arguments)

    def _once(self, client: Any, method: str, arguments: tuple[Any, ...]) -> Any:
        address = self._address
        usable = False
        try:
            result = getattr(client, method)(*arguments)
            usable = True
        except TApplicationException as error:
            usable = True
            raise EventRefusedError(str(error)) from None
        except protocol.InterpreterRPCException as error:
            usable = True
            raise EventRefusedError(str(error.errorMessage)) from None
        except (TException, OSError, EOFError) as error:
            raise ServerUnavailableError(f"{type(error).__name__}: {error}") from None
        finally:
            with self._lock:
                usable = usable and address == self._address and len(self._idle) < MAX_IDLE
                if usable:
                    self._idle.append(client)
            if not usable:
                client.close()
        return result

    def _connect(self) -> Any:
        try:
            transport = open_protocol(*self._address, timeout=TIMEOUT)
        except (TException, OSError) as error:
            raise ServerUnavailableError(f"{type(error).__name__}: {error}") from None
        if not self._trusts(*self._address):
            transport.trans.close()
            raise ServerUnavailableError("its port belongs to another user")
        return TClient(protocol.RemoteInterpreterEventService, transport)


def wire_message(message: Message) -> Any:
    """Convert a message of the output."""
    return protocol.RemoteInterpreterResultMessage(type=message.kind.value, data=message.data)
