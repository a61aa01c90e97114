"""CPU seconds of a step of PyTorch's DDP: a job of ours beside torchrun, in interleaved pairs.

Both run the same program with two processes over gloo and the same interpreter. Ours are two tasks
of a gang: two agents and a coordinator run beside them, and ship the log and the metrics; torchrun
has one agent. The CPU time is that of all these processes, between the moment when all ranks have
trained the first steps and the moment when all have trained the last one. Starting and ending are
not included, and neither is a client.

The CPU time of the program depends on what else the machine does, so that of the launchers is
printed, too. The exit code is 1 if the median over the pairs is above the limit.

    python benchmarks/ddp_cpu.py [--pairs 10] [--steps 600] [--torch-python PYTHON]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from training_runs import ROOT, empty_directory, find_torch, machine

from submarine_jobs.client import Session
from submarine_jobs.model import JobSpec, Profile, Resources, Role
from submarine_jobs.program import bundle_from_file

LIMIT = 1.01
PROCESSES, WARM_UP = 2, 20
#: Seconds until all ranks have imported PyTorch, and for the steps.
PATIENCE = 600.0
VARIABLES = {"OMP_NUM_THREADS": "1"}
PROGRAM = """\
import os, sys, time
import torch, torch.distributed as dist
place, steps, warm_up = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
dist.init_process_group("gloo")
layers = [torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)]
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
rank = dist.get_rank()

def meet(name):
    open(f"{place}/{name}-{rank}", "w").close()
    while not os.path.exists(f"{place}/{name}"):
        time.sleep(0.02)

for step in range(1, warm_up + steps + 1):
    loss = (model(torch.rand(64, 512)) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step} of {warm_up + steps}: loss={loss.item():.4f}", flush=True)
    if step == warm_up:
        meet("begin")
meet("end")
dist.destroy_process_group()
"""


@dataclass(frozen=True)
class Costs:
    """CPU seconds of the ranks, of the launcher beside them, and the time of the steps."""

    program: float
    launcher: float
    wall: float

    @property
    def total(self) -> float:
        """Return the CPU seconds of all processes."""
        return self.program + self.launcher


def measure(place: Path, roots: Callable[[], Iterable[psutil.Process]]) -> Costs:
    """Measure the steps of a program that has been started; ``roots`` are its top processes."""
    wait_for_ranks(place, "begin")
    before, began = cpu_seconds(roots()), time.monotonic()
    (place / "begin").touch()
    wait_for_ranks(place, "end")
    after, ended = cpu_seconds(roots()), time.monotonic()
    (place / "end").touch()
    return Costs(after[0] - before[0], after[1] - before[1], ended - began)


def wait_for_ranks(place: Path, name: str) -> None:
    """Wait until all ranks are at a meeting point."""
    deadline = time.monotonic() + PATIENCE
    while not all((place / f"{name}-{rank}").exists() for rank in range(PROCESSES)):
        if time.monotonic() > deadline:
            raise RuntimeError(f"The ranks have not met at {name!r} in {PATIENCE:.0f} s.")
        time.sleep(0.02)


def cpu_seconds(roots: Iterable[psutil.Process]) -> tuple[float, float]:
    """Return the CPU seconds of the ranks, and of all other processes with their ended children."""
    program = launcher = 0.0
    found = {}
    for root in roots:
        for process in [root, *root.children(recursive=True)]:
            found[process.pid] = process
    for process in found.values():
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            spent = times.user + times.system + times.children_user + times.children_system
            if is_rank(process):
                program += spent
            else:
                launcher += spent
    return program, launcher


def is_rank(process: psutil.Process) -> bool:
    """Return whether a process is a rank: torchrun's and ours have ``RANK``."""
    return "RANK" in process.environ() and "TORCHELASTIC_RUN_ID" in process.environ()


