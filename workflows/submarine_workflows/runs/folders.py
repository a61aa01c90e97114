"""Where runs lie and how one is named: a folder for each workflow, in it a folder for each run.

``<state>/workflows/<workflow>/<run>/`` holds ``journal.jsonl``, ``workflow.json``, ``logs/``,
``outputs/``, ``notebooks/`` and two locks. Does not read what is in them (``views``). A run in
another folder has a link in the state directory, so that its id alone finds it: what notebooks show
of a run tells no path.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from submarine_jobs.config import make_private
from submarine_jobs.errors import UsageError
from submarine_workflows.model import file_name
from submarine_workflows.runs.journal import is_held

LAST = "last"
#: Runs of one workflow that are kept; the oldest go when a new one starts.
MAX_RUNS = 100
#: Links to runs in other folders, by their ids.
_ELSEWHERE = ".elsewhere"


class RunNotFoundError(UsageError):
    """No run of that name, and no workflow with one, is known here."""


@dataclass(frozen=True)
class RunFolder:
    """The files of one run."""

    path: Path

    @property
    def run(self) -> str:
        """Its id."""
        return self.path.name

    @property
    def journal(self) -> Path:
        """What it has done."""
        return self.path / "journal.jsonl"

    @property
    def workflow(self) -> Path:
        """The workflow as it was when the run started."""
        return self.path / "workflow.json"

    @property
    def runner_lock(self) -> Path:
        """Held by the runner for as long as it lives."""
        return self.path / "runner.lock"

    @property
    def keeper_lock(self) -> Path:
        """Held until all processes of a runner that was killed have been ended."""
        return self.path / "keeper.lock"

    @property
    def cancel(self) -> Path:
        """Its being there asks the runner to end."""
        return self.path / "cancel"

    @property
    def alive(self) -> bool:
        """Whether its runner lives."""
        return is_held(self.runner_lock)

    def log(self, path: str, attempt: int) -> Path:
        """The log of one attempt of a node; counted from 0."""
        return self.path / "logs" / f"{file_name(path)}.{attempt}.log"

    def output(self, path: str) -> Path:
        """Where a node writes its output parameters."""
        return self.path / "outputs" / f"{file_name(path)}.json"

    def properties(self, path: str) -> Path:
        """Where a node finds its properties."""
        return self.path / "outputs" / f"{file_name(path)}.properties"

    @property
    def notebooks(self) -> Path:
        """Where executed notebooks go unless another place is named."""
        return self.path / "notebooks"


class Runs:
    """All runs of this user on this machine.

    Parameters
    ----------
    folder
        Where they lie; need not be there.
    home
        The state directory's folder of runs; None: this is it.
    """

    def __init__(self, folder: Path, home: Path | None = None) -> None:
        self.folder = folder
        self._home = home or folder

    def new(self, workflow: str) -> RunFolder:
        """A folder for a new run, which nobody else has."""
        above = self.folder / file_name(workflow)
        make_private(above)
        while True:
            now = time.time()
            moment = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
            # The fraction of the second at the end: ids are in the order of their times.
            path = above / f"{file_name(workflow)}-{moment}-{int(now % 1 * 65536):04x}"
            with suppress(FileExistsError):
                path.mkdir(mode=0o700)
                break
            time.sleep(0.001)
        for name in ("logs", "outputs", "notebooks"):
            (path / name).mkdir(mode=0o700)
        if self._home != self.folder:
            with suppress(OSError):  # it is found by its folder then
                self._link(path)
        return RunFolder(path)

    def _link(self, path: Path) -> None:
        links = self._home / _ELSEWHERE
        make_private(links)
        for link in list(links.iterdir()):
            if not link.exists():  # the run is gone
                link.unlink(missing_ok=True)
        (links / path.name).symlink_to(path)

    def elsewhere(self, run: str) -> list[RunFolder]:
        """The run of that id in another folder; ``run`` may be anything, and is no path here."""
        found: list[RunFolder] = []
        with suppress(OSError), os.scandir(self._home / _ELSEWHERE) as entries:
            links = [entry.path for entry in entries if entry.name == run and entry.is_symlink()]
            found = [RunFolder(Path(os.readlink(link))) for link in links]
        return [one for one in found if one.journal.exists()]

    def of(self, workflow: str) -> list[RunFolder]:
        """Runs of a workflow, newest first."""
        return _newest(_within(self.folder / file_name(workflow)))

    def all(self) -> list[RunFolder]:
        """Every run, newest first."""
        return _newest(run for folder in _folders(self.folder) for run in _within(folder))

    def workflows(self) -> list[str]:
        """Names of the workflows that have runs."""
        return sorted(folder.name for folder in _folders(self.folder))

    def find(self, text: str) -> RunFolder:
        """The run of that id, or of a unique beginning; the newest of a workflow, or of all.

        Raises
        ------
        RunNotFoundError
            If there is none, or more than one fits.
        """
        if text == LAST:
            found = self.all()
        else:
            found = [run for run in self.all() if run.run == text] or self.of(text)
            found = found or self.elsewhere(text)
        if found:
            return found[0]
        begun = [run for run in self.all() if run.run.startswith(text)] if text else []
        if len(begun) == 1:
            return begun[0]
        if begun:
            names = ", ".join(run.run for run in begun[:5])
            raise RunNotFoundError(
                f"{text} begins {len(begun)} runs: {names}.", "Write more of it."
            )
        if text == LAST:
            raise RunNotFoundError("No workflow has been run here.")
        raise RunNotFoundError(
            f"No run and no workflow with runs is called {text[:80]}.",
            "`submarine workflow history` lists them.",
        )

    def prune(self, workflow: str) -> None:
        """Let go of the oldest runs that nothing runs in."""
        for run in self.of(workflow)[MAX_RUNS:]:
            if not run.alive and not is_held(run.keeper_lock):
                shutil.rmtree(run.path, ignore_errors=True)


def _folders(above: Path) -> Iterator[Path]:
    with suppress(OSError), os.scandir(above) as entries:
        shown = [e for e in entries if not e.name.startswith(".")]
        yield from [Path(e.path) for e in shown if e.is_dir(follow_symlinks=False)]


def _within(folder: Path) -> Iterator[RunFolder]:
    for path in _folders(folder):
        run = RunFolder(path)
        if run.journal.exists():
            yield run


def _newest(runs: Iterator[RunFolder]) -> list[RunFolder]:
    """By the times in their ids, which are in UTC."""
    return sorted(runs, key=lambda run: run.run.rsplit("-", 3)[1:], reverse=True)
