"""Addresses, ports, TLS and tunnels."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.network.addresses import (
        address_of as address_of,
        interface_of as interface_of,
        own_address as own_address,
    )
    from submarine_runtime.network.connection_limit import ConnectionLimit as ConnectionLimit
    from submarine_runtime.network.peers import (
        Address as Address,
        UnknownPeerError as UnknownPeerError,
        addresses_of as addresses_of,
        is_own as is_own,
        listener_uids as listener_uids,
        peer_uid as peer_uid,
        remote_address as remote_address,
    )
    from submarine_runtime.network.ports import PortUse as PortUse, Reservation as Reservation
    from submarine_runtime.network.tls import server_context as server_context
    from submarine_runtime.network.tunnel import (
        MAX_TUNNELS as MAX_TUNNELS,
        Carrier as Carrier,
        Tunnels as Tunnels,
        keep_alive as keep_alive,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "addresses": ("address_of", "interface_of", "own_address"),
            "connection_limit": ("ConnectionLimit",),
            "peers": (
                "Address",
                "UnknownPeerError",
                "addresses_of",
                "is_own",
                "listener_uids",
                "peer_uid",
                "remote_address",
            ),
            "ports": ("PortUse", "Reservation"),
            "tls": ("server_context",),
            "tunnel": ("Carrier", "MAX_TUNNELS", "Tunnels", "keep_alive"),
        },
    )