class Jobs:
    """Runs the program as a job of two tasks on the local backend."""

    def __init__(self, state: Path, python: str, steps: int) -> None:
        self._session = Session(Profile(backend="local", state_dir=state))
        self._state, self._python, self._steps = state, python, steps

    def run(self, place: Path) -> Costs:
        """Run a job and measure its steps."""
        source = place / "train.py"
        source.write_text(PROGRAM)
        bundle = bundle_from_file(source)
        spec = JobSpec(
            "ddp",
            "local",
            roles=(Role("worker", PROCESSES, Resources(3000)),),
            program=bundle.program,
            args=(str(place), str(self._steps), str(WARM_UP)),
            python=self._python,
            framework="pytorch",
            env=VARIABLES,
            bundle_digest=bundle.digest,
        )
        job = self._session.submit(spec, bundle)
        try:
            costs = measure(place, self._processes)
            job.wait_success(PATIENCE)
        finally:
            if not job.record().state.ended:
                job.cancel("the benchmark has failed")
        return costs

    def _processes(self) -> list[psutil.Process]:
        """Return supervisor, coordinator and agents: the state directory is in their commands."""
        return [
            process
            for process in psutil.process_iter(["cmdline"])
            if any(str(self._state) in word for word in process.info["cmdline"] or ())
        ]


def run_torchrun(python: str, place: Path, steps: int) -> Costs:
    """Run the program with torchrun and measure its steps."""
    source = place / "train.py"
    source.write_text(PROGRAM)
    # The environment of the tests has a script of its own, because Debian's PyTorch has no libuv.
    script = Path(python).parent / "torchrun"
    start = [str(script)] if script.exists() else [python, "-m", "torch.distributed.run"]
    words = ["--standalone", f"--nproc-per-node={PROCESSES}", str(source)]
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(
            [*start, *words, str(place), str(steps), str(WARM_UP)],
            env={**os.environ, **VARIABLES},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        costs = measure(place, lambda: [psutil.Process(process.pid)])
        if process.wait(60):
            raise RuntimeError((place / "log").read_text(errors="replace")[-2000:])
    finally:
        process.terminate()  # It ends its processes.
        process.wait()
    return costs


def main() -> int:
    """Run the pairs and print the figures; return 1 if the limit is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--steps", type=int, default=600, help="measured steps of each run")
    parser.add_argument("--torch-python", help="an interpreter with PyTorch; else it is searched")
    parser.add_argument("--json", type=Path, help="write the numbers there, too")
    options = parser.parse_args()
    tests = ROOT / ".venv-torch/bin/python3"
    python = find_torch(options.torch_python or (str(tests) if tests.exists() else None))
    if python is None:
        print("No interpreter has PyTorch: `scripts/setup.sh torch-tree` makes one.")
        return 2
    before, ours, theirs = machine(), [], []
    with tempfile.TemporaryDirectory(prefix="ddp-cpu-") as state:
        jobs = Jobs(Path(state), python, options.steps)
        for number in range(options.pairs):
            for turn in (0, 1) if number % 2 == 0 else (1, 0):
                with empty_directory() as place:
                    if turn == 0:
                        ours.append(jobs.run(place))
                    else:
                        theirs.append(run_torchrun(python, place, options.steps))
            print(f"pair {number + 1}: {describe(ours[-1])}; torchrun {describe(theirs[-1])}")
    ratios = [one.total / other.total for one, other in zip(ours, theirs, strict=True)]
    ratio = statistics.median(ratios)
    print(f"{options.pairs} pairs of {options.steps} steps; {before}, at the end {machine()}")
    for name, found in (("ours", ours), ("torchrun", theirs)):
        step = 1000 / options.steps
        total = statistics.median(one.total for one in found) * step
        launcher = statistics.median(one.launcher for one in found) * step
        wall = statistics.median(one.wall for one in found) * step
        print(
            f"{name:8}  {total:.2f} ms of CPU a step, of it the launcher {launcher:.3f} ms;"
            f" {wall:.1f} ms by the clock"
        )
    print(f"ours / torchrun: {ratio:.4f}, {min(ratios):.3f} to {max(ratios):.3f} (limit {LIMIT})")
    if options.json:
        numbers = {"ours": [vars(one) for one in ours], "torchrun": [vars(one) for one in theirs]}
        options.json.write_text(json.dumps(numbers, indent=1))
    return int(ratio > LIMIT)


def describe(costs: Costs) -> str:
    """Return a text with the CPU seconds."""
    return f"{costs.total:.2f} s (launcher {costs.launcher:.2f}, clock {costs.wall:.1f})"


if __name__ == "__main__":
    sys.exit(main())
