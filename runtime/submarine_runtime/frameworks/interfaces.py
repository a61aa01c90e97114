"""The network interface of collective operations, for gloo, NCCL and TensorPipe.

NCCL decides about InfiniBand unless the user named an interface.
"""

from __future__ import annotations

import os
import socket

from submarine_runtime.network import address_of, interface_of
from submarine_runtime.translation import _

_DEVICES = "/sys/class/net/{}/device/infiniband"


def interface_for(address: str, requested: str | None) -> str:
    """Return the requested interface, else the one with the task's address; empty: none.

    Raises
    ------
    ValueError
        If this node has no interface of the requested name.
    """
    if requested is None:
        return interface_of(address)
    if address_of(requested) is None:
        names = ", ".join(name for _, name in socket.if_nameindex())
        raise ValueError(
            _(
                "--network-interface {requested}: this node has no such interface with an IPv4 "
                "address; it has {names}"
            ).format(requested=requested, names=names)
        )
    return requested


def variables(interface: str, requested: bool, devices: str = _DEVICES) -> dict[str, str]:
    """Return the variables that name ``interface``.

    Parameters
    ----------
    requested
        The user has named it: NCCL then uses InfiniBand only if it is an InfiniBand interface.
    devices
        Where the kernel lists the InfiniBand devices of an interface ``{}``.
    """
    if not interface:
        return {}
    names = {
        "GLOO_SOCKET_IFNAME": interface,
        "HOROVOD_GLOO_IFACE": interface,
        "NCCL_SOCKET_IFNAME": f"={interface}",  # Exactly this one: a bare name is a prefix.
        "TP_SOCKET_IFNAME": interface,
    }
    if not requested:
        return names
    try:
        adapters = sorted(os.listdir(devices.format(interface)))
    except OSError:
        adapters = []
    names["NCCL_IB_DISABLE"] = "0" if adapters or interface.startswith("ib") else "1"
    if adapters:
        names["NCCL_IB_HCA"] = "=" + ",".join(adapters)
    return names
