"""Parse the command line with which Zeppelin's launcher starts an interpreter."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Arguments:
    """Arguments of an interpreter process.

    Attributes
    ----------
    host, port
        Event service of Zeppelin's server.
    ports
        Ports on which the process may listen. Empty: any port.
    group
        Id of the interpreter group.
    """

    host: str
    port: int
    ports: range
    group: str


def parse(words: Sequence[str] | None = None) -> Arguments:
    """Parse the command line. An error ends the process with exit code 2."""
    parser = argparse.ArgumentParser(
        "python -m submarine_zeppelin", description="Zeppelin starts this command."
    )
    parser.add_argument("-c", dest="host", required=True, help="host of the event service")
    parser.add_argument("-p", dest="port", required=True, type=_port, help="its port")
    parser.add_argument("-r", dest="ports", default=range(0), type=_ports, help="A:B, or :")
    parser.add_argument("-i", dest="group", required=True, help="id of the interpreter group")
    for name in ("-d", "-u", "-l", "-g"):  # directory, user, local repository, group name
        parser.add_argument(name, dest=f"unused_{name[1]}", help=argparse.SUPPRESS)
    # Ignore options of later versions.
    parsed, _ = parser.parse_known_args(words)
    return Arguments(parsed.host, parsed.port, parsed.ports, parsed.group)


def _port(text: str) -> int:
    port = int(text)
    if not 0 < port < 65536:
        raise argparse.ArgumentTypeError(f"{text} is not a port from 1 to 65535")
    return port


def _ports(text: str) -> range:
    """Parse ``A:B``, an inclusive range. Both ends are optional."""
    first, colon, last = text.partition(":")
    if not colon:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port range; write 30000:30010, or :")
    if not first.strip() and not last.strip():
        return range(0)
    low = _port(first) if first.strip() else 1024
    high = _port(last) if last.strip() else 65535
    if low > high:
        raise argparse.ArgumentTypeError(f"{text} is an empty port range")
    return range(low, high + 1)
