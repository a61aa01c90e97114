"""Workflows run for real: text into a folder, the command line as a process, what came of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from submarine_jobs.commands import execute
from submarine_jobs.frontends import Outcome
from submarine_workflows.runs import RunFolder, Runs, RunView, view_of
from tests.frontends import RecordingFrontend
from tests.notebooks import write_notebook
from tests.processes import is_gone
from tests.waiting import PATIENCE, until

LIMIT = PATIENCE


class FullDisk:
    """The module ``os`` of a machine whose disk is full."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def write(self, file: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")


@dataclass
class Workflows:
    """A folder with one workflow, ``w.flow``, and its runs."""

    folder: Path
    processes: list[subprocess.Popen[str]] = field(default_factory=list)
    frontend: RecordingFrontend = field(default_factory=RecordingFrontend)

    @property
    def runs(self) -> Runs:
        return Runs(self.folder / "runs")

    def write(self, text: str, name: str = "w.flow") -> Path:
        path = self.folder / name
        path.write_text(textwrap.dedent(text))
        return path

    def script(self, name: str, text: str) -> None:
        """A shell script that nodes call as ``./name``."""
        path = self.folder / name
        path.write_text("#!/bin/bash\n" + textwrap.dedent(text))
        path.chmod(0o700)

    def do(self, verb: str, *words: str) -> Outcome:
        """A verb in this process."""
        return execute(["workflow", verb, *words, "--runs", str(self.runs.folder)], self.frontend)

    def run(self, *words: str) -> Outcome:
        return self.do("run", str(self.folder / "w.flow"), *words)

    def spawn(self, *words: str) -> subprocess.Popen[str]:
        """``submarine workflow run`` in a process of its own, in a session of its own."""
        runs = str(self.runs.folder)
        process = subprocess.Popen(
            [sys.executable, "-m", "submarine_jobs.cli", "workflow", "run", *words, "--runs", runs],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.processes.append(process)
        return process

    def newest(self) -> RunFolder:
        return self.runs.find("w")

    def view(self) -> RunView:
        return view_of(self.newest())

    def statuses(self) -> dict[str, str]:
        view = self.view()
        return {"": view.status.value} | {n.path: n.status.value for n in view.nodes}

    def file(self, name: str) -> Path:
        return self.folder / name

    def wait_for(self, name: str, limit: float = LIMIT) -> str:
        """The text of a file that a node writes, once it has any."""

        def look() -> str:
            path = self.folder / name
            return path.read_text() if path.exists() else ""

        return str(until(look, f"{name} was never written", limit))

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


#: A program that writes its process id and waits for a file, in the folder of its parameter.
WAITING_CELL = """\
%%submarine --only
import os, time
from pathlib import Path
folder = Path(os.environ["SUBMARINE_PARAM_FOLDER"])
(folder / "pid.new").write_text(str(os.getpid()))
(folder / "pid.new").rename(folder / "pid")
while not (folder / "go").exists():
    time.sleep(0.1)
print("trained")
"""
_CELLS = (
    "%load_ext submarine_magics",
    "days = 1",
    WAITING_CELL,
    "%submarine run {name} --memory 256M --param folder=$folder",
    "%submarine wait",
    "accuracy = 0.5 + days / 10",
)
_FLOW = """
config: {days: "4"}
nodes:
  - name: train
    notebook: train.ipynb
    params: {days: "${days}", folder: "${folder}"}
  - name: report
    type: command
    dependsOn: [train]
    condition: ${train:accuracy} > 0.85
    config: {command: "touch report-${accuracy}"}
"""


class Training(Workflows):
    """A notebook whose job trains until a file exists, and a report after it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        # Its own: other tests have workflows of this name on the same cluster.
        self.name = f"training-{uuid.uuid4().hex[:6]}"
        sources = [source.replace("{name}", self.name) for source in _CELLS]
        load, parameters, *rest = sources
        write_notebook(folder / "train.ipynb", load, (parameters, ["parameters"]), *rest)
        self.write(_FLOW)

    def begin(self) -> tuple[subprocess.Popen[str], int]:
        """Run it until its job's program runs; the runner and the program's number."""
        process = self.spawn("w.flow", "-p", "folder", str(self.folder))
        pid = self.file("pid")
        until(lambda: pid.exists() or process.poll() is not None, "no job has begun", 300)
        assert pid.exists(), process.communicate()[0]
        return process, int(pid.read_text())

    def jobs(self) -> list[dict[str, Any]]:
        """The records of the jobs of its runs, as the command line sees them."""
        found = execute(["list", "--workflow", "w", "--name", self.name], self.frontend).value
        assert isinstance(found, list)
        return found

    def check_job_ended(self, pid: int) -> None:
        """Its program is gone, and its record says that it was cancelled."""
        until(lambda: is_gone(pid), "the job's program lives on")
        until(lambda: {job["state"] for job in self.jobs()} == {"CANCELLED"}, f"{self.jobs()}")

    def close(self) -> None:
        self.file("go").touch()
        super().close()
