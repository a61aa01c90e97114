"""Delay of the owner's requests to the port of a job, without and with 40 idle connections.

Each request opens a connection (TCP, TLS, token) and reads the job's record. The idle connections
have the owner's address and stop at four points: after TCP, in the middle of a ClientHello, after
TLS, and in the middle of a request. Prints medians in milliseconds, and their ratio.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from agent_cpu import prepare

from submarine_jobs.access import AgentAddress, AgentClient, tls_context
from submarine_jobs.access.credentials import JobSecret
from submarine_jobs.submit.runtime_zip import write_runtime_zip

STAGES = ("TCP", "half a ClientHello", "TLS", "half a request")


def idle(address: AgentAddress, stage: str) -> socket.socket:
    """Open a connection up to ``stage``, and send nothing more."""
    made = socket.create_connection((address.host, address.port), 30)
    context = tls_context(address.secret)
    if stage == "half a ClientHello":
        outgoing = ssl.MemoryBIO()
        client = context.wrap_bio(ssl.MemoryBIO(), outgoing)
        with contextlib.suppress(ssl.SSLWantReadError):
            client.do_handshake()
        made.sendall(outgoing.read()[:100])
    elif stage != "TCP":
        made = context.wrap_socket(made)
        if stage == "half a request":
            made.sendall(b"GET /v1/status HTTP/1.1\r\n")
    return made


def delays(client: AgentClient, requests: int) -> list[float]:
    """Return the milliseconds of each request."""
    found = []
    for _ in range(requests):
        began = time.perf_counter()
        client.status()
        found.append((time.perf_counter() - began) * 1e3)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=20, help="in each round, at each stage")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="idle-") as root:
        scratch = prepare(Path(root), 600.0, 0)
        words = [sys.executable, "-I", str(write_runtime_zip(Path(root) / "cache")), "agent"]
        agent = subprocess.Popen([*words, "--directory", str(scratch)], stderr=subprocess.DEVNULL)
        try:
            address = _address(Path(root) / "job" / "live.json", scratch)
            client = AgentClient(address)
            without: list[float] = []
            with_idle: dict[str, list[float]] = {stage: [] for stage in STAGES}
            for _ in range(chosen.rounds):
                for stage in STAGES:
                    without += delays(client, chosen.requests)
                    with contextlib.ExitStack() as stack:
                        for _ in range(chosen.connections):
                            stack.enter_context(idle(address, stage))
                        with_idle[stage] += delays(client, chosen.requests)
            client.cancel("benchmark", "")
            agent.wait(30)
        finally:
            agent.kill()
            agent.wait()
    base = statistics.median(without)
    print(f"{'without':20} {base:7.2f} ms, slowest {max(without):7.2f}")
    for stage, found in with_idle.items():
        middle = statistics.median(found)
        print(f"{stage:20} {middle:7.2f} ms, slowest {max(found):7.2f}, ratio {middle / base:.2f}")
    every = statistics.median([one for found in with_idle.values() for one in found])
    print(json.dumps({"without_ms": base, "with_ms": every, "ratio": every / base}))


def _address(live: Path, scratch: Path) -> AgentAddress:
    while not live.exists():
        time.sleep(0.05)
    words = json.loads(live.read_text())
    secret = json.loads((scratch / "secret.json").read_text())
    return AgentAddress(
        words["host"],
        words["port"],
        JobSecret(secret["token"], secret["certificate"], secret["key"]),
    )


if __name__ == "__main__":
    main()
