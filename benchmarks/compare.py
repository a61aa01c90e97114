"""Run benchmarks of two checkouts alternately; print the median of each figure and the ratio.

Each run uses the ``.venv`` of its checkout (``make setup`` makes it). The order changes from round
to round. A figure is a number of the output; it is compared if the words around it are equal in
both checkouts.

Run: ``python benchmarks/compare.py CHECKOUT [NAME ...] [--rounds N]``
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
#: Benchmarks and their arguments: each runs for at most a few minutes.
BENCHMARKS: dict[str, tuple[str, ...]] = {
    "bundle": (),
    "load_ext": ("--rounds", "7"),
    "workflow_compile": (),
    "headless_overhead": ("--rounds", "2"),
    "agent_cpu": ("--seconds", "20"),
    "coordinator_scale": ("--agents", "300", "--seconds", "10"),
    "gang_start": ("--tasks", "16", "--runs", "3"),
    "scaling": ("--rounds", "1", "--steps", "30"),
    "efficiency": ("--rounds", "1", "--steps", "20"),
    "server_scale": ("--seconds", "10"),
    "log_latency": ("--lines", "100"),
    "log_open": ("--megabytes", "200"),
    "zeppelin_start": ("--rounds", "5"),
    "zeppelin_paragraph": ("--lines", "3000"),
    "zeppelin_memory": (),
    "log_read": ("--runs", "2"),
    "submit_latency": ("--runs", "3"),
    "distributed_latency": ("--runs", "3"),
    "remote_kernel": ("--runs", "2"),
    "browser_latency": ("--lines", "100"),
    "browser_open": ("--runs", "2", "--megabytes", "200"),
    "browser_flood": ("--seconds", "20", "--terminal-seconds", "0"),
}
TIMEOUT = 900
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:[,.]\d+)*")
#: Line with ``#`` for each number, and the position of the number in the line.
Figure = tuple[str, int]


def run(checkout: Path, name: str) -> dict[Figure, float]:
    """Run one benchmark; return its figures and its duration in seconds."""
    environment = {
        **os.environ,
        "PATH": f"{checkout / '.venv/bin'}{os.pathsep}{os.environ['PATH']}",
        # An installed package has its bytecode; a checkout gets it in the first run.
        "PYTHONDONTWRITEBYTECODE": "",
    }
    command = [".venv/bin/python", f"benchmarks/{name}.py", *BENCHMARKS[name]]
    began = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=TIMEOUT
        )
    except subprocess.TimeoutExpired:
        print(f"{checkout} {name}: not finished after {TIMEOUT} s")
        return {}
    if done.returncode:
        print(f"{checkout} {name}: exit code {done.returncode}: {done.stderr.strip()[-300:]}")
    return {**dict(figures_of(done.stdout)), ("seconds of the run", 0): time.monotonic() - began}


def figures_of(output: str) -> Iterator[tuple[Figure, float]]:
    """Yield each number of the output with its line and position."""
    for line in output.splitlines():
        words = " ".join(_NUMBER.sub("#", line).split())
        for position, text in enumerate(_NUMBER.findall(line)):
            yield (words, position), float(text.replace(",", ""))


def compare(name: str, other: Path, rounds: int) -> None:
    """Run one benchmark alternately and print its table."""
    runs: dict[Path, list[dict[Figure, float]]] = {other: [], HERE: []}
    for number in range(rounds):
        for checkout in (other, HERE) if number % 2 == 0 else (HERE, other):
            runs[checkout].append(run(checkout, name))
    print(f"\n{' '.join((name, *BENCHMARKS[name]))}: {rounds} runs of each\n")
    print(f"{'other':>12} {'this':>12} {'ratio':>7}")
    for figure in runs[other][0]:
        before, now = (
            [found[figure] for found in runs[checkout] if figure in found]
            for checkout in (other, HERE)
        )
        if before and now:
            print_row(figure, statistics.median(before), statistics.median(now))
    sys.stdout.flush()


def print_row(figure: Figure, before: float, now: float) -> None:
    """Print both medians, their ratio, and the line in which the figure marked ``>`` is."""
    words, position = figure
    parts = words.split("#")
    marked = "#".join(parts[: position + 1]) + ">#" + "#".join(parts[position + 1 :])
    ratio = f"{now / before:7.3f}" if before else " " * 7
    print(f"{before:12.3f} {now:12.3f} {ratio}  {marked if '#' in words else words}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the benchmarks that the command line names, by default all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("checkout", type=Path, help="the other checkout, with a .venv")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args(arguments)
    unknown = [name for name in chosen.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]}")
    other = chosen.checkout.resolve()
    if not (other / ".venv/bin/python").exists():
        parser.error(f"{other} has no .venv: run `make setup` there")
    print(f"load of this machine: {os.getloadavg()[0]:.1f}")
    for name in chosen.names or BENCHMARKS:
        if (other / "benchmarks" / f"{name}.py").exists():
            compare(name, other, chosen.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
