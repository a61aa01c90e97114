"""Overhead of the headless runner compared with papermill, for a notebook of 50 cells without jobs.

Executes the same notebook with papermill's engine, with ``--engine submarine`` and with
``submarine run``, alternately, each in a new process with a new kernel. Prints the medians of the
ratios of neighbouring runs: of wall time, and of the processor time of all processes, which depends
less on the load of the machine.

    python benchmarks/headless_overhead.py [--rounds 7] [--cells 50]
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat

LIMIT = 1.05
OURS = ("engine", "submarine run")


def make_notebook(path: Path, cells: int) -> None:
    """Return a notebook with cells that print, display and compute."""
    document = nbformat.v4.new_notebook(
        metadata={
            "kernelspec": {"name": "python3", "display_name": "Python", "language": "python"},
            "language_info": {"name": "python"},
        }
    )
    for number in range(cells):
        source = f"x = sum(range({number}000))\nprint('cell', {number}, x)\nx"
        document.cells.append(nbformat.v4.new_code_cell(source, id=f"cell-{number}"))
    nbformat.write(document, path)


def commands() -> dict[str, list[str]]:
    """Return the command of each runner."""
    beside = Path(sys.executable).parent
    papermill = [str(beside / "papermill"), "in.ipynb", "out.ipynb", "--no-progress-bar"]
    own = [str(beside / "submarine"), "run", "in.ipynb", "-o", "out.ipynb", "--execute"]
    return {
        "papermill": papermill,
        "engine": [*papermill, "--engine", "submarine"],
        "submarine run": own,
    }


def timed(words: list[str], folder: Path) -> tuple[float, float]:
    """Return wall and processor seconds of one run, with its kernel."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    subprocess.run(words, cwd=folder, env=environment, capture_output=True, check=True, timeout=600)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return wall, processor


def main() -> int:
    """Run the rounds and print the figures; return 1 if the limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--cells", type=int, default=50)
    asked = parser.parse_args()
    times: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        make_notebook(folder / "in.ipynb", asked.cells)
        for name, words in commands().items():
            timed(words, folder)  # The first run compiles modules and fills caches.
            times[name] = []
        for number in range(asked.rounds):
            found = list(commands().items())
            for name, words in found if number % 2 else reversed(found):
                times[name].append(timed(words, folder))
    missed = False
    for name, runs in times.items():
        wall, processor = (statistics.median(run[k] for run in runs) for k in (0, 1))
        line = f"{name:14} {wall:6.2f} s, processor {processor:6.2f} s"
        if name in OURS:
            ratios = [
                statistics.median(
                    run[k] / bare[k] for run, bare in zip(runs, times["papermill"], strict=True)
                )
                for k in (0, 1)
            ]
            line += f"    ratio {ratios[0]:.3f}, processor {ratios[1]:.3f}  (limit {LIMIT})"
            missed |= ratios[0] > LIMIT
        print(line)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
