"""The directory of a kernel's Unix sockets on this machine, accessible to its user only.

ZeroMQ's publishing socket sends to every subscriber, with or without the kernel's key. A TCP port
of the loopback interface would therefore expose code and output to all users of the machine.
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

#: Maximum length of a Unix socket's path on all systems.
_MAX_PATH = 100
_PREFIX = "k"
#: The longest name of a directory (see ``Scratch``) and of a socket in it.
_NAME = "/4194304-01234567/k-5"


class SocketDirectory:
    """A directory with mode 0700 for the five sockets of one kernel; ``remove`` deletes it.

    Parameters
    ----------
    state_dir
        Parent of the directory. If it is None or too long for a socket's path, the directory for
        temporary files is used.
    connection
        Connection of the previous kernel. Its clients use the sockets. The new sockets get the same
        paths if possible.

    Raises
    ------
    OSError
        If the directory cannot be created.
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
        """The entries of a connection file that locate the sockets."""
        ports = {f"{name}_port": port for name, port in _ports().items()}
        return {"transport": "ipc", "ip": self.ip, **ports}

    def remove(self) -> None:
        """Delete the directory, if it exists."""
        self._scratch.remove()


def channel_url(connection: Mapping[str, Any], channel: str) -> str:
    """Return ZeroMQ's address of a channel."""
    return f"ipc://{connection['ip']}-{connection[f'{channel}_port']}"


def _ports() -> dict[str, int]:
    return {name: number for number, name in enumerate(CHANNELS, 1)}


def _parent(state_dir: Path | None) -> Path:
    wanted = state_dir / "kernels" if state_dir is not None else None
    if wanted is None or len(os.fsencode(wanted)) + len(_NAME) > _MAX_PATH:
        wanted = Path(tempfile.gettempdir()) / f"submarine-kernels-{os.geteuid()}"
    return wanted if _make_private(wanted) else _temporary()


def _make_private(directory: Path) -> bool:
    """Create the directory if needed; return whether only this user can access it."""
    try:
        make_private(directory)
        status = directory.lstat()
    except OSError:
        return False
    own = status.st_uid == os.geteuid() and stat.S_ISDIR(status.st_mode)
    return own and not status.st_mode & 0o077


@functools.cache
def _temporary() -> Path:
    """Return one directory for all kernels of this process, so that a kernel keeps its paths."""
    return Path(tempfile.mkdtemp(prefix="submarine-kernels-"))
