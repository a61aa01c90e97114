"""A gang without a cluster: processes on loopback with exactly what ``frameworks.setup`` gives.

Ports are reserved, held or let go, launcher, shims and helpers are put in place as the agent does.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import submarine_runtime
from submarine_jobs.submit import write_runtime_zip
from submarine_runtime import frameworks
from submarine_runtime.network import PortUse, Reservation
from submarine_runtime.protocol import AgentConfig, JobStore, Member
from tests.configurations import make_agent_config

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples/distributed"
PACKAGE = Path(submarine_runtime.__file__).parent
FRAMEWORKS = ROOT / ".venv-frameworks/bin/python"
MXNET = ROOT / ".venv-mxnet/bin/python"
HOROVOD = ROOT / ".venv-horovod/bin/python"
SYSTEM = Path("/usr/bin/python3")
OURS = Path(sys.executable)
UNTRACKED = ("ps", "server", "scheduler")


@dataclass
class Task:
    """One process of the gang."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def said(self, word: str) -> list[str]:
        """What follows ``word`` at the beginning of each line that begins with it."""
        lines = self.text.splitlines()
        return [line[len(word) + 1 :] for line in lines if line.startswith(word + " ")]


@dataclass
class Gang:
    """Tasks of one job, started together."""

    directory: Path
    framework: str
    python: Path
    command: list[str]
    env: Mapping[str, str] = field(default_factory=dict)
    tasks: list[Task] = field(default_factory=list)
    helpers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    setups: dict[str, frameworks.Setup] = field(default_factory=dict)
    reservations: dict[str, Reservation] = field(default_factory=dict)
    uses: list[PortUse] = field(default_factory=list)

    def members(self, roles: Mapping[str, int], processes: int) -> list[Member]:
        made = []
        for role, count in roles.items():
            for index in range(count):
                name = f"{role}:{index}"
                ports = Reservation(int(frameworks.setting_of(self.framework, "PORTS")))
                self.reservations[name] = ports
                kind = "untracked" if role in UNTRACKED else "tracked"
                several = processes if kind == "tracked" else 1
                made.append(
                    Member(
                        name, role, index, "localhost", "127.0.0.1", ports.ports, 0, kind, several
                    )
                )
        return made

    def start(self, members: list[Member]) -> None:
        """All helpers, then all programs."""
        for me in members:
            setup = frameworks.setup(self.config(me), me, members)
            self.setups[me.task] = setup
            if not setup.hold_ports:
                self.reservations[me.task].release()
            for helper in setup.helpers:
                self._help(helper)
            if setup.rendezvous:
                served = setup.rendezvous == "helper"
                self.uses.append(PortUse(me.address, me.ports[0], served, lambda: None))
        for me in members:
            for number in range(len(self.setups[me.task].processes)):
                self.launch(me.task, number)

    def launch(self, task: str, number: int = 0) -> Task:
        """Start one process of a task; again, if it has run before."""
        setup = self.setups[task]
        place = self.directory / f"{task.replace(':', '-')}.{len(self.tasks)}"
        (place / "launch/shims").mkdir(parents=True)
        shutil.copy(PACKAGE / "launcher/launch.py", place / "launch")
        for name in setup.shims:
            shutil.copy(PACKAGE / "frameworks/shims" / name, place / "launch/shims")
        (place / "model").mkdir()
        log = place / "log"
        variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(place),
            "PYTHONUNBUFFERED": "1",
            "TF_CPP_MIN_LOG_LEVEL": "2",
            "SUBMARINE_MODEL_DIR": str(place / "model"),
            "SUBMARINE_CHECKPOINT_DIR": str(place),
            **setup.env,
            **setup.processes[number],
            **self.env,
        }
        with log.open("wb") as file:
            process = subprocess.Popen(
                [str(self.python), str(place / "launch/launch.py"), *self.command],
                cwd=self.directory,
                env=variables,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        made = Task(task, process, log)
        self.tasks.append(made)
        return made

    def wait(self, roles: tuple[str, ...], seconds: float = 240) -> list[Task]:
        """Wait for the tasks of ``roles``; all must have ended well."""
        waited = [task for task in self.tasks if task.name.split(":")[0] in roles]
        deadline = time.monotonic() + seconds
        while any(task.process.poll() is None for task in waited):
            failed = [task for task in waited if task.process.poll()]
            assert not failed, f"{failed[0].name} failed:\n{failed[0].text[-4000:]}"
            late = {task.name: task.text[-2000:] for task in self.tasks}
            assert time.monotonic() < deadline, f"still running: {late}"
            for use in self.uses:
                use.check()
            time.sleep(0.1)
        for use in self.uses:
            use.check(last=True)
        for task in waited:
            assert task.process.returncode == 0, f"{task.name}:\n{task.text[-4000:]}"
        assert not self.uses or any(use.noticed for use in self.uses), "the tasks never met"
        return waited

    def config(self, me: Member) -> AgentConfig:
        return make_agent_config(
            store=JobStore("local", str(self.directory)),
            role=me.role,
            index=me.index,
            framework=self.framework,
            python=str(self.python),
        )

    def _help(self, helper: frameworks.Helper) -> None:
        runtime = str(write_runtime_zip(self.directory))
        places = {"python": str(self.python), "agent": sys.executable, "runtime": runtime}
        command = [part.format(**places) for part in helper.command]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
        self.helpers.append(process)
        assert process.stdout is not None
        assert process.stdout.readline().decode().strip() == helper.ready

    def end(self) -> None:
        for process in [task.process for task in self.tasks] + self.helpers:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        for ports in self.reservations.values():
            ports.release()


@contextmanager
def gang(
    directory: Path,
    framework: str,
    roles: Mapping[str, int],
    python: Path,
    program: str,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    processes: int = 1,
) -> Iterator[Gang]:
    """Start a gang that runs ``program`` and end whatever is left of it."""
    assert python.exists(), f"{python} is not there: run scripts/setup.sh frameworks"
    shutil.copy(ROOT / "examples/distributed" / program, directory) if not (
        directory / program
    ).exists() else None
    made = Gang(directory, framework, python, [program, *arguments], env or {})
    try:
        made.start(made.members(roles, processes))
        yield made
    finally:
        made.end()


def same_result(tasks: list[Task], accuracy: float) -> None:
    """All of ``tasks`` have the same weights, and those are good."""
    digests = {digest for task in tasks for digest in task.said("digest")}
    assert len(digests) == 1, {task.name: task.text[-500:] for task in tasks}
    assert all(len(task.said("digest")) == 1 for task in tasks)
    for task in tasks:
        for value in task.said("accuracy"):
            assert float(value) > accuracy
    assert any(task.said("accuracy") for task in tasks)
