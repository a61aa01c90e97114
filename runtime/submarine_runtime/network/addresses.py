"""Determine the address and interface under which other containers connect to this one."""

from __future__ import annotations

import fcntl
import socket
import struct

from submarine_runtime.translation import _

_SIOCGIFADDR = 0x8915


def address_of(interface: str) -> str | None:
    """Return the IPv4 address of a network interface; None if it has none."""
    request = struct.pack("256s", interface.encode()[:15])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            answer = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, request)
        except OSError:
            return None
    return socket.inet_ntoa(answer[20:24])


def interface_of(address: str) -> str:
    """Return the network interface with an address; empty if there is none."""
    for _unused, name in socket.if_nameindex():
        if address_of(name) == address:
            return name
    return ""


def own_address(local_address: str, interface: str | None, local: bool) -> tuple[str, str]:
    """Return the address and interface of this task.

    Parameters
    ----------
    local_address
        The local address of the connection to the coordinator.
    interface
        An interface by name, if the user named one.
    local
        Whether all tasks of the job are on this machine.

    Raises
    ------
    ValueError
        If there is no such interface, or it has no IPv4 address.
    """
    if interface:
        address = address_of(interface)
        if address is None:
            names = ", ".join(name for _, name in socket.if_nameindex())
            raise ValueError(
                _(
                    "--network-interface {interface}: this node has no such interface with an "
                    "IPv4 address; it has {names}"
                ).format(interface=interface, names=names)
            )
        return address, interface
    if local_address.startswith("127.") and not local:
        # The coordinator is on this node, but other tasks may be on other nodes.
        try:
            resolved = socket.gethostbyname(socket.gethostname())
        except OSError:
            resolved = local_address
        if not resolved.startswith("127."):
            local_address = resolved
    return local_address, interface_of(local_address)
