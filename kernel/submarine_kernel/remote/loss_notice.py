"""Tells the clients of a kernel that is gone why: an error in each cell that it worked on.

Listens on the kernel's sockets of this machine for a few seconds, since clients connect to them
again by themselves, and answers what ran, what waited behind it, and what comes meanwhile.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from submarine_kernel.remote.socket_directory import channel_url

#: Seconds for clients to come back and hear it; and until the first of them has.
STAYS, FIRST = 5.0, 2.0
#: Seconds from a client's ear to whoever shows it.
SETTLE = 0.3
NAME = "KernelGoneError"
#: Of a cell whose turn did not come; the reason stands in the one before it.
NOT_RUN = "This cell did not run: the kernel was lost before its turn."


class LastWords:
    """A sentence for whoever listens.

    Parameters
    ----------
    sentence
        Why the kernel is gone.
    connection
        Of the kernel; its own ends of the sockets are closed.
    running
        Headers of the requests that it worked on.
    waiting
        Headers of those that waited for their turn.
    """

    def __init__(
        self,
        sentence: str,
        connection: Mapping[str, Any],
        running: Sequence[Mapping[str, Any]] = (),
        waiting: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self._sentence = sentence
        self._connection = dict(connection)
        # With nothing that ran, the first of those that waited says why.
        told = [*running, *waiting][: max(1, len(running))]
        self._asked = [(dict(header), sentence) for header in told]
        self._asked += [(dict(header), NOT_RUN) for header in waiting if header not in told]
        self._over = threading.Event()
        self._heard = threading.Event()
        self._thread = threading.Thread(target=self._say, daemon=True, name="submarine-last-words")

    def say(self) -> None:
        """Say it in the background, and wait until somebody may have heard it."""
        self._thread.start()
        if self._heard.wait(FIRST):
            time.sleep(SETTLE)

    def end(self) -> None:
        """Give the sockets back; to be called where they may be needed again."""
        self._over.set()
        self._thread.join(1.0)

    def _say(self) -> None:
        import zmq

        with contextlib.suppress(zmq.ZMQError, OSError, KeyError), zmq.Context() as context:
            _Stand(context, self._connection, self._sentence, self._asked).serve(
                self._over, self._heard
            )


class _Stand:
    """The two sockets, and who has come to them."""

    def __init__(
        self,
        context: Any,
        words: Mapping[str, Any],
        sentence: str,
        asked: list[tuple[dict[str, Any], str]],
    ) -> None:
        import zmq
        from jupyter_client.session import Session

        self._sentence = sentence
        self._asked = asked
        self._session = Session(key=words["key"], signature_scheme=words["signature_scheme"])
        self._number = 0
        self._iopub = context.socket(zmq.XPUB)
        # Each client is told once: with a topic that only it has been subscribed to.
        self._iopub.setsockopt(zmq.XPUB_MANUAL, 1)
        self._shell = context.socket(zmq.ROUTER)
        self._shell.setsockopt(zmq.ROUTER_MANDATORY, 1)
        for socket, name in ((self._iopub, "iopub"), (self._shell, "shell")):
            socket.linger = 200
            socket.bind(channel_url(words, name))

    def serve(self, over: threading.Event, heard: threading.Event) -> None:
        """Until everybody had the time to come."""
        import zmq

        poller = zmq.Poller()
        poller.register(self._iopub, zmq.POLLIN)
        poller.register(self._shell, zmq.POLLIN)
        unanswered = list(self._asked)
        deadline = time.monotonic() + STAYS
        with self._iopub, self._shell:
            while time.monotonic() < deadline and not over.is_set():
                ready = dict(poller.poll(100))
                if self._iopub in ready and self._greet(self._iopub.recv()):
                    heard.set()
                if self._shell in ready:
                    self._refuse(self._shell.recv_multipart())
                unanswered = [each for each in unanswered if not self._reply(*each)]

    def _greet(self, wish: bytes) -> bool:
        """Tell one client that listens; whether it was one."""
        import zmq

        if not wish.startswith(b"\x01"):
            return False
        self._number += 1
        topic = f"gone.{self._number}.".encode()
        self._iopub.setsockopt(zmq.SUBSCRIBE, topic)
        if not self._asked:
            self._publish("stream", {"name": "stderr", "text": f"{self._sentence}\n"}, {}, topic)
        for header, sentence in self._asked:
            self._publish("error", _error(sentence), header, topic)
            self._publish("status", {"execution_state": "idle"}, header, topic)
        # Of its other subscriptions, which would bring it everything once more, none is taken.
        return True

    def _refuse(self, frames: list[bytes]) -> None:
        """A request that came too late."""
        with contextlib.suppress(ValueError, KeyError, TypeError):
            who, parts = self._session.feed_identities(frames)
            header = self._session.deserialize(parts)["header"]
            if header["msg_type"] == "execute_request":
                content = _reply_of(self._sentence)
                self._session.send(self._shell, "execute_reply", content, parent=header, ident=who)

    def _reply(self, header: Mapping[str, Any], sentence: str) -> bool:
        """Answer who has asked, if it has come back; a client goes by the name of its session."""
        import zmq

        who = str(header.get("session", "")).encode()
        parent = {"header": dict(header)}
        try:
            content = _reply_of(sentence)
            self._session.send(self._shell, "execute_reply", content, parent=parent, ident=who)
        except zmq.ZMQError:
            return False
        return True

    def _publish(
        self, kind: str, content: Mapping[str, Any], header: Mapping[str, Any], topic: bytes
    ) -> None:
        parent = {"header": dict(header)} if header else None
        self._session.send(self._iopub, kind, dict(content), parent=parent, ident=topic)


def _error(sentence: str) -> dict[str, Any]:
    shown = f"\x1b[0;31m{NAME}\x1b[0m: {sentence}"
    return {"ename": NAME, "evalue": sentence, "traceback": [shown]}


def _reply_of(sentence: str) -> dict[str, Any]:
    return {"status": "error", "execution_count": 0, **_error(sentence)}
