"""Run `training_steps.py` with several workers: as a job, with torchrun, and as bare processes.

All three run the same file with the same interpreter, so only the launcher differs. The output of
bare processes and of torchrun is written to files. A job has its coordinator and its agents, and a
client follows the logs of all its tasks.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import training_steps

from submarine_jobs.client import Job, Session
from submarine_jobs.model import JobSpec, Profile, Resources, Role
from submarine_jobs.outputs import read_metrics
from submarine_jobs.program import bundle_from_file

PROGRAM = Path(training_steps.__file__).resolve()
ROOT = PROGRAM.parent.parent
#: Seconds that a run may take in addition to its waits.
SPARE = 120.0
_IMPORT = "import torch.distributed.run"


@dataclass(frozen=True)
class Training:
    """What is run: workers, steps with and without measurement, seconds of each wait, gradients."""

    workers: int
    steps: int
    warm_up: int
    wait: float
    size: int
    exchange: str = "ring"

    def arguments(self, directory: Path | str) -> list[str]:
        """Return the arguments of `training_steps.py`."""
        return [
            str(directory),
            f"--steps={self.steps}",
            f"--warm-up={self.warm_up}",
            f"--wait={self.wait}",
            f"--bytes={self.size}",
            f"--exchange={self.exchange}",
        ]

    @property
    def limit(self) -> float:
        """Seconds after which a run has failed: several times what it should take."""
        return SPARE + 5 * (self.steps + self.warm_up) * self.wait


@dataclass(frozen=True)
class Measurement:
    """Steps per second of each worker, and the median of the seconds of an exchange."""

    rate: float
    exchange: float


Launcher = Callable[[Training, Path], Measurement]


def measurement(directory: Path) -> Measurement:
    """Read what rank 0 has measured."""
    result = json.loads((directory / training_steps.RESULT).read_text())
    return Measurement(result["steps"] / result["seconds"], result["exchange"])


def machine() -> str:
    """Return the cores and the load of this machine: figures of a busy machine are not final."""
    return f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}"


@contextmanager
def empty_directory() -> Iterator[Path]:
    """Give a directory in which the members of one run find each other."""
    with tempfile.TemporaryDirectory(prefix="training-") as name:
        yield Path(name)


def run_bare(training: Training, directory: Path) -> Measurement:
    """Run the workers as processes of this one."""
    ranks = {
        str(rank): {"RANK": str(rank), "WORLD_SIZE": str(training.workers)}
        for rank in range(training.workers)
    }
    command = [sys.executable, str(PROGRAM), *training.arguments(directory)]
    run_processes({rank: (command, env) for rank, env in ranks.items()}, training, directory)
    return measurement(directory)


def find_torch(named: str | None = None) -> str | None:
    """Return an interpreter that has torchrun: the named one, ours, or that of the set-up."""
    usual = [sys.executable, f"{ROOT}/.venv-frameworks/bin/python", "/usr/bin/python3"]
    for python in [named] if named else usual:
        if os.access(python, os.X_OK):
            done = subprocess.run([python, "-c", _IMPORT], capture_output=True, check=False)
            if done.returncode == 0:
                return python
    return None


def torchrun(python: str) -> Launcher:
    """Return the launcher that runs the workers with torchrun of this interpreter.

    The workers have the same interpreter as those of the other launchers, without torch.
    """

    def run(training: Training, directory: Path) -> Measurement:
        command = [
            *(python, "-m", "torch.distributed.run", "--standalone"),
            f"--nproc_per_node={training.workers}",
            # The output goes to files, as that of bare processes. Its default for both options, 0,
            # fails with PyTorch 1.13 on Python 3.11 (Debian 12); no worker writes to stderr.
            *("--redirects=1", "--tee=2", f"--log_dir={directory / 'torchrun'}"),
            *("--no_python", sys.executable, str(PROGRAM), *training.arguments(directory)),
        ]
        # Else torchrun sets it and prints a warning.
        variables = {"OMP_NUM_THREADS": "1"}
        run_processes({"torchrun": (command, variables)}, training, directory)
        return measurement(directory)

    return run


def run_processes(
    commands: Mapping[str, tuple[Sequence[str], Mapping[str, str]]],
    training: Training,
    directory: Path,
) -> None:
    """Run commands with these variables until all have ended; their output is in ``NAME.log``.

    Raises
    ------
    RuntimeError
        If one fails or does not end in time; the others are killed.
    """
    processes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name, (command, variables) in commands.items():
            with (directory / f"{name}.log").open("wb") as log:
                processes[name] = subprocess.Popen(
                    command, env={**os.environ, **variables}, stdout=log, stderr=subprocess.STDOUT
                )
        deadline = time.monotonic() + training.limit
        while any(process.poll() is None for process in processes.values()):
            if time.monotonic() > deadline:
                raise RuntimeError(f"The workers did not end in {training.limit:.0f} s.")
            if any(process.poll() for process in processes.values()):
                break
            time.sleep(0.05)
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
    for name, process in processes.items():
        if process.returncode > 0:
            text = (directory / f"{name}.log").read_text(errors="replace")
            raise RuntimeError(f"{name} failed: {text[-2000:]}")


class Jobs:
    """Runs the workers as tasks of a job on the local backend.

    Parameters
    ----------
    state
        State directory of the client: index, job directories.
    """

    def __init__(self, state: Path) -> None:
        self._session = Session(Profile(backend="local", state_dir=state))

    def run(
        self, training: Training, directory: Path, commands: Mapping[str, str] | None = None
    ) -> Measurement:
        """Run a job, and check that its logs and its metrics have been stored.

        Parameters
        ----------
        commands
            Shell commands of the roles ``worker`` and ``ps``; None: the program, as a bundle.
        """
        bundle = bundle_from_file(PROGRAM)
        size = Resources(memory=512)
        roles = [Role("worker", training.workers, size)]
        if commands is not None:
            roles[0] = replace(roles[0], command=commands["worker"])
            if "ps" in commands:
                roles.append(Role("ps", 1, size, command=commands["ps"], kind="untracked"))
        spec = JobSpec(
            "training",
            "local",
            roles=tuple(roles),
            program=bundle.program,
            args=tuple(training.arguments(directory)),
            python=sys.executable,
            framework="any",
            policy="all",
            max_restarts=0,
            bundle_digest=bundle.digest,
        )
        job = self._session.submit(spec, bundle)
        try:
            follower = Follower(job)
            job.wait_success(training.limit)
            follower.join(SPARE)
        finally:
            if not job.record().state.ended:
                job.cancel("the benchmark has failed")
        check_outputs(job, training, follower.size)
        return measurement(directory)


class Follower(threading.Thread):
    """Follows the logs of all tasks, like ``submarine logs -f``, and counts their bytes."""

    def __init__(self, job: Job) -> None:
        super().__init__(daemon=True)
        self.size = 0
        self._job = job
        self.start()

    def run(self) -> None:
        """See ``threading.Thread.run``."""
        for chunk in self._job.follow(tasks="*"):
            self.size += len(chunk.data)


def check_outputs(job: Job, training: Training, followed: int) -> None:
    """Raise RuntimeError unless the job did what it costs: each line and the metrics are stored."""
    lines = training_steps.LINES * (training.steps + training.warm_up)
    stored = 0
    for index in range(training.workers):
        task = f"worker:{index}"
        log = b"".join(chunk.data for chunk in job.read_log(task=task))
        stored += len(log)
        found = log.count(b"\n")
        if found != lines:
            raise RuntimeError(f"{job.id}: the log of {task} has {found} of {lines} lines.")
        if not any("loss" in row.scalars for row in read_metrics(job.directory, task)):
            raise RuntimeError(f"{job.id}: the metrics of {task} have no loss.")
    if followed < stored:
        raise RuntimeError(f"{job.id}: {followed} of {stored} bytes of the logs were followed.")
