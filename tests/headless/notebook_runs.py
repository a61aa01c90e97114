"""Notebooks made for a test, runners started as a scheduler starts them, and what they leave."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import psutil

from tests.notebook.conftest import clean_environment
from tests.notebooks import write_notebook
from tests.waiting import until

PATIENCE = 150.0
#: Printed by a cell in two pieces, so that it stands in outputs only.
WAITING = "now waiting"
LOAD = "%load_ext submarine_magics"
SLEEP = "import time\nprint('now ' + 'waiting', flush=True)\ntime.sleep(1000)"
ENDED = ("SUCCEEDED", "FAILED", "CANCELLED", "LOST")


class NotebookRuns:
    """One folder: notebooks in it, their runs, their jobs."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self.environment = {**clean_environment(folder), **environment}

    def notebook(self, name: str, *cells: str | tuple[str, list[str]]) -> Path:
        """Write a notebook of these cells; each its text, or text and tags."""
        return write_notebook(self.folder / f"{name}.ipynb", *cells)

    def start(self, *words: str | Path) -> subprocess.Popen[str]:
        """Start a program of this environment, with signals as a scheduler leaves them."""
        program, *rest = [str(word) for word in words]
        return subprocess.Popen(
            [str(Path(sys.executable).with_name(program)), *rest],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """Run one to its end."""
        process = self.start(*words)
        out, err = process.communicate(timeout=PATIENCE)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def killed(
        self, process: subprocess.Popen[str], number: signal.Signals, ready: Callable[[], object]
    ) -> tuple[int, str]:
        """Send a signal once ``ready``; the exit code and all that was said."""

        def there() -> object:
            assert process.poll() is None, process.communicate()
            return ready()

        try:
            until(there, "the run is in its middle")
            process.send_signal(number)
            out, err = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
        return process.returncode, out + err

    def jobs(self) -> dict[str, str]:
        """State by name of each job that was started here."""
        found = subprocess.run(
            [sys.executable, "-m", "submarine_jobs.cli", "list", "--json"],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return {job["name"]: job["state"] for job in json.loads(found.stdout)}

    def processes(self) -> list[list[str]]:
        """Command lines of what lives of these runs: kernels, guards, agents, programs."""
        return [line for _, line in self.living()]

    def living(self) -> list[tuple[psutil.Process, list[str]]]:
        """What lives of these runs."""
        mark = self.environment["XDG_STATE_HOME"]
        found = []
        for process in psutil.process_iter():
            try:
                line = process.cmdline()
                # A driver is of all kernels of the machine, and outlives them.
                if process.environ().get("XDG_STATE_HOME") == mark and "skein" not in str(line):
                    found.append((process, line))
            except (psutil.Error, OSError):
                continue
        return found


def read(path: Path) -> Any:
    """An output, which must be a valid notebook."""
    document = nbformat.read(path, as_version=4)
    nbformat.validate(document)
    return document


def cell(document: Any, cell_id: str) -> Any:
    """The cell of that id."""
    return next(found for found in document.cells if found.get("id") == cell_id)


def says(path: Path, text: str) -> bool:
    """Whether an output of the notebook at ``path`` holds ``text``; at no time half a notebook."""
    return path.exists() and text in json.dumps(
        [found.get("outputs") for found in json.loads(path.read_bytes())["cells"]]
    )
