"""Location of the user's runs: the profile's state directory, or a folder by option."""

from __future__ import annotations

from pathlib import Path

from submarine_jobs.commands.grammar import Callback, option
from submarine_jobs.frontends import Frontend
from submarine_workflows.runs import Runs


def runs_option(command: Callback) -> Callback:
    """Add ``--runs DIR`` to a command."""
    return option(
        "--runs",
        metavar="DIR",
        heading="Where",
        help="Folder of runs, their journals and logs [the user's state directory].",
    )(command)


def runs_of(frontend: Frontend, folder: str | None) -> Runs:
    """Return the runs in ``folder``, by default in the state directory."""
    home = frontend.config({}).profile.state_dir / "workflows"
    return Runs(Path(folder).expanduser().absolute() if folder else home, home)
