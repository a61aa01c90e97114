"""Time until a process of the Zeppelin interpreter is ready, and its memory.

Starts the process like Zeppelin, with an event service in this process, alternating with a minimal
interpreter in Python: thriftpy2 with the same protocol, a server and a registration. Prints the
medians from start to registration, the resident memory then and after Zeppelin's first calls, and
the ratio. The exit code is 1 if a limit is missed.

    python benchmarks/zeppelin_start.py [--rounds 15]
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

import submarine_zeppelin.thrift
from submarine_zeppelin.installation.trial_process import start_trial_process
from submarine_zeppelin.interface import ENTRIES

LIMIT_SECONDS = 1.0
LIMIT_MB = 80.0
IDL = Path(submarine_zeppelin.thrift.__file__).with_name("zeppelin.thrift")
BARE = f"""
import sys, threading
import thriftpy2
from thriftpy2.protocol import TBinaryProtocolFactory
from thriftpy2.server import TThreadedServer
from thriftpy2.thrift import TClient, TProcessor
from thriftpy2.transport import TBufferedTransportFactory, TServerSocket, TSocket

protocol = thriftpy2.load({str(IDL)!r}, "bare_thrift")

class Echo:
    def __getattr__(self, name):
        return lambda *arguments: "NATIVE" if name == "getFormType" else None

words = sys.argv[1:]
port = int(words[words.index("-p") + 1])
group = words[words.index("-i") + 1]
socket = TServerSocket("127.0.0.1", 0, client_timeout=None)
server = TThreadedServer(TProcessor(protocol.RemoteInterpreterService, Echo()), socket, daemon=True)
socket.listen()
socket.listen = lambda: None
threading.Thread(target=server.serve, daemon=True).start()
transport = TBufferedTransportFactory().get_transport(TSocket("127.0.0.1", port))
transport.open()
client = TClient(
    protocol.RemoteInterpreterEventService, TBinaryProtocolFactory().get_protocol(transport)
)
client.registerInterpreterProcess(
    protocol.RegisterInfo("127.0.0.1", socket.sock.getsockname()[1], group)
)
threading.Event().wait()
"""


def resident(pid: int) -> float:
    """Return the resident megabytes of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"/proc/{pid}/status has no VmRSS")


def start(runner: list[str]) -> tuple[float, float, float]:
    """Return seconds to the registration, megabytes then, and after Zeppelin's first calls."""
    with start_trial_process(runner) as started:
        at_once = resident(started.pid)
        client: Any = started.client
        client.init({"zeppelin.recovery.storage.class": "NullRecoveryStorage"})
        for entry in ENTRIES:
            client.createInterpreter("group", "session", entry.class_name, {}, "anonymous")
            client.getFormType("session", entry.class_name)
        return started.seconds, at_once, resident(started.pid)


def main() -> int:
    """Run the rounds and print the figures; return 1 if a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    runners = {
        "bare thriftpy2": [sys.executable, "-c", BARE],
        "submarine": [sys.executable, "-m", "submarine_zeppelin"],
    }
    figures: dict[str, list[tuple[float, float, float]]] = {name: [] for name in runners}
    for _ in range(rounds):
        for name, runner in runners.items():
            figures[name].append(start(runner))
    print(f"{'':<16}{'ready s':>9}{'worst':>9}{'MB':>8}{'MB after first calls':>23}")
    medians = {}
    for name, found in figures.items():
        ready, at_once, later = (statistics.median(column) for column in zip(*found, strict=True))
        medians[name] = (ready, later)
        worst = max(one[0] for one in found)
        print(f"{name:<16}{ready:>9.3f}{worst:>9.3f}{at_once:>8.1f}{later:>23.1f}")
    ready, memory = medians["submarine"]
    bare_ready, bare_memory = medians["bare thriftpy2"]
    print(f"ratio to bare: ready {ready / bare_ready:.2f}, memory {memory / bare_memory:.2f}")
    good = ready < LIMIT_SECONDS and memory < LIMIT_MB
    print(f"bars: {LIMIT_SECONDS:.0f} s and {LIMIT_MB:.0f} MB: {'met' if good else 'MISSED'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
