"""The run that an output shows, found again by what the output says of it: for the server.

An output may be anybody's, so nothing in it leads anywhere: a run of this machine is one of those
that this user's state directory holds or has a link to, an execution one of the Azkaban that is
configured here.
"""

from __future__ import annotations

from pathlib import Path

from submarine_jobs.errors import UsageError
from submarine_workflows.notebook.live_display import Source
from submarine_workflows.notebook.local_run import LocalRun
from submarine_workflows.runs import RunNotFoundError, Runs

#: How notebooks call our commands.
_COMMAND = "%submarine"


def find_run(run: str, url: str, state_dir: Path) -> Source:
    """What can be followed of a run.

    Parameters
    ----------
    url
        Of the Azkaban that runs it; empty: this machine does.
    state_dir
        Of the user whose runs these may be.

    Raises
    ------
    SubmarineError
        If nothing is known here of such a run.
    """
    return _execution(run, url, state_dir) if url else _local(run, state_dir)


def _local(run: str, state_dir: Path) -> Source:
    runs = Runs(state_dir / "workflows")
    for folder in (*runs.all(), *runs.elsewhere(run)):
        if folder.run == run:
            return LocalRun(folder, _COMMAND)
    raise RunNotFoundError(f"No run {run[:80]} is among those of this server's user.")


def _execution(run: str, url: str, state_dir: Path) -> Source:
    """Follow an execution with the session of an earlier command; showing an output logs nobody in.

    The output may be somebody else's, so it must not decide when a password is sent.
    """
    from submarine_workflows.azkaban import execution_id
    from submarine_workflows.azkaban.api import Azkaban, Connection, SessionFile, load_settings
    from submarine_workflows.notebook.azkaban_run import AzkabanRun

    settings = load_settings()
    if settings.url != url:
        raise UsageError(
            f"This server asks {settings.url} and no other Azkaban.",
            "Its own configuration names it, under [azkaban] in submarine.toml.",
        )
    number = execution_id(run)

    def refuse() -> str:
        raise UsageError(
            f"There is no session at {settings.origin} now, and showing an output logs nobody in.",
            f"Run `{_COMMAND} workflow status azkaban:{number}`, and open the notebook again.",
        )

    connection = Connection(settings, refuse, SessionFile(state_dir, settings))
    return AzkabanRun(Azkaban(connection), number, _COMMAND)
