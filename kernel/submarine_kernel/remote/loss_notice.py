"""Report the loss of a kernel to its clients: an error in each cell that was running or queued.

Clients reconnect to the kernel's sockets on this machine by themselves. This module listens on the
sockets for a few seconds, and replies to earlier and new requests with an error.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import zmq
from jupyter_client.session import Session

from submarine_kernel.remote.socket_directory import channel_url
from submarine_runtime.translation import _

#: Seconds in which clients can reconnect; and seconds to wait until all of them have.
DURATION, ALL_CLIENTS = 5.0, 2.0
#: Seconds until a client has shown a message.
DELIVERY_SECONDS = 0.3
NAME = "KernelLostError"
#: Error of a queued cell; the cell before it has the reason.
NOT_RUN = _("This cell did not run: the kernel was lost before its turn.")


class LossNotice:
    """An error message to all clients of a lost kernel.

    Parameters
    ----------
    sentence
        Why the kernel is lost.
    connection
        Connection of the kernel. The kernel's own sockets are closed.
    running
        Headers of the requests that were running.
    waiting
        Headers of the requests that were queued.
    clients
        Number of clients to wait for.
    """

    def __init__(
        self,
        sentence: str,
        connection: Mapping[str, Any],
        running: Sequence[Mapping[str, Any]] = (),
        waiting: Sequence[Mapping[str, Any]] = (),
        clients: int = 1,
    ) -> None:
        self._sentence = sentence
        self._clients = max(clients, 1)
        self._connection = dict(connection)
        # If nothing was running, the first queued request gets the reason.
        first = [*running, *waiting][: max(1, len(running))]
        self._requests = [(dict(header), sentence) for header in first]
        self._requests += [(dict(header), NOT_RUN) for header in waiting if header not in first]
        self._stop = threading.Event()
        self._received = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="submarine-loss-notice")

    def publish(self) -> None:
        """Publish in the background, and wait until the clients have received the error."""
        self._thread.start()
        self._received.wait(ALL_CLIENTS)
        time.sleep(DELIVERY_SECONDS)

    def stop(self) -> None:
        """Close the sockets, which the next kernel may need."""
        self._stop.set()
        self._thread.join(1.0)

    def _run(self) -> None:
        with contextlib.suppress(zmq.ZMQError, OSError, KeyError), zmq.Context() as context:
            server = _NoticeServer(context, self._connection, self._sentence, self._requests)
            server.serve(self._stop, self._received, self._clients)


class _NoticeServer:
    """The iopub and shell sockets of the lost kernel."""

    def __init__(
        self,
        context: Any,
        connection: Mapping[str, Any],
        sentence: str,
        requests: list[tuple[dict[str, Any], str]],
    ) -> None:
        self._sentence = sentence
        self._requests = requests
        self._session = Session(
            key=connection["key"], signature_scheme=connection["signature_scheme"]
        )
        self._clients = 0
        self._iopub = context.socket(zmq.XPUB)
        # Each client gets the messages once, with a topic to which only it is subscribed.
        self._iopub.setsockopt(zmq.XPUB_MANUAL, 1)
        self._shell = context.socket(zmq.ROUTER)
        self._shell.setsockopt(zmq.ROUTER_MANDATORY, 1)
        for socket, name in ((self._iopub, "iopub"), (self._shell, "shell")):
            socket.linger = 200
            socket.bind(channel_url(connection, name))

    def serve(self, stop: threading.Event, received: threading.Event, clients: int) -> None:
        """Serve for ``DURATION`` seconds, or until ``stop`` is set.

        ``received`` is set when the errors were sent to so many ``clients``.
        """
        poller = zmq.Poller()
        poller.register(self._iopub, zmq.POLLIN)
        poller.register(self._shell, zmq.POLLIN)
        unanswered = list(self._requests)
        deadline = time.monotonic() + DURATION
        with self._iopub, self._shell:
            while time.monotonic() < deadline and not stop.is_set():
                ready = dict(poller.poll(100))
                if self._iopub in ready:
                    self._subscribe(self._iopub.recv())
                    if self._clients >= clients:
                        received.set()
                if self._shell in ready:
                    self._reject(self._shell.recv_multipart())
                unanswered = [each for each in unanswered if not self._reply(*each)]

    def _subscribe(self, message: bytes) -> None:
        """Send all errors to a client that subscribes."""
        if not message.startswith(b"\x01"):
            return
        self._clients += 1
        topic = f"gone.{self._clients}.".encode()
        self._iopub.setsockopt(zmq.SUBSCRIBE, topic)
        if not self._requests:
            self._publish("stream", {"name": "stderr", "text": f"{self._sentence}\n"}, {}, topic)
        for header, sentence in self._requests:
            self._publish("error", _error(sentence), header, topic)
            self._publish("status", {"execution_state": "idle"}, header, topic)
        # The client's own subscriptions are not applied: they would duplicate the messages.

    def _reject(self, frames: list[bytes]) -> None:
        """Reply to a request that arrives after the loss."""
        with contextlib.suppress(ValueError, KeyError, TypeError):
            client, parts = self._session.feed_identities(frames)
            header = self._session.deserialize(parts)["header"]
            if header["msg_type"] == "execute_request":
                content = _reply_content(self._sentence)
                self._session.send(
                    self._shell, "execute_reply", content, parent=header, ident=client
                )

    def _reply(self, header: Mapping[str, Any], sentence: str) -> bool:
        """Reply to an earlier request; return False until its client has reconnected.

        The identity of a client is the name of its session.
        """
        client = str(header.get("session", "")).encode()
        parent = {"header": dict(header)}
        try:
            content = _reply_content(sentence)
            self._session.send(self._shell, "execute_reply", content, parent=parent, ident=client)
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


def _reply_content(sentence: str) -> dict[str, Any]:
    return {"status": "error", "execution_count": 0, **_error(sentence)}
