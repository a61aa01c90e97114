"""Time to open a log of 1 GB at its end and to search in it, through the server.

A real job writes the log; then the server gets the requests of the log view. The limits: the log
opens within 0.5 s, and the first hit of a search arrives long before the search has ended.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from on_server import Server, arguments

PROGRAM = """\
import sys
line = b"%08d loss: 0.1234 - accuracy: 0.9876 - a line of log as training prints it, okay\\n"
written, number = 0, 0
while written < {megabytes} << 20:
    block = b"".join(line % (number + i) for i in range(10000))
    sys.stdout.buffer.write(block + b"Epoch done: checkpoint written\\n")
    written, number = written + len(block), number + 10000
print("RuntimeError: CUDA out of memory")
"""
SEARCHES = {
    "a frequent word": "q=epoch+done&limit=200",
    "every frequent word": "q=epoch+done&limit=5000",
    "one at the end": "q=CUDA+out+of+memory&case=1&limit=200",
    "the last error, backward": "preset=errors&backward=1&limit=1",
    "a regular expression without hits": "q=(a%2B)%2B%24x%7Closs:+nan&regex=1&case=1&limit=200",
}


def search(server: Server, path: str) -> tuple[float, float, int]:
    """Return the seconds to the first hit and to the last one, and the number of hits."""
    begin = time.perf_counter()
    reply = server.open(path)
    first = reply.readline()
    first_at = time.perf_counter() - begin
    lines = [first, *reply.read().splitlines()]
    hits, done = len(lines) - 1, json.loads(lines[-1])
    while done["next"] is not None and hits == 0:  # The server divides a long search.
        *lines, last = server.get(f"{path}&from={done['next']}")[1].splitlines()
        hits, done = len(lines), json.loads(last)
    if "error" in done:
        raise SystemExit(done["error"])
    return first_at, time.perf_counter() - begin, hits


def answers_meanwhile(server: Server, stop: threading.Event) -> list[float]:
    """Return the seconds of small requests that are sent all the time."""
    found = []
    while not stop.wait(0.05):
        found.append(server.get("health")[0])
    return found


def measure(server: Server, megabytes: int) -> dict[str, Any]:
    """Measure all figures."""
    job = server.submit(PROGRAM.format(megabytes=megabytes), "large")
    job.wait_success(600)
    path = f"jobs/{job.id}/log?task=worker:0&attempt=e1-a1&stream=stdout"
    end = f"{path}&offset=-262144&limit=262144"
    opens = [server.get(end)[0] for _ in range(6)]
    begin, size = time.perf_counter(), 0
    reply = server.open(f"{path}&download=1")
    while data := reply.read(1 << 20):
        size += len(data)
    whole = time.perf_counter() - begin
    quiet = statistics.median(server.get("health")[0] for _ in range(20))
    stop, waits = threading.Event(), []
    asking = threading.Thread(target=lambda: waits.extend(answers_meanwhile(server, stop)))
    asking.start()
    searches = {
        name: search(server, path.replace("/log?", "/log/search?") + "&" + words)
        for name, words in SEARCHES.items()
    }
    stop.set()
    asking.join()
    return {
        "bytes": size,
        "first_open_s": opens[0],
        "open_s": statistics.median(opens[1:]),
        "whole_s": whole,
        "searches": searches,
        "answer_quiet_s": quiet,
        "answer_p50_s": statistics.median(waits),
        "answer_max_s": max(waits),
    }


def main() -> None:
    """Measure and print."""
    parser = arguments(__doc__)
    parser.add_argument("--megabytes", type=int, default=1000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="log-open-") as scratch:
        server = Server(Path(scratch), chosen.minicluster)
        with server.running():
            result = measure(server, chosen.megabytes)
    whole = result["whole_s"]
    print(f"{result['bytes'] / 1e6:.0f} MB; all of it read through the server: {whole:.2f} s")
    for name in ("first_open_s", "open_s"):
        print(f"{name:14} {result[name] * 1000:7.0f} ms  1/{whole / result[name]:.0f} of all")
    for name, (first, last, hits) in result["searches"].items():
        ratio = f"{first / whole:.3f} and {last / whole:.2f} of reading all"
        print(f"search {name}: first {first * 1000:.0f} ms, all {last:.2f} s, {hits} hits; {ratio}")
    quiet, usual, most = (result[f"answer_{name}_s"] * 1000 for name in ("quiet", "p50", "max"))
    print(
        f"other requests: quiet {quiet:.0f} ms, while searching p50 {usual:.0f}, max {most:.0f} ms"
    )
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
