"""Network namespaces that are connected like the nodes of a cluster, by links of a limited rate.

Every node has one link to a switch (a bridge); both directions of it are limited by a token bucket
filter. `enter` starts this program again in a user namespace, where it may make networks without
any rights on the machine. The networks end with their processes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

#: As any user, where user namespaces are permitted; else as root.
_UNSHARE = (
    ("unshare", "--user", "--map-root-user", "--net", "--"),
    ("unshare", "--net", "--"),
)
_TOOLS = {"ip": "iproute2", "tc": "iproute2", "unshare": "util-linux", "nsenter": "util-linux"}
#: Where `tc` is; often not in the path of a user.
_SYSTEM_PATH = "/usr/sbin:/sbin"
_INSIDE = "SUBMARINE_LIMITED_LINKS"
#: A bucket holds two of the largest packets of a link between namespaces (64 KiB).
_BURST = 128 << 10
#: Seconds of traffic that a queue holds: no packet is lost, so TCP never slows down.
_QUEUE = "400ms"
_PROBE = (
    "ip link add probe0 type veth peer name probe1"
    " && tc qdisc add dev probe0 root tbf rate 1gbit burst 131072 latency 50ms"
    " && ip link add probe2 type bridge"
)


def inside() -> bool:
    """Whether this process is in the namespace that `enter` makes."""
    return _INSIDE in os.environ


def enter() -> str:
    """Start this program again in a new namespace; return the reason if that is not permitted."""
    path = os.pathsep.join((os.environ.get("PATH", ""), _SYSTEM_PATH))
    for tool, package in _TOOLS.items():
        if shutil.which(tool, path=path) is None:
            return f"{tool} is not installed (package {package})"
    os.environ["PATH"] = path
    reasons = []
    for prefix in _UNSHARE:
        done = subprocess.run(
            [*prefix, "sh", "-c", _PROBE], capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            os.environ[_INSIDE] = "1"
            sys.stdout.flush()
            os.execvp(prefix[0], [*prefix, sys.executable, *sys.argv])
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        reasons.append(f"`{' '.join(prefix[:-1])}`: {last[0]}")
    return f"network namespaces are not permitted: {'; '.join(reasons)}"


class LimitedLinks:
    """Nodes with an address each, as a context manager; only after `enter`.

    Parameters
    ----------
    directory
        Gets a link ``net-NUMBER`` to the namespace of each node, for ``nsenter --net=...``.
    count
        Number of nodes.
    megabits
        Rate of each link in each direction, Mbit/s.
    """

    def __init__(self, directory: Path, count: int, megabits: int) -> None:
        self._directory, self._count, self._megabits = directory, count, megabits
        self._stack = ExitStack()

    def __enter__(self) -> LimitedLinks:
        """Make the networks."""
        with ExitStack() as stack:
            # The processes of a job on the local backend use the loopback interface.
            _run("ip", "link", "set", "lo", "up")
            _run("ip", "link", "add", "switch", "type", "bridge")
            stack.callback(_run, "ip", "link", "del", "switch")
            _run("ip", "link", "set", "switch", "up")
            for number in range(self._count):
                self._add(number, stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove them."""
        self._stack.close()

    def address(self, number: int | str) -> str:
        """Return the address of a node; ``number`` may be an expression of the shell."""
        # Nodes count from 0, and the address with a 0 at its end is that of the network.
        last = number + 1 if isinstance(number, int) else f"$(({number} + 1))"
        return f"10.111.0.{last}"

    def command(self, number: int | str) -> list[str]:
        """Return the words before a command that is to run on this node."""
        return ["nsenter", f"--net={self._directory}/net-{number}", "--"]

    def _add(self, number: int, stack: ExitStack) -> None:
        # Ends at the end of its input, even if this process is killed.
        holder = subprocess.Popen(["unshare", "--net", "--", "cat"], stdin=subprocess.PIPE)
        stack.callback(holder.wait)
        assert holder.stdin is not None
        stack.callback(holder.stdin.close)
        own = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{holder.pid}/ns/net") == own:
            time.sleep(0.01)
        link = self._directory / f"net-{number}"
        link.symlink_to(f"/proc/{holder.pid}/ns/net")
        stack.callback(link.unlink)
        port, node = f"port{number}", self.command(number)
        _run(
            *("ip", "link", "add", port, "type", "veth"),
            *("peer", "name", "eth0", "netns", str(holder.pid)),
        )
        _run("ip", "link", "set", port, "master", "switch", "up")
        _run(*node, "ip", "address", "add", f"{self.address(number)}/24", "dev", "eth0")
        for interface in ("lo", "eth0"):
            _run(*node, "ip", "link", "set", interface, "up")
        limit = ("rate", f"{self._megabits}mbit", "burst", str(_BURST), "latency", _QUEUE)
        _run("tc", "qdisc", "add", "dev", port, "root", "tbf", *limit)
        _run(*node, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", *limit)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
