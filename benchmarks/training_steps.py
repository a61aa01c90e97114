"""Training program of `scaling.py` and `efficiency.py`: wait, exchange gradients, log, repeat.

The wait has the length of a GPU's work; the exchange is real and its result is checked. Each step
writes a line of log and a line of metrics, as a real program does. Rank and number of workers come
from ``RANK`` and ``WORLD_SIZE``, which every launcher sets. Rank 0 writes ``result.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from collectives import (
    TIMEOUT,
    Exchange,
    Ring,
    ServerExchange,
    Values,
    connect_to,
    join_ring,
    publish_address,
    serve_parameters,
)

SERVER = "server"
RESULT = "result.json"
#: Lines of output of each step.
LINES = 2


def parse(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line of the program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("directory", type=Path, help="where the members find each other")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--warm-up", type=int, required=True, help="steps that are not measured")
    parser.add_argument("--wait", type=float, required=True, help="seconds of each step")
    parser.add_argument("--bytes", type=int, required=True, help="size of the gradients")
    parser.add_argument("--exchange", choices=("ring", SERVER), default="ring")
    parser.add_argument("--serve", type=int, help="be the parameter server of so many workers")
    parser.add_argument("--host", default="127.0.0.1", help="address of this process")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> None:
    """Train, or serve parameters."""
    options = parse(arguments)
    count = options.bytes // np.dtype(np.float32).itemsize
    if options.serve:
        serve(options, count)
        return
    rank = int(os.environ.get("RANK") or 0)
    size = int(os.environ.get("WORLD_SIZE") or 1)
    exchange: Ring | ServerExchange
    if options.exchange == SERVER:
        exchange = ServerExchange(connect_to(options.directory, SERVER))
    else:
        exchange = join_ring(options.directory, options.host, rank, size)
    seconds, waits = train(exchange, rank, size, count, options)
    exchange.close()
    if rank == 0:
        result = {"seconds": seconds, "steps": options.steps, "exchange": statistics.median(waits)}
        written = options.directory / f".{RESULT}"
        written.write_text(json.dumps(result))
        written.rename(options.directory / RESULT)


def train(
    exchange: Exchange, rank: int, size: int, count: int, options: argparse.Namespace
) -> tuple[float, list[float]]:
    """Run all steps; return the seconds of the measured ones, and those of each exchange."""
    gradients: Values = np.empty(count, np.float32)
    total = options.warm_up + options.steps
    exchanges: list[float] = []
    began = time.perf_counter()
    for step in range(1, total + 1):
        if step == options.warm_up + 1:
            began, exchanges = time.perf_counter(), []
        time.sleep(options.wait)
        gradients.fill(rank + step)
        before = time.perf_counter()
        exchange.all_reduce(gradients)
        exchanges.append(time.perf_counter() - before)
        expected = size * step + size * (size - 1) // 2
        if not np.all(gradients == expected):
            raise SystemExit(f"Step {step}: the sum of the gradients is not {expected}.")
        print(f"step {step} of {total}: exchanged in {1000 * exchanges[-1]:.1f} ms", flush=True)
        print(f"loss: {1 / step:.4f} - accuracy: {1 - 1 / step:.4f}", flush=True)
    return time.perf_counter() - began, exchanges


def serve(options: argparse.Namespace, count: int) -> None:
    """Be the parameter server until all workers have ended."""
    with socket.create_server((options.host, 0)) as listener:
        publish_address(options.directory, SERVER, listener)
        listener.settimeout(TIMEOUT)
        connections = [listener.accept()[0] for _ in range(options.serve)]
    for connection in connections:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    print(f"served {serve_parameters(connections, count)} steps", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
