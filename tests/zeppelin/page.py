"""The websocket of Zeppelin's page, which gets the messages of a note."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

import websocket

from tests.zeppelin.server import Note, Zeppelin


class Page:
    """A page that shows a note; what it hears is kept in ``heard``."""

    def __init__(self, server: Zeppelin, note: Note) -> None:
        self._socket = websocket.create_connection(
            f"ws://127.0.0.1:{server.port}/ws",
            origin=f"http://127.0.0.1:{server.port}",
            timeout=60,
        )
        self.note = note
        self.heard: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        self.say("GET_NOTE", id=note.id)
        self.await_(lambda one: one["op"] == "NOTE")

    def __enter__(self) -> Page:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing = True
        self._socket.close()
        self._thread.join(30)

    def say(self, operation: str, **data: Any) -> None:
        """Send an order of a page."""
        who = {"principal": "anonymous", "ticket": "anonymous", "roles": ""}
        self._socket.send(json.dumps({"op": operation, "data": data, **who}))

    def run(self, paragraph: str, text: str, **params: Any) -> None:
        """Run a paragraph as the page's button does, with the values of its form."""
        self.say("RUN_PARAGRAPH", id=paragraph, paragraph=text, title="", config={}, params=params)

    def cancel(self, paragraph: str) -> None:
        self.say("CANCEL_PARAGRAPH", id=paragraph)

    def await_(
        self, condition: Callable[[dict[str, Any]], bool], timeout: float = 120
    ) -> dict[str, Any]:
        """The first message that fulfils a condition, heard already or to come."""
        deadline = time.monotonic() + timeout
        seen = 0
        with self._changed:
            while True:
                for one in self.heard[seen:]:
                    if condition(one):
                        return one
                seen = len(self.heard)
                left = deadline - time.monotonic()
                told = [one["op"] for one in self.heard][-30:]
                assert left > 0, f"not heard; the last: {told}"
                self._changed.wait(left)

    def of(self, operation: str, paragraph: str = "") -> list[dict[str, Any]]:
        """The data of all messages of a kind heard so far, of one paragraph or all."""
        with self._changed:
            return [
                one["data"]
                for one in self.heard
                if one["op"] == operation
                and paragraph in ("", one["data"].get("paragraphId"), one["data"].get("id"))
            ]

    def _listen(self) -> None:
        while not self._closing:
            try:
                text = self._socket.recv()
            except websocket.WebSocketTimeoutException:
                continue
            except (websocket.WebSocketException, OSError):
                return
            if text:
                with self._changed:
                    self.heard.append(json.loads(text))
                    self._changed.notify_all()
