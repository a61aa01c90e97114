"""What we say to Zeppelin's server: its event service, over connections that are kept.

Does not decide what to say nor how often (``output``).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

from thriftpy2.thrift import TApplicationException, TClient, TException

from submarine_zeppelin.interface import Message, NoteParagraph, ParagraphGoneError
from submarine_zeppelin.thrift.idl import protocol
from submarine_zeppelin.thrift.transport import connected

#: Seconds that one call may take: the server answers in milliseconds unless it is ill.
TIMEOUT = 20.0
#: Connections that are kept for the next calls.
KEPT = 4


class ServerAwayError(Exception):
    """Zeppelin's server does not answer; whether the call was heard is not known."""


class EventRefusedError(Exception):
    """Zeppelin's server heard a call and could not do it."""


class EventClient:
    """Calls of Zeppelin's event service; safe from any thread.

    Parameters
    ----------
    host, port
        Where the server listens for events.
    group
        Id of the interpreter group that we are a process of.
    trusts
        Whether the port is still the server's; asked for each connection, before anything is sent.
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
        """Where calls go now."""
        return self._address

    def move(self, host: str, port: int) -> None:
        """The server has come back at another address."""
        with self._lock:
            self._address = (host, port)
        self.close()

    def register(self, host: str, port: int) -> None:
        """Tell the server where we listen."""
        info = protocol.RegisterInfo(host=host, port=port, interpreterGroupId=self.group)
        self._call("registerInterpreterProcess", info)

    def append(self, note: str, paragraph: str, index: int, text: str) -> None:
        """Add to a piece of output in open browsers; not saved by anything."""
        event = protocol.OutputAppendEvent(
            noteId=note, paragraphId=paragraph, index=index, data=text
        )
        # Twice the same text would be worse than none.
        self._call("appendOutput", event, again=False)

    def update(self, note: str, paragraph: str, index: int, message: Message) -> None:
        """Replace one piece of output, or add one at the end."""
        event = protocol.OutputUpdateEvent(
            noteId=note,
            paragraphId=paragraph,
            index=index,
            type=message.kind.value,
            data=message.data,
        )
        self._call("updateOutput", event)

    def update_all(self, note: str, paragraph: str, messages: Sequence[Message]) -> None:
        """Replace all output."""
        pieces = [wire_message(message) for message in messages]
        event = protocol.OutputUpdateAllEvent(noteId=note, paragraphId=paragraph, msg=pieces)
        self._call("updateAllOutput", event)

    def checkpoint(self, note: str, paragraph: str) -> None:
        """Save what updates have set, so that a reload shows it."""
        self._call("checkpointOutput", note, paragraph)

    def link(self, note: str, paragraph: str, label: str, url: str, tooltip: str) -> None:
        """Set the job's link below a paragraph."""
        info = {
            "noteId": note,
            "paraId": paragraph,
            "label": label,
            "tooltip": tooltip,
            "jobUrl": url,
        }
        self._call("sendParagraphInfo", self.group, json.dumps(info))

    def paragraphs(self, note: str, user: str) -> list[NoteParagraph]:
        """All paragraphs of a note, in order."""
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

    def check_there(self, note: str, paragraph: str, user: str) -> None:
        """Tell a deleted paragraph from a call that failed for another reason.

        Raises
        ------
        ParagraphGoneError
            If the server does not have the paragraph.
        """
        try:
            ids = {one.paragraph_id for one in self.paragraphs(note, user)}
        except EventRefusedError:
            raise ParagraphGoneError(f"note {note} is not there any more") from None
        if paragraph not in ids:
            raise ParagraphGoneError(f"paragraph {paragraph} is not there any more")

    def close(self) -> None:
        """Close the connections that nobody uses now."""
        with self._lock:
            idle, self._idle = self._idle, []
        for client in idle:
            client.close()

    def _call(self, method: str, *arguments: Any, again: bool = True) -> Any:
        """One call; where a kept connection has died since its last one, again on a new one."""
        with self._lock:
            client = self._idle.pop() if self._idle else None
        if client is not None:
            try:
                return self._once(client, method, arguments)
            except ServerAwayError:
                self.close()
                if not again:
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
            raise ServerAwayError(f"{type(error).__name__}: {error}") from None
        finally:
            with self._lock:
                usable = usable and address == self._address and len(self._idle) < KEPT
                if usable:
                    self._idle.append(client)
            if not usable:
                client.close()
        return result

    def _connect(self) -> Any:
        try:
            transport = connected(*self._address, timeout=TIMEOUT)
        except (TException, OSError) as error:
            raise ServerAwayError(f"{type(error).__name__}: {error}") from None
        if not self._trusts(*self._address):
            transport.trans.close()
            raise ServerAwayError("another user has taken its port")
        return TClient(protocol.RemoteInterpreterEventService, transport)


def wire_message(message: Message) -> Any:
    """A piece of output as the protocol has it."""
    return protocol.RemoteInterpreterResultMessage(type=message.kind.value, data=message.data)
