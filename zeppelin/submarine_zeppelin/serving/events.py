"""What we say to Zeppelin's server: its event service, over one connection for each thread.

Does not decide what to say nor how often (``output``).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

from thriftpy2.thrift import TApplicationException, TClient, TException

from submarine_zeppelin.paragraph import Message, NoteParagraph, ParagraphGoneError
from submarine_zeppelin.serving.idl import protocol
from submarine_zeppelin.serving.transport import connected

#: Seconds that one call may take: the server answers in milliseconds unless it is ill.
TIMEOUT = 20.0


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
    """

    def __init__(self, host: str, port: int, group: str) -> None:
        self.group = group
        self._address = (host, port)
        self._local = threading.local()

    @property
    def address(self) -> tuple[str, int]:
        """Where calls go now."""
        return self._address

    def move(self, host: str, port: int) -> None:
        """The server has come back at another address."""
        self._address = (host, port)

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

    def _call(self, method: str, *arguments: Any, again: bool = True) -> Any:
        """One call; on a connection that has died since the last one, once more on a new one."""
        fresh = self._client_is_fresh()
        try:
            return self._once(lambda client: getattr(client, method)(*arguments))
        except ServerAwayError:
            if fresh or not again:
                raise
        return self._once(lambda client: getattr(client, method)(*arguments))

    def _client_is_fresh(self) -> bool:
        client, address = getattr(self._local, "client", (None, None))
        if client is not None and address != self._address:
            self._drop()
            client = None
        return client is None

    def _once(self, call: Callable[[Any], Any]) -> Any:
        try:
            return call(self._client())
        except TApplicationException as error:
            raise EventRefusedError(str(error)) from None
        except protocol.InterpreterRPCException as error:
            raise EventRefusedError(str(error.errorMessage)) from None
        except (TException, OSError, EOFError) as error:
            self._drop()
            raise ServerAwayError(f"{type(error).__name__}: {error}") from None
        except BaseException:
            self._drop()
            raise

    def _client(self) -> Any:
        client, address = getattr(self._local, "client", (None, None))
        if client is None:
            address = self._address
            client = TClient(
                protocol.RemoteInterpreterEventService, connected(*address, timeout=TIMEOUT)
            )
            self._local.client = (client, address)
        return client

    def _drop(self) -> None:
        client, _ = getattr(self._local, "client", (None, None))
        self._local.client = (None, None)
        if client is not None:
            client.close()


def wire_message(message: Message) -> Any:
    """A piece of output as the protocol has it."""
    return protocol.RemoteInterpreterResultMessage(type=message.kind.value, data=message.data)
