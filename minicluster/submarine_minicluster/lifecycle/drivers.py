"""Ending skein's drivers of a cluster that stops.

A driver is a JVM which a client of YARN keeps for the next one. It holds connections to one
cluster, so it is of no use without it; whoever needs one starts another.
"""

from __future__ import annotations

from pathlib import Path

from submarine_minicluster.machine import processes

_MAIN = b"com.anaconda.skein.Driver"


def end_drivers(client_conf: Path) -> int:
    """End the drivers whose class path holds `client_conf`, with what feeds them; how many."""
    found: list[processes.Identity] = []
    company: list[processes.Identity] = []
    for entry in Path("/proc").glob("[0-9]*"):
        identity = processes.Identity.of(int(entry.name))
        if identity and _is_driver(entry, str(client_conf).encode()):
            found.append(identity)
            company += processes.session_of(identity)
    processes.end(found, grace=3)
    processes.end(company, grace=1)
    return len(found)


def _is_driver(entry: Path, conf: bytes) -> bool:
    try:
        if _MAIN not in (entry / "cmdline").read_bytes().split(b"\0"):
            return False
        variables = (entry / "environ").read_bytes().split(b"\0")
    except OSError:  # another user's, or gone
        return False
    paths = [word for word in variables if word.startswith(b"CLASSPATH=")]
    return any(conf in word.partition(b"=")[2].split(b":") for word in paths)
