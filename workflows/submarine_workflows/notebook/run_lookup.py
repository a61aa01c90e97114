"""Find the run of a displayed output again, for the server.

An output is untrusted, so its content is used only for look-up: a local run must be in, or linked
from, the user's state directory, and an execution must be in the configured Azkaban server.
"""

from __future__ import annotations

from pathlib import Path

from submarine_jobs.errors import UsageError
from submarine_jobs.extras import require_extra
from submarine_runtime.translation import _
from submarine_workflows.notebook.live_display import Source
from submarine_workflows.notebook.local_run import LocalRun
from submarine_workflows.runs import RunNotFoundError, Runs

#: Command prefix in notebooks.
_COMMAND = "%submarine"


def find_run(run: str, url: str, state_dir: Path) -> Source:
    """Return the source of a run.

    Parameters
    ----------
    url
        URL of the Azkaban server; empty for local runs.
    state_dir
        State directory of the user.

    Raises
    ------
    SubmarineError
        If the run is unknown here.
    """
    return _execution(run, url, state_dir) if url else _local(run, state_dir)


def _local(run: str, state_dir: Path) -> Source:
    runs = Runs(state_dir / "workflows")
    for folder in (*runs.all(), *runs.linked_runs(run)):
        if folder.run == run:
            return LocalRun(folder, _COMMAND)
    raise RunNotFoundError(_("The user of this server has no run {run}.").format(run=run[:80]))


def _execution(run: str, url: str, state_dir: Path) -> Source:
    """Return an execution, accessed with the session of an earlier command.

    The output may be another user's, so it must not cause a login.
    """
    require_extra("workflows")
    # cost: requests; most outputs are of runs on this machine.
    from submarine_workflows.azkaban import execution_id
    from submarine_workflows.azkaban.api import Azkaban, Connection, SessionFile, load_settings
    from submarine_workflows.notebook.azkaban_run import AzkabanRun

    settings = load_settings()
    if settings.url != url:
        raise UsageError(
            _("This server uses only the Azkaban server {url}.").format(url=settings.url),
            _("It is configured under [azkaban] in submarine.toml."),
        )
    number = execution_id(run)

    def refuse() -> str:
        raise UsageError(
            _("There is no session at {origin}, and displaying an output does not log in.").format(
                origin=settings.origin
            ),
            _(
                "Run `{command} workflow status azkaban:{number}`, and open the notebook again."
            ).format(command=_COMMAND, number=number),
        )

    connection = Connection(settings, refuse, SessionFile(state_dir, settings))
    return AzkabanRun(Azkaban(connection), number, _COMMAND)
