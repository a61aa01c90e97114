"""Scaling from 1 to 8 workers: a job of ours, torchrun, and bare processes, in turn.

Each step is a wait of 200 ms, which stands for the work of a GPU, and a real ring all-reduce of
1 MB. All launchers run the same program with the same interpreter (`training_steps.py`), so the
difference is the cost of the launcher while a program trains: heartbeats, forwarding of the logs
that a client follows, metrics. Starting is not included. torchrun is skipped where PyTorch is not
installed.

Prints steps per second, the scaling (samples per second relative to one worker; the ideal is the
number of workers), and the ratio to bare processes: the median over the rounds. The exit code is 1
if ours / bare processes is below 0.99 at any size.

    python benchmarks/scaling.py [--rounds 3] [--steps 60] [--torch-python PYTHON] [--markdown]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from training_runs import (
    Jobs,
    Launcher,
    Measurement,
    Training,
    empty_directory,
    find_torch,
    machine,
    run_bare,
    torchrun,
)

LIMIT = 0.99
SIZES = (1, 2, 4, 8)
OURS, TORCHRUN, BARE = "ours", "torchrun", "bare processes"
WAIT, GRADIENTS, WARM_UP = 0.2, 1_000_000, 10
#: Launcher and number of workers -> one measurement for each round.
Measurements = Mapping[tuple[str, int], Sequence[Measurement]]


def main() -> int:
    """Run the rounds and print the figures; return 1 if the limit is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=60, help="measured steps of each run")
    parser.add_argument("--workers", type=int, nargs="+", default=SIZES, metavar="N")
    parser.add_argument("--torch-python", help="an interpreter with PyTorch; else it is searched")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown, too")
    parser.add_argument("--json", type=Path, help="write the numbers there, too")
    options = parser.parse_args()
    sizes, before = sorted({1, *options.workers}), machine()
    with tempfile.TemporaryDirectory(prefix="scaling-") as state:
        launchers: dict[str, Launcher] = {OURS: Jobs(Path(state)).run}
        python = find_torch(options.torch_python)
        if python is None:
            print("torchrun is skipped: no interpreter has PyTorch (`scripts/setup.sh torch`)")
        else:
            launchers[TORCHRUN] = torchrun(python)
        launchers[BARE] = run_bare
        found = measure(launchers, sizes, options.rounds, options.steps)
    print(f"{options.rounds} rounds of {options.steps} steps; {before}, at the end {machine()}")
    print_table(found, sizes, list(launchers))
    if options.markdown:
        print("\n" + "\n".join(markdown(found, sizes, list(launchers))))
    if options.json:
        numbers = [
            {"launcher": name, "workers": size, "rounds": [asdict(run) for run in runs]}
            for (name, size), runs in found.items()
        ]
        options.json.write_text(json.dumps(numbers, indent=1))
    ratios = [ratio(found, OURS, size) for size in sizes]
    print(f"ours / bare processes: {min(ratios):.3f} at least (limit {LIMIT})")
    return int(min(ratios) < LIMIT)


def measure(
    launchers: Mapping[str, Launcher], sizes: Sequence[int], rounds: int, steps: int
) -> dict[tuple[str, int], list[Measurement]]:
    """Run every launcher with every number of workers; the order changes from round to round."""
    found: dict[tuple[str, int], list[Measurement]] = {
        (name, size): [] for size in sizes for name in launchers
    }
    for number in range(rounds):
        for size in sizes:
            training = Training(size, steps, WARM_UP, WAIT, GRADIENTS)
            names = list(launchers)
            for name in names if number % 2 == 0 else reversed(names):
                with empty_directory() as directory:
                    found[name, size].append(launchers[name](training, directory))
    return found


def rate(found: Measurements, name: str, size: int) -> float:
    """Return the median of the steps per second."""
    return statistics.median(run.rate for run in found[name, size])


def scaling(found: Measurements, name: str, size: int) -> float:
    """Return the samples per second of ``size`` workers relative to one; the ideal is ``size``."""
    pairs = zip(found[name, size], found[name, 1], strict=True)
    return statistics.median(size * many.rate / one.rate for many, one in pairs)


def ratio(found: Measurements, name: str, size: int) -> float:
    """Return the steps per second relative to bare processes: the median over the rounds."""
    pairs = zip(found[name, size], found[BARE, size], strict=True)
    return statistics.median(run.rate / bare.rate for run, bare in pairs)


def print_table(found: Measurements, sizes: Sequence[int], names: Sequence[str]) -> None:
    """Print a line for each number of workers and each launcher."""
    print(f"{'workers':>7}  {'':14} {'steps/s':>8} {'scaling':>8} {'all-reduce':>11} {'/ bare':>7}")
    for size in sizes:
        for name in names:
            exchange = statistics.median(run.exchange for run in found[name, size])
            print(
                f"{size:7}  {name:14} {rate(found, name, size):8.3f}"
                f" {scaling(found, name, size):8.3f} {1000 * exchange:8.1f} ms"
                f" {ratio(found, name, size):7.3f}"
            )


def markdown(found: Measurements, sizes: Sequence[int], names: Sequence[str]) -> list[str]:
    """Return the lines of the table of ``docs/performance.md``."""
    compared = [name for name in names if name != BARE]
    titles = [
        "workers",
        *(f"{name}, steps/s" for name in names),
        *(f"{name}, scaling" for name in names),
        *(f"{name} / {BARE}" for name in compared),
    ]
    lines = [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
    for size in sizes:
        cells = [
            str(size),
            *(f"{rate(found, name, size):.2f}" for name in names),
            *(f"{scaling(found, name, size):.2f}" for name in names),
            *(f"{ratio(found, name, size):.3f}" for name in compared),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
