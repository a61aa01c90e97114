"""The requests of an agent's port: the live view of one task."""

from __future__ import annotations

import os
import ssl
import threading
from typing import Any, Callable, Mapping

from submarine_runtime import stacks
from submarine_runtime.agent.live.stream import FollowerStream
from submarine_runtime.agent.shipping import LogFiles
from submarine_runtime.network import Tunnels
from submarine_runtime.port import (
    LogPiece,
    PortRequests,
    RefusedError,
    Request,
    Write,
    response_head,
)
from submarine_runtime.protocol import wire
from submarine_runtime.protocol.layout import STREAMS
from submarine_runtime.protocol.tunnels import PROTOCOL
from submarine_runtime.record import Status
from submarine_runtime.translation import _


class LiveRequests(PortRequests):
    """Handle requests from the task's own log files.

    Parameters
    ----------
    tunnels
        Tunnels to the targets that the program has declared.
    on_cancel
        Called with ``by`` and ``why``; None: cancel is not supported here.
    on_save
        Saves the model directory under a name as a version and returns it; None: not supported
        here.
    on_renew
        Called when the client that started the job renews its lease.
    on_tokens
        Called with fresh delegation tokens.
    take_stacks
        Returns the stacks of the program's processes.
    """

    def __init__(
        self,
        status: Status,
        task: str,
        logs: LogFiles,
        tunnels: Tunnels,
        on_cancel: Callable[[dict[str, str]], None] | None = None,
        on_save: Callable[[str], dict[str, Any]] | None = None,
        on_renew: Callable[[], None] = lambda: None,
        on_tokens: Callable[[str], None] = lambda text: None,
        take_stacks: Callable[[], list[dict[str, Any]]] = list,
    ) -> None:
        actions: dict[str, Callable[[Mapping[str, str]], dict[str, Any] | None]] = {
            wire.LOOK: lambda fields: status.tensorboard_clients.request(),
            wire.RENEW: lambda fields: on_renew(),
            wire.TOKENS: lambda fields: on_tokens(fields["tokens"]),
        }
        if on_cancel is not None:
            cancel = on_cancel
            actions[wire.CANCEL] = lambda fields: cancel({k: fields[k] for k in ("by", "why")})
        if on_save is not None:
            save = on_save
            actions[wire.SAVE] = lambda fields: _saved(save, fields["name"])
        super().__init__(status, actions)
        self._task, self._logs, self._tunnels = task, logs, tunnels
        self._take_stacks = take_stacks
        self._taking = threading.Lock()

    def log(self, query: Mapping[str, str]) -> LogPiece:
        """See ``PortRequests.log``."""
        paths = self._logs.paths(query.get("attempt", ""))
        path = paths.get(query.get("stream", "")) if paths is not None else None
        if path is None or query.get("task", self._task) != self._task:
            raise RefusedError(404)
        offset = int(query.get("offset", 0))
        limit = min(wire.MAX_LOG_BYTES, max(0, int(query.get("limit", wire.MAX_LOG_BYTES))))
        try:
            with open(path, "rb") as file:
                length = os.fstat(file.fileno()).st_size
                offset = max(0, length + offset) if offset < 0 else min(offset, length)
                file.seek(offset)
                return LogPiece(file.read(min(limit, length - offset)), offset, length)
        except FileNotFoundError:
            return LogPiece(b"", 0, 0)  # The program has not been started yet.

    def times(self, query: Mapping[str, str]) -> bytes:
        """See ``PortRequests.times``."""
        index = self._logs.index(query.get("attempt", ""), query.get("stream", ""))
        if index is None or query.get("task", self._task) != self._task:
            raise RefusedError(404)
        return index

    def stacks(self, query: Mapping[str, str]) -> dict[str, Any]:
        """See ``PortRequests.stacks``."""
        if query.get("task", self._task) != self._task:
            raise RefusedError(404)
        with self._taking:
            entries = self._take_stacks()
        if not entries:
            raise RefusedError(
                409, _("The program of {task} is not running.").format(task=self._task)
            )
        if query.get("raw"):
            return {"entries": entries}
        return stacks.report(entries).to_json()

    def stream(self, query: Mapping[str, str]) -> Callable[[Write], None]:
        """See ``PortRequests.stream``."""
        events = int(query.get("events", 0))
        start = {stream: int(query.get(stream, 0)) for stream in STREAMS}
        return lambda write: FollowerStream(
            write, self._status, self._task, self._logs, self.ended, events, start
        ).run()

    def open_tunnel(
        self, request: Request, sock: ssl.SSLSocket, query: Mapping[str, str]
    ) -> Callable[[], None]:
        """See ``PortRequests.open_tunnel``."""
        if request.headers.get("upgrade", "").lower() != PROTOCOL:
            raise RefusedError(426, headers={"Upgrade": PROTOCOL})
        name = query.get("name", "")
        try:
            local = self._tunnels.open(name)
        except ValueError as exc:
            raise RefusedError(409, str(exc)) from exc
        except OSError as exc:
            raise RefusedError(503, f"{name}: {exc}") from exc
        if local is None:
            raise RefusedError(404)
        try:
            sock.sendall(response_head(101, {"Connection": "Upgrade", "Upgrade": PROTOCOL}))
        except OSError:
            self._tunnels.close(local)
            raise
        return lambda: self._tunnels.forward(sock, local)


def _saved(save: Callable[[str], dict[str, Any]], name: str) -> dict[str, Any]:
    try:
        return save(name)
    except (ValueError, OSError) as exc:
        raise RefusedError(409, str(exc)) from exc
