"""Run a workflow from a notebook, in a process that continues when the kernel stops.

The process is ``submarine workflow run``; ``live_display`` updates it.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import click
from click.core import ParameterSource

from submarine_jobs.config import make_private
from submarine_jobs.errors import RefusedError, SubmarineError
from submarine_jobs.frontends import INTERRUPTED, JOB_FAILED, SUCCESS, Frontend, Outcome
from submarine_jobs.text import printable
from submarine_runtime.translation import _
from submarine_workflows.local import PROGRAM
from submarine_workflows.notebook.live_display import watcher
from submarine_workflows.notebook.local_run import LocalRun, output_of
from submarine_workflows.runs import RunFolder, Runs, RunView, Status, table_of, view_of

#: Seconds for a runner to start a run or fail; waiting for an earlier run and unpacking a project
#: take time.
PATIENCE = 120.0
_PAUSE = 0.1
_MAX_LOG_TEXT = 4000
#: Variables that refer to the kernel itself, or to the run that it belongs to.
_KERNEL_VARIABLES = (
    "JPY_",
    "PYDEVD_",
    "SUBMARINE_WORKFLOW",
    "SUBMARINE_HEADLESS",
    "SUBMARINE_YARN_TAGS",
)


def launch(words: Sequence[str], runs: Runs, frontend: Frontend, *, wait: bool) -> Outcome:
    """Start a run and show it; with ``wait``, return when it has ended.

    Parameters
    ----------
    words
        Arguments of ``submarine workflow run``.

    Raises
    ------
    RefusedError
        With the runner's message, if it did not start.
    """
    environment = {**_environment(os.environ), **frontend.environment}
    starting = runs.folder / ".starting"
    make_private(starting)
    log = starting / f"{secrets.token_hex(8)}.log"
    command = [*PROGRAM, "workflow", "run"]
    command += ["--runs", str(runs.folder), *words]
    began = time.time()
    with log.open("xb") as file:
        child = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    watcher.reap(child)
    run = _wait_for_start(child, runs, log, began)
    with suppress(OSError):
        log.replace(run.path / "runner.log")
    return show_run(run, frontend, wait=wait)


def show_run(run: RunFolder, frontend: Frontend, *, wait: bool = False) -> Outcome:
    """Show a run, updated while it runs if the front end supports it."""
    view = view_of(run)
    if not view.alive:
        bundle = output_of(view, frontend.command)
        html, text = bundle.pop("text/html"), bundle.pop("text/plain")
        return Outcome(text, html, view.to_json(), mime=bundle, exit_code=_exit_code(view, wait))
    update = frontend.add_output(output_of(view, frontend.command))
    look = watcher.watch(LocalRun(run, frontend.command), update) if update is not None else None
    if wait:
        try:
            while run.alive:
                time.sleep(_PAUSE)
        except KeyboardInterrupt:
            goes_on = _("{run} continues; `{command} workflow cancel {run}` ends it.").format(
                run=run.run, command=frontend.command
            )
            return Outcome(goes_on, value=view.to_json(), exit_code=INTERRUPTED)
        view = view_of(run)
        if look is not None:
            look()  # from the running cell: a headless executor accepts no other update
    text = "" if update is not None else table_of(view, time.time())
    return Outcome(text, value=view.to_json(), exit_code=_exit_code(view, wait))


def arguments_of(ctx: click.Context, file: Path | None, without: Sequence[str] = ()) -> list[str]:
    """Return the command-line arguments of a call, from click's parsed parameters.

    Parameters
    ----------
    file
        Replaces the argument ``file``.
    without
        Names of parameters to omit.
    """
    words: list[str] = []
    for param in ctx.command.params:
        name = param.name or ""
        value = ctx.params.get(name)
        source = ctx.get_parameter_source(name)
        if source is not ParameterSource.COMMANDLINE or name in without or name == "file":
            continue
        if isinstance(param, click.Option):
            words += _option(param, value)
    nodes = ctx.params.get("nodes", ())
    return [*words, "--", *([str(file)] if file is not None else []), *nodes]


def _option(param: click.Option, value: object) -> list[str]:
    option = param.opts[-1]
    if param.is_flag:
        return [option] if value else []
    words: list[str] = []
    for one in value if param.multiple and isinstance(value, tuple) else (value,):
        if isinstance(one, tuple):
            words += [option, *map(str, one)]
        elif one == "":
            words.append(option)  # an option with an optional value
        else:
            words.append(f"{option}={one:.12g}s" if isinstance(one, float) else f"{option}={one}")
    return words


def _exit_code(view: RunView, waited: bool) -> int:
    return JOB_FAILED if waited and view.status is not Status.SUCCEEDED else SUCCESS


def _wait_for_start(
    child: subprocess.Popen[bytes], runs: Runs, log: Path, began: float
) -> RunFolder:
    """Wait until this runner has started a run, and return it."""
    deadline = time.monotonic() + PATIENCE
    while True:
        code = child.poll()
        for run in runs.all():
            with suppress(SubmarineError, OSError):
                # Process ids are reused; file clocks may differ by a second.
                if run.journal.stat().st_mtime < began - 1:
                    continue
                if view_of(run).pid == child.pid:
                    return run
        if code is not None or time.monotonic() > deadline:
            words = _last_output(log)
            if code is None:
                words = words or _(
                    "The runner did not start in time; `history` shows later starts."
                )
            with suppress(OSError):
                log.unlink()
            raise RefusedError(
                words
                or _("The runner ended with code {code} and without output.").format(code=code)
            )
        time.sleep(_PAUSE)


def _last_output(log: Path) -> str:
    try:
        text = log.read_text(encoding="utf-8", errors="replace")[-_MAX_LOG_TEXT:]
    except OSError:
        return ""
    return printable(text.strip().removeprefix("submarine: "), _MAX_LOG_TEXT)


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the kernel's environment without variables about the kernel itself."""
    variables = {
        name: value for name, value in environ.items() if not name.startswith(_KERNEL_VARIABLES)
    }
    if variables.get("MPLBACKEND", "").startswith("module://"):
        del variables["MPLBACKEND"]  # set for the outputs of this kernel
    return variables
