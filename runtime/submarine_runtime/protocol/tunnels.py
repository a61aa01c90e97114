"""``tunnels.json``: targets in a program that clients can connect to through the job's port.

A program writes the file that ``SUBMARINE_TUNNELS`` names, in the scratch directory of its job:
``{"shell": {"unix": "sockets/k-1"}, "app": {"port": 8888}}``. A Unix socket is below the scratch
directory; a port is one of this container's loopback interface. There is no third kind, so the file
cannot name another host. ``network.tunnel`` forwards the bytes.
"""

from __future__ import annotations

import json
import os
import re
import stat
from typing import Any, Mapping, NamedTuple

#: File in the scratch directory, and the variable by which the program finds it.
FILE = "tunnels.json"
VARIABLE = "SUBMARINE_TUNNELS"
#: The protocol in a client's ``Upgrade`` header.
PROTOCOL = "submarine-tunnel"
MAX_FILE = 1 << 16
_NAME = re.compile(r"^[a-z0-9][a-z0-9_-]{0,31}\Z")


class Target(NamedTuple):
    """Target of a tunnel: a path below the scratch directory, or a loopback port."""

    unix: str = ""
    port: int = 0


def declared_target(root: str, name: str) -> Target | None:
    """Return the target of the tunnel ``name``; None if the program has not declared it.

    Parameters
    ----------
    root
        The job's scratch directory.

    Raises
    ------
    ValueError
        If the program's file is malformed; one sentence.
    """
    if not _NAME.match(name):
        return None
    try:
        raw = _read(os.path.join(root, FILE))
    except FileNotFoundError:
        return None
    except (OSError, RecursionError) as exc:
        raise ValueError(f"{FILE} cannot be read: {exc}") from exc
    found = raw.get(name) if isinstance(raw, dict) else None
    return None if found is None else _target(name, found)


def _read(path: str) -> Any:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        info = os.fstat(file.fileno())
        if not stat.S_ISREG(info.st_mode) or info.st_size > MAX_FILE:
            raise ValueError(f"{FILE} is not a file of at most {MAX_FILE} bytes")
        return json.loads(file.read(MAX_FILE))


def _target(name: str, found: Any) -> Target:
    if isinstance(found, Mapping):
        path, port = found.get("unix"), found.get("port")
        if isinstance(path, str) and port is None and _stays_below(path):
            return Target(unix=path)
        if type(port) is int and path is None and 0 < port < 1 << 16:
            return Target(port=port)
    raise ValueError(
        f'{FILE}: "{name}" is neither {{"unix": a path below the scratch directory}} '
        'nor {"port": a number}'
    )


def _stays_below(path: str) -> bool:
    return (
        0 < len(path) < 256
        and not os.path.isabs(path)
        and "\0" not in path
        and ".." not in path.split("/")
    )
