"""The command line with which Zeppelin starts an interpreter, as its launcher writes it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Arguments:
    """What Zeppelin's server wants.

    Attributes
    ----------
    host, port
        Its event service.
    ports
        Those that we may listen on; empty: any.
    group
        Id of the interpreter group that this process is.
    """

    host: str
    port: int
    ports: range
    group: str


def parse(words: Sequence[str] | None = None) -> Arguments:
    """Read the command line; what is wrong ends the process with exit code 2."""
    parser = argparse.ArgumentParser(
        "python -m submarine_zeppelin", description="Zeppelin starts this by itself."
    )
    parser.add_argument("-c", dest="host", required=True, help="host of the event service")
    parser.add_argument("-p", dest="port", required=True, type=_port, help="its port")
    parser.add_argument("-r", dest="ports", default=range(0), type=_ports, help="A:B, or :")
    parser.add_argument("-i", dest="group", required=True, help="id of the interpreter group")
    for name in ("-d", "-u", "-l", "-g"):  # the directory, a user, a repository, a name
        parser.add_argument(name, dest=f"unused_{name[1]}", help=argparse.SUPPRESS)
    # A later version's options are none of ours.
    found, _ = parser.parse_known_args(words)
    return Arguments(found.host, found.port, found.ports, found.group)


def _port(text: str) -> int:
    port = int(text)
    if not 0 < port < 65536:
        raise argparse.ArgumentTypeError(f"{text} is no port: those are 1 to 65535")
    return port


def _ports(text: str) -> range:
    """``A:B`` with both ends; either may be left out, and both."""
    first, colon, last = text.partition(":")
    if not colon:
        raise argparse.ArgumentTypeError(f"{text!r} is no range of ports: write 30000:30010, or :")
    if not first.strip() and not last.strip():
        return range(0)
    low = _port(first) if first.strip() else 1024
    high = _port(last) if last.strip() else 65535
    if low > high:
        raise argparse.ArgumentTypeError(f"{text} is an empty range of ports")
    return range(low, high + 1)
