"""Folders of local runs: one folder per workflow, with one folder per run.

``<state>/workflows/<workflow>/<run>/`` contains ``journal.jsonl``, ``workflow.json``, ``logs/``,
``outputs/``, ``notebooks/`` and two locks; ``views`` reads them. A run in another folder has a link
in the state directory, so that its id is sufficient to find it: notebook outputs contain no paths.
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
from submarine_runtime.translation import _
from submarine_workflows.model import file_name
from submarine_workflows.runs.journal import is_held

LAST = "last"
#: Number of runs kept per workflow; a new run deletes the oldest.
MAX_RUNS = 100
#: Links to runs in other folders, by id.
_LINKS = ".elsewhere"


class RunNotFoundError(UsageError):
    """No run and no workflow with runs has this name."""


@dataclass(frozen=True)
class RunFolder:
    """Files of one run."""

    path: Path

    @property
    def run(self) -> str:
        """Id of the run."""
        return self.path.name

    @property
    def journal(self) -> Path:
        """Recorded events."""
        return self.path / "journal.jsonl"

    @property
    def workflow(self) -> Path:
        """The workflow as it was when the run started."""
        return self.path / "workflow.json"

    @property
    def runner_lock(self) -> Path:
        """Lock held by the runner while it runs."""
        return self.path / "runner.lock"

    @property
    def guard_lock(self) -> Path:
        """Lock held until all processes of a killed runner have ended."""
        return self.path / "keeper.lock"

    @property
    def cancel(self) -> Path:
        """File that requests the end of the run by its existence."""
        return self.path / "cancel"

    @property
    def alive(self) -> bool:
        """Whether its runner is running."""
        return is_held(self.runner_lock)

    def log(self, path: str, attempt: int) -> Path:
        """Return the log of one attempt of a node; attempts count from 0."""
        return self.path / "logs" / f"{file_name(path)}.{attempt}.log"

    def output(self, path: str) -> Path:
        """Return the file for a node's output parameters."""
        return self.path / "outputs" / f"{file_name(path)}.json"

    def properties(self, path: str) -> Path:
        """Return the file with a node's properties."""
        return self.path / "outputs" / f"{file_name(path)}.properties"

    @property
    def notebooks(self) -> Path:
        """Default folder of executed notebooks."""
        return self.path / "notebooks"


class Runs:
    """All runs of this user on this machine.

    Parameters
    ----------
    folder
        Folder of the runs; may not exist yet.
    home
        Folder of runs in the state directory; None: ``folder``.
    """

    def __init__(self, folder: Path, home: Path | None = None) -> None:
        self.folder = folder
        self._home = home or folder

    def new(self, workflow: str) -> RunFolder:
        """Create the folder of a new run, exclusively."""
        above = self.folder / file_name(workflow)
        make_private(above)
        while True:
            now = time.time()
            moment = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
            # The fraction of the second is last, so that ids sort by time.
            path = above / f"{file_name(workflow)}-{moment}-{int(now % 1 * 65536):04x}"
            with suppress(FileExistsError):
                path.mkdir(mode=0o700)
                break
            time.sleep(0.001)
        for name in ("logs", "outputs", "notebooks"):
            (path / name).mkdir(mode=0o700)
        if self._home != self.folder:
            with suppress(OSError):  # without a link it is found by its folder only
                self._link(path)
        return RunFolder(path)

    def _link(self, path: Path) -> None:
        links = self._home / _LINKS
        make_private(links)
        for link in list(links.iterdir()):
            if not link.exists():  # the run was deleted
                link.unlink(missing_ok=True)
        (links / path.name).symlink_to(path)

    def linked_runs(self, run: str) -> list[RunFolder]:
        """Return the run of that id in another folder; ``run`` is untrusted, not used as a path."""
        found: list[RunFolder] = []
        with suppress(OSError), os.scandir(self._home / _LINKS) as entries:
            links = [entry.path for entry in entries if entry.name == run and entry.is_symlink()]
            found = [RunFolder(Path(os.readlink(link))) for link in links]
        return [one for one in found if one.journal.exists()]

    def of(self, workflow: str) -> list[RunFolder]:
        """Return the runs of a workflow, newest first."""
        return _newest(_within(self.folder / file_name(workflow)))

    def all(self) -> list[RunFolder]:
        """Return every run, newest first."""
        return _newest(run for folder in _folders(self.folder) for run in _within(folder))

    def workflows(self) -> list[str]:
        """Return the names of workflows that have runs."""
        return sorted(folder.name for folder in _folders(self.folder))

    def find(self, text: str) -> RunFolder:
        """Return a run by id or unique prefix, or the newest run of a workflow or of all.

        Raises
        ------
        RunNotFoundError
            If no run or several runs match.
        """
        if text == LAST:
            found = self.all()
        else:
            found = [run for run in self.all() if run.run == text] or self.of(text)
            found = found or self.linked_runs(text)
        if found:
            return found[0]
        begun = [run for run in self.all() if run.run.startswith(text)] if text else []
        if len(begun) == 1:
            return begun[0]
        if begun:
            names = ", ".join(run.run for run in begun[:5])
            raise RunNotFoundError(
                _("{text} is the beginning of {count} runs: {names}.").format(
                    text=text, count=len(begun), names=names
                ),
                _("Use a longer prefix."),
            )
        if text == LAST:
            raise RunNotFoundError(_("No workflow has been run here."))
        raise RunNotFoundError(
            _("No run, and no workflow with runs, is named {text}.").format(text=text[:80]),
            _("`submarine workflow history` lists them."),
        )

    def prune(self, workflow: str) -> None:
        """Delete the oldest runs that are not active."""
        for run in self.of(workflow)[MAX_RUNS:]:
            if not run.alive and not is_held(run.guard_lock):
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
    """Sort by the UTC times in the ids."""
    return sorted(runs, key=lambda run: run.run.rsplit("-", 3)[1:], reverse=True)
