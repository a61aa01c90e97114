"""Accept only connections of Zeppelin's server. Zeppelin's protocol has no authentication.

A server on this machine is identified by its user, which the kernel reports for both ends of a
connection; a server on another machine by its address. Other connections are closed before a call
is read.
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
#: Variable with additional addresses of a server on another machine, separated by commas.
ADDRESSES = "SUBMARINE_ZEPPELIN_ADDRESSES"


class AccessPolicy:
    """Decides which connections an interpreter process accepts. Thread-safe.

    Parameters
    ----------
    host, port
        Event service of the server that started the process.
    environ
        May contain ``SUBMARINE_ZEPPELIN_ADDRESSES``.
    """

    def __init__(self, host: str, port: int, environ: Mapping[str, str] | None = None) -> None:
        more = (os.environ if environ is None else environ).get(ADDRESSES, "")
        self._more = [name.strip() for name in more.split(",") if name.strip()]
        self._logged: set[str] = set()
        self._lock = threading.Lock()
        self._uids = {os.geteuid()}
        self.set_server(host, port)

    def set_server(self, host: str, port: int) -> None:
        """Set the address of the server."""
        self._host, self._local = host, is_local(host)
        if self._local:
            try:
                self._uids |= listener_uids(host, port)
            except UnknownPeerError:
                log.warning(
                    "this system does not report the users of connections: every user of this "
                    "machine can run code through the interpreter's port"
                )

    def rejection(self, connection: socket.socket) -> str | None:
        """Return why a connection is rejected; None if it is the server's."""
        return self._user_rejection(connection) if self._local else self._host_rejection(connection)

    def log_rejection(self, reason: str) -> None:
        """Log a rejected connection, each reason once, because any process can connect."""
        with self._lock:
            if reason in self._logged or len(self._logged) > 100:
                return
            self._logged.add(reason)
        log.warning("rejected a connection: %s", reason)

    def trusts_server(self, host: str, port: int) -> bool:
        """Whether the port of the event service still belongs to the server's user."""
        try:
            return not is_local(host) or listener_uids(host, port) <= self._uids
        except UnknownPeerError:
            return True

    def _user_rejection(self, connection: socket.socket) -> str | None:
        try:
            uid = peer_uid(connection)
        except UnknownPeerError:
            return None
        if uid in self._uids:
            return None
        return "its user is unknown" if uid is None else f"user {uid} is not Zeppelin's user"

    def _host_rejection(self, connection: socket.socket) -> str | None:
        address = remote_address(connection)
        # Resolve names again each time: the address of a server may change.
        if any(address in addresses_of(name) for name in (self._host, *self._more)):
            return None
        return f"{address} is not an address of Zeppelin's host {self._host} (see {ADDRESSES})"
