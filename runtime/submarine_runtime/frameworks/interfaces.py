"""Which network interface the collectives use: what gloo, NCCL and TensorPipe are told.

InfiniBand is left to NCCL's own judgement unless an interface was asked for by name.
"""

from __future__ import annotations

import os
import socket

_DEVICES = "/sys/class/net/{}/device/infiniband"


def interface_for(address: str, asked: str | None) -> str:
    """The interface that was asked for, else the one with the task's own address; empty: none.

    Raises
    ------
    ValueError
        If this node has none of the name that was asked for.
    """
    from submarine_runtime.network import address_of, interface_of

    if asked is None:
        return interface_of(address)
    if address_of(asked) is None:
        names = ", ".join(name for _, name in socket.if_nameindex())
        raise ValueError(
            f"--network-interface {asked}: this node has no such interface with an IPv4 address; "
            f"it has {names}"
        )
    return asked


def variables(interface: str, asked: bool, devices: str = _DEVICES) -> dict[str, str]:
    """Variables that name ``interface``.

    Parameters
    ----------
    asked
        The user has named it: NCCL then uses InfiniBand exactly if it is an InfiniBand interface.
    devices
        Where the kernel lists the InfiniBand devices of an interface ``{}``.
    """
    if not interface:
        return {}
    names = {
        "GLOO_SOCKET_IFNAME": interface,
        "HOROVOD_GLOO_IFACE": interface,
        "NCCL_SOCKET_IFNAME": f"={interface}",  # exactly this one: a bare name is a prefix
        "TP_SOCKET_IFNAME": interface,
    }
    if not asked:
        return names
    try:
        adapters = sorted(os.listdir(devices.format(interface)))
    except OSError:
        adapters = []
    names["NCCL_IB_DISABLE"] = "0" if adapters or interface.startswith("ib") else "1"
    if adapters:
        names["NCCL_IB_HCA"] = "=" + ",".join(adapters)
    return names
