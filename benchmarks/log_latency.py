"""Latency from `print` in a program to the message at a websocket client of the server: p50, p99.

A real job prints the time of day, and a client of the server's websocket follows its log. The time
that a browser needs is not included. ``--busy`` keeps two cores busy during the measurement.
"""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from on_server import API, Server, arguments
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

PROGRAM = """\
import time
for number in range({lines}):
    time.sleep({pause})
    print("at", repr(time.time()), flush=True)
"""


async def delays(server: Server, lines: int, pause: float) -> list[float]:
    """Return the seconds of each line."""
    url = f"ws://127.0.0.1:{server.port}{API}channel?token={server.token}"
    headers = {"Origin": f"http://127.0.0.1:{server.port}"}
    page = await websocket_connect(HTTPRequest(url, headers=headers))
    job = server.submit(PROGRAM.format(lines=lines, pause=pause), "latency")
    words = {"op": "subscribe", "id": 1, "kind": "log", "job": job.id, "tasks": ["*"], "at": {}}
    await page.write_message(json.dumps(words))
    found: list[float] = []
    rest = b""
    while True:
        text = await page.read_message()
        now = time.time()
        message = json.loads(text or "{}")
        if message.get("type") in ("end", "error", None):
            page.close()
            return found
        if message["type"] == "log" and message["stream"] == "stdout":
            *whole, rest = (rest + base64.b64decode(message["data"])).split(b"\n")
            found += [now - float(line.split()[1]) for line in whole]
            size = len(message["data"]) * 3 // 4
            await page.write_message(json.dumps({"op": "ack", "id": 1, "bytes": size}))


def main() -> None:
    """Measure and print."""
    parser = arguments(__doc__)
    parser.add_argument("--lines", type=int, default=300)
    parser.add_argument("--pause", type=float, default=0.1, help="seconds between two lines")
    parser.add_argument("--busy", action="store_true")
    chosen = parser.parse_args()
    burners = []
    if chosen.busy:
        burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        with tempfile.TemporaryDirectory(prefix="log-latency-") as scratch:
            server = Server(Path(scratch), chosen.minicluster)
            with server.running():
                found = sorted(asyncio.run(delays(server, chosen.lines, chosen.pause)))
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
    if len(found) != chosen.lines:
        raise SystemExit(f"{len(found)} of {chosen.lines} lines arrived.")
    result = {
        "lines": len(found),
        "p50_ms": found[len(found) // 2] * 1000,
        "p99_ms": found[len(found) * 99 // 100] * 1000,
        "max_ms": found[-1] * 1000,
    }
    print("  ".join(f"{name} {value:.0f}" for name, value in result.items()))
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
