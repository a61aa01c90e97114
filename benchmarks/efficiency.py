"""Efficiency of four workers with a parameter server and with ring all-reduce, links of 1 Gbit/s.

Each step is a wait of 250 ms, which stands for the work of a GPU, and an exchange of 3 MB of
gradients. Every worker, and the parameter server, has a network namespace with a link of 1 Gbit/s
of its own (`limited_links.py`). The programs are tasks of a job of ours; coordinator, agents and
client communicate outside these links. Skipped, with a reason, where network namespaces are not
permitted.

Prints throughput / (4 x throughput of one worker), the median over the rounds, and the same as
calculated from the rate of the links if all workers exchange at the same time. (They do not quite
with a parameter server: the worker that first has the sum begins its next step before the others.)
The exit code is 1 if ring all-reduce is below 0.82.

    python benchmarks/efficiency.py [--rounds 3] [--steps 30] [--markdown]
"""

from __future__ import annotations

import argparse
import json
import shlex
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from limited_links import LimitedLinks, enter, inside
from training_runs import (
    PROGRAM,
    Jobs,
    Measurement,
    Training,
    empty_directory,
    machine,
    measurement,
    run_processes,
)
from training_steps import SERVER

LIMIT = 0.82
WORKERS, MEGABITS = 4, 1000
WAIT, GRADIENTS, WARM_UP = 0.25, 3_000_000, 4
ALONE, PARAMETER_SERVER, RING = "one worker", "parameter server", "ring all-reduce"
#: Most that a link of the rate 1 can transfer, because a bucket is full after a pause.
TOLERANCE = 1.02
Measurements = Mapping[str, Sequence[Measurement]]


def main() -> int:
    """Run the rounds and print the figures; return 1 if the limit is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=30, help="measured steps of each run")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown, too")
    parser.add_argument("--json", type=Path, help="write the numbers there, too")
    options = parser.parse_args()
    if not inside():
        reason = enter()
        print(f"skipped: {reason}")
        return 0
    before = machine()
    with tempfile.TemporaryDirectory(prefix="efficiency-") as name:
        scratch = Path(name)
        with LimitedLinks(scratch, WORKERS + 1, MEGABITS) as links:
            rate = link_rate(links)
            if rate > TOLERANCE * MEGABITS:
                raise SystemExit(f"The links are not limited: {rate:.0f} Mbit/s.")
            found = measure(links, Jobs(scratch / "state"), options.rounds, options.steps)
    print(f"{options.rounds} rounds of {options.steps} steps; {before}, at the end {machine()}")
    print(f"links of {MEGABITS} Mbit/s: {rate:.0f} Mbit/s of data measured")
    print_table(found)
    if options.markdown:
        print("\n" + "\n".join(markdown(found)))
    if options.json:
        numbers = {name: [asdict(run) for run in runs] for name, runs in found.items()}
        options.json.write_text(json.dumps({"link": rate, **numbers}, indent=1))
    ring = efficiency(found, RING)
    print(f"{RING}: {ring:.3f} (limit {LIMIT})")
    return int(ring < LIMIT)


def link_rate(links: LimitedLinks, size: int = 25_000_000) -> float:
    """Return the Mbit/s of data between two nodes, in both directions at the same time.

    In a ring of two each member sends as many bytes as the array has.
    """
    training = Training(2, steps=3, warm_up=1, wait=0.0, size=size)
    with empty_directory() as directory:
        commands = {}
        for rank in range(2):
            words = [*links.command(rank), sys.executable, str(PROGRAM)]
            words += [*training.arguments(directory), f"--host={links.address(rank)}"]
            commands[str(rank)] = (words, {"RANK": str(rank), "WORLD_SIZE": "2"})
        run_processes(commands, training, directory)
        return training.size * 8e-6 / measurement(directory).exchange


def measure(
    links: LimitedLinks, jobs: Jobs, rounds: int, steps: int
) -> dict[str, list[Measurement]]:
    """Run the three variants; the order changes from round to round."""
    variants = {
        ALONE: Training(1, steps, WARM_UP, WAIT, GRADIENTS),
        PARAMETER_SERVER: Training(WORKERS, steps, WARM_UP, WAIT, GRADIENTS, SERVER),
        RING: Training(WORKERS, steps, WARM_UP, WAIT, GRADIENTS),
    }
    found: dict[str, list[Measurement]] = {name: [] for name in variants}
    for number in range(rounds):
        names = list(variants)
        for name in names if number % 2 == 0 else reversed(names):
            with empty_directory() as directory:
                commands = role_commands(links, variants[name], directory)
                found[name].append(jobs.run(variants[name], directory, commands))
    return found


def role_commands(links: LimitedLinks, training: Training, directory: Path) -> dict[str, str]:
    """Return the shell command of each role: the program, in the network of its node."""
    # A job of one task has no index in its environment.
    index = "${TASK_INDEX:-0}"
    program = shlex.join([sys.executable, str(PROGRAM), *training.arguments(directory)])
    place = " ".join(links.command(index))
    commands = {"worker": f"exec {place} {program} --host={links.address(index)}"}
    if training.exchange == SERVER:
        serve = [f"--serve={training.workers}", f"--host={links.address(WORKERS)}"]
        commands["ps"] = f"exec {shlex.join(links.command(WORKERS))} {program} {' '.join(serve)}"
    return commands


def efficiency(found: Measurements, name: str) -> float:
    """Return throughput / (workers x one worker): the median over the rounds."""
    pairs = zip(found[name], found[ALONE], strict=True)
    return statistics.median(run.rate / one.rate for run, one in pairs)


def calculated(name: str, workers: int, size: int, wait: float, megabits: float) -> float:
    """Return the efficiency if the exchange takes what the busiest link needs for its bytes."""
    copies = 2 * workers if name == PARAMETER_SERVER else 2 * (workers - 1) / workers
    return wait / (wait + copies * size * 8e-6 / megabits)


def print_table(found: Measurements) -> None:
    """Print a line for each variant."""
    print(f"{'':18}{'steps/s':>9}{'exchange':>12}{'efficiency':>12}{'calculated':>12}")
    for name in found:
        rate = statistics.median(run.rate for run in found[name])
        exchange = statistics.median(run.exchange for run in found[name])
        line = f"{name:18}{rate:9.3f}{1000 * exchange:9.1f} ms"
        if name != ALONE:
            ideal = calculated(name, WORKERS, GRADIENTS, WAIT, MEGABITS)
            line += f"{efficiency(found, name):12.3f}{ideal:12.3f}"
        print(line)


def markdown(found: Measurements) -> list[str]:
    """Return the lines of the table of ``docs/performance.md``."""
    lines = [
        "| | steps/s | exchange | throughput / (4 x one worker) | calculated |",
        "|---|---|---|---|---|",
    ]
    for name, runs in found.items():
        rate = statistics.median(run.rate for run in runs)
        exchange = 1000 * statistics.median(run.exchange for run in runs)
        figures = ["", ""]
        if name != ALONE:
            ideal = calculated(name, WORKERS, GRADIENTS, WAIT, MEGABITS)
            figures = [f"{efficiency(found, name):.2f}", f"{ideal:.2f}"]
        cells = [name, f"{rate:.2f}", f"{exchange:.1f} ms", *figures]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
