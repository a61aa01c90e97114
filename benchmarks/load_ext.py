"""Cost of ``%load_ext submarine_magics``: start of a process with it compared with one without it.

Starts plain IPython and IPython with the extension alternately, each in a new process, and prints
the medians, their difference and ratio. An audit hook counts the sockets and processes that the
extension opens, and ``sys.modules`` must contain none of the heavy libraries.

    python benchmarks/load_ext.py [--rounds 15]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from typing import Any

LIMIT_MS = 100.0
HEAVY = ("tensorflow", "keras", "numpy", "skein", "grpc", "hdfs_native", "click", "cryptography")
PROGRAM = """
import sys, json, time
from traitlets.config import Config
from IPython.core.interactiveshell import InteractiveShell
config = Config()
config.HistoryManager.enabled = False
shell = InteractiveShell(config=config)
touched = []
if sys.argv[1] == "loaded":
    sys.addaudithook(lambda name, args: touched.append(name) if name.startswith(
        ("socket.connect", "socket.bind", "socket.getaddrinfo", "subprocess.Popen", "os.fork",
         "os.posix_spawn")) else None)
    before = set(sys.modules)
    began = time.perf_counter()
    shell.run_line_magic("load_ext", "submarine_magics")
    took = (time.perf_counter() - began) * 1000
    new = sorted(set(sys.modules) - before)
else:
    new, took = [], 0.0
print(json.dumps({"touched": touched, "new": new, "took": took}))
"""


def start(kind: str) -> tuple[float, dict[str, Any]]:
    """Return the milliseconds of one process, and its report."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, kind], capture_output=True, check=True, timeout=60
    )
    return (time.perf_counter() - began) * 1000, json.loads(done.stdout)


def main() -> int:
    """Run the rounds and print the figures; return 1 if the limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    times: dict[str, list[float]] = {"bare": [], "loaded": []}
    report: dict[str, Any] = {}
    inside: list[float] = []
    for kind in times:
        start(kind)
    for _ in range(rounds):
        for kind in times:
            took, told = start(kind)
            times[kind].append(took)
            if kind == "loaded":
                report = told
                inside.append(told["took"])
    bare, loaded = (statistics.median(times[kind]) for kind in ("bare", "loaded"))
    heavy = [name for name in report["new"] if name.partition(".")[0] in HEAVY]
    print(f"bare IPython start        {bare:8.1f} ms (median of {rounds}, interleaved)")
    print(f"with submarine_magics     {loaded:8.1f} ms")
    print(f"difference                {loaded - bare:8.1f} ms (at most {LIMIT_MS:.0f})")
    print(f"ratio                     {loaded / bare:8.3f}")
    print(f"%load_ext alone           {statistics.median(inside):8.1f} ms (inside the process)")
    print(f"modules it imported       {', '.join(report['new'])}")
    print(f"heavy libraries           {', '.join(heavy) or 'none'}")
    print(f"sockets and processes     {', '.join(report['touched']) or 'none'}")
    return int(loaded - bare > LIMIT_MS or bool(heavy) or bool(report["touched"]))


if __name__ == "__main__":
    sys.exit(main())
