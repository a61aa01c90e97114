"""Time to read and check a workflow of 200 nodes and to build its Azkaban project.

Prints the median of each step. The limit for all steps together is 0.5 s.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from submarine_workflows.azkaban.project import project_of
from submarine_workflows.azkaban.project.compiler import compile_workflow
from submarine_workflows.formats import open_workflow
from submarine_workflows.model import check

NODES, NOTEBOOKS, ROUNDS, BAR = 200, 20, 9, 0.5


def write(folder: Path) -> Path:
    """Write layers of ten nodes, each of which depends on two nodes of the layer before."""
    code = [{"cell_type": "code", "source": f"x = {n}", "outputs": [], "metadata": {}}
            for n in range(30)]  # fmt: skip
    for number in range(NOTEBOOKS):
        document = {"cells": code, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        (folder / f"n{number}.ipynb").write_text(json.dumps(document))
    lines = ['schedule: 0 30 2 ? * *\nconfig: {date: "2026-11-22"}\nnodes:']
    for number in range(NODES):
        lines.append(f"  - name: node{number}\n    notebook: n{number % NOTEBOOKS}.ipynb")
        lines.append('    params: {date: "${date}", part: ' + str(number) + "}")
        lines.append("    job: {worker: 2, gpu: 1}\n    needs: hdfs:///data/{date}/_SUCCESS")
        lines.append('    config: {retries: "2", retry.backoff: "60000"}')
        if number >= 10:
            first, second = number - 10, number - number % 10 - 1
            lines.append(f"    dependsOn: [node{first}, node{second}]" if first != second
                         else f"    dependsOn: [node{first}]")  # fmt: skip
            lines.append(f"    condition: all_success && ${{node{first}:loss}} <= 0.5")
    file = folder / "nightly.flow"
    file.write_text("\n".join(lines) + "\n")
    return file


def main() -> int:
    """Measure the steps one after another."""
    with tempfile.TemporaryDirectory() as name:
        file = write(Path(name))
        workflow = open_workflow(file)
        steps: dict[str, Callable[[], Any]] = {
            "read": lambda: open_workflow(file),
            "check": lambda: check(workflow),
            "compile": lambda: compile_workflow(workflow, file.parent),
            "all, with the zip": lambda: project_of(file)[1].to_zip(),
        }
        times: dict[str, list[float]] = {step: [] for step in steps}
        for _ in range(ROUNDS):
            for step, work in steps.items():
                begin = time.perf_counter()
                work()
                times[step].append(time.perf_counter() - begin)
    found = {step: statistics.median(values) for step, values in times.items()}
    for step, seconds in found.items():
        print(f"{step:<18} {seconds * 1000:7.1f} ms")
    return 0 if found["all, with the zip"] < BAR else 1


if __name__ == "__main__":
    sys.exit(main())
