"""Which connections are Zeppelin's: the protocol has no authentication in any version.

A server on this machine is known by its user, which the kernel tells for both ends of a connection;
a server on another machine by its address. Everybody else is refused before a call is read.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Mapping

from submarine_runtime.network import (
    UnknownPeerError,
    addresses_of,
    listener_uids,
    peer_uid,
    remote_address,
)
from submarine_zeppelin.thrift.transport import is_local

log = logging.getLogger(__name__)
#: Other addresses from which a server on another machine connects, separated by commas.
ADDRESSES = "SUBMARINE_ZEPPELIN_ADDRESSES"


class Callers:
    """Decides about connections of one process of the group; safe from any thread.

    Parameters
    ----------
    host, port
        The event service of the server that started the process.
    environ
        May have ``SUBMARINE_ZEPPELIN_ADDRESSES``.
    """

    def __init__(self, host: str, port: int, environ: Mapping[str, str] | None = None) -> None:
        more = (os.environ if environ is None else environ).get(ADDRESSES, "")
        self._more = [name.strip() for name in more.split(",") if name.strip()]
        self._logged: set[str] = set()
        self._lock = threading.Lock()
        self._uids = {os.geteuid()}
        self.move(host, port)

    def move(self, host: str, port: int) -> None:
        """The server is at this address now."""
        self._host, self._local = host, is_local(host)
        if self._local:
            try:
                self._uids |= listener_uids(host, port)
            except UnknownPeerError:
                log.warning(
                    "this system does not tell the users of connections: every user of this "
                    "machine can run code through the interpreter's port"
                )

    def refusal(self, connection: socket.socket) -> str | None:
        """Why a connection is not the server's; None when it is."""
        return self._foreign_user(connection) if self._local else self._foreign_host(connection)

    def log_refusal(self, why: str) -> None:
        """Log a refused connection: each reason once, because anybody can make them."""
        with self._lock:
            if why in self._logged or len(self._logged) > 100:
                return
            self._logged.add(why)
        log.warning("a connection was refused: %s", why)

    def trusts_server(self, host: str, port: int) -> bool:
        """Whether the port of the event service has not been taken over by another user."""
        try:
            return not is_local(host) or listener_uids(host, port) <= self._uids
        except UnknownPeerError:
            return True

    def _foreign_user(self, connection: socket.socket) -> str | None:
        try:
            uid = peer_uid(connection)
        except UnknownPeerError:
            return None
        if uid in self._uids:
            return None
        return "its user is not known" if uid is None else f"it is of user {uid}, not of Zeppelin's"

    def _foreign_host(self, connection: socket.socket) -> str | None:
        address = remote_address(connection)
        # Looked up again each time: a name may move with its server.
        if any(address in addresses_of(name) for name in (self._host, *self._more)):
            return None
        return f"it is from {address}, not from Zeppelin's host {self._host} (see {ADDRESSES})"
