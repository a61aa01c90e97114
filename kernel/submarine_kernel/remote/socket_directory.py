"""Where the Unix sockets of a kernel are on this machine: a directory for this user alone.

ZeroMQ's publishing socket sends to every subscriber, with or without the kernel's key, so a TCP
port of the loopback interface would show code and output to all users of the machine.
"""

from __future__ import annotations

import functools
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from submarine_jobs.config import make_private
from submarine_jobs.tensorboards import Scratch
from submarine_kernel.remote.container.kernel_process import CHANNELS

#: A Unix socket's path is shorter than this on every system, whatever the file system takes.
_LONGEST = 100
_PREFIX = "k"
#: As long as any directory's name, see ``Scratch``, and the sockets in it.
_NAME = "/4194304-01234567/k-5"


class SocketDirectory:
    """A directory, 0700, for the five sockets of one kernel; removed by ``remove``.

    Parameters
    ----------
    state_dir
        The directory is made there, or, where it is None or its path is too long for a socket's, in
        the directory for temporary files.
    connection
        Of the kernel before this one, whose clients know its sockets: they get the same paths
        where they can.

    Raises
    ------
    OSError
        If it cannot be made.
    """

    def __init__(self, state_dir: Path | None, connection: Mapping[str, Any] | None = None) -> None:
        parent = _parent(state_dir)
        connection = connection or {}
        before = Path(str(connection.get("ip", ""))).parent
        wanted = before.name if connection.get("transport") == "ipc" else ""
        try:
            self._scratch = Scratch(parent, wanted if before == parent / wanted else "")
        except FileExistsError:
            self._scratch = Scratch(parent)
        self.ip = str(self._scratch.path / _PREFIX)

    @property
    def paths(self) -> dict[str, str]:
        """Channel -> path of its socket."""
        return {name: f"{self.ip}-{port}" for name, port in _ports().items()}

    @property
    def connection(self) -> dict[str, Any]:
        """The part of a connection file that says where the sockets are."""
        ports = {f"{name}_port": port for name, port in _ports().items()}
        return {"transport": "ipc", "ip": self.ip, **ports}

    def remove(self) -> None:
        """Delete it; no error when it is gone."""
        self._scratch.remove()


def channel_url(connection: Mapping[str, Any], channel: str) -> str:
    """ZeroMQ's address of a channel of such a kernel."""
    return f"ipc://{connection['ip']}-{connection[f'{channel}_port']}"


def _ports() -> dict[str, int]:
    return {name: number for number, name in enumerate(CHANNELS, 1)}


def _parent(state_dir: Path | None) -> Path:
    wanted = state_dir / "kernels" if state_dir is not None else None
    if wanted is None or len(os.fsencode(wanted)) + len(_NAME) > _LONGEST:
        wanted = Path(tempfile.gettempdir()) / f"submarine-kernels-{os.geteuid()}"
    return wanted if _is_private(wanted) else _temporary()


def _is_private(directory: Path) -> bool:
    """Make it where it is missing; whether no other user can write there."""
    try:
        make_private(directory)
        found = directory.lstat()
    except OSError:
        return False
    mine = found.st_uid == os.geteuid() and stat.S_ISDIR(found.st_mode)
    return mine and not found.st_mode & 0o077


@functools.cache
def _temporary() -> Path:
    """One for all kernels of this process, so that a kernel finds its sockets' paths again."""
    return Path(tempfile.mkdtemp(prefix="submarine-kernels-"))
