"""A workflow is run from a notebook: by a process of its own, which outlives the kernel.

What that process does is ``submarine workflow run``; how it is shown is ``watching``.
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
from submarine_workflows.local import PROGRAM
from submarine_workflows.notebook.live_display import watcher
from submarine_workflows.notebook.local_run import LocalRun, picture_of
from submarine_workflows.runs import RunFolder, Runs, RunView, Status, table_of, view_of

#: Seconds within which a runner has begun its run or said why not; following an earlier run and
#: unpacking a project take their time.
PATIENCE = 120.0
_PAUSE = 0.1
_MOST_SAID = 4000
#: What a kernel's environment says about the kernel itself, or about the run that it is part of.
_OURS = ("JPY_", "PYDEVD_", "SUBMARINE_WORKFLOW", "SUBMARINE_HEADLESS", "SUBMARINE_YARN_TAGS")


def launch(words: Sequence[str], runs: Runs, frontend: Frontend, *, wait: bool) -> Outcome:
    """Start a run and show it; ``wait``: return when it has ended.

    Parameters
    ----------
    words
        What stands after ``submarine workflow run``.

    Raises
    ------
    RefusedError
        With what the runner said, if it did not begin.
    """
    starting = runs.folder / ".starting"
    make_private(starting)
    said = starting / f"{secrets.token_hex(8)}.log"
    command = [*PROGRAM, "workflow", "run"]
    command += ["--runs", str(runs.folder), *words]
    began = time.time()
    with said.open("xb") as file:
        child = subprocess.Popen(
            command,
            env={**_environment(os.environ), **frontend.environment},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    watcher.adopt(child)
    run = _begun(child, runs, said, began)
    with suppress(OSError):
        said.replace(run.path / "runner.log")
    return show_run(run, frontend, wait=wait)


def show_run(run: RunFolder, frontend: Frontend, *, wait: bool = False) -> Outcome:
    """Show a run, renewed for as long as it goes on where outputs can be."""
    view = view_of(run)
    if not view.alive:
        bundle = picture_of(view, frontend.command)
        html, text = bundle.pop("text/html"), bundle.pop("text/plain")
        return Outcome(text, html, view.to_json(), mime=bundle, exit_code=_code(view, wait))
    update = frontend.picture(picture_of(view, frontend.command))
    look = watcher.watch(LocalRun(run, frontend.command), update) if update is not None else None
    if wait:
        try:
            while run.alive:
                time.sleep(_PAUSE)
        except KeyboardInterrupt:
            goes_on = f"{run.run} goes on; `{frontend.command} workflow cancel {run.run}` ends it."
            return Outcome(goes_on, value=view.to_json(), exit_code=INTERRUPTED)
        view = view_of(run)
        if look is not None:
            look()  # from the cell that runs: a headless executor takes no other update
    text = "" if update is not None else table_of(view, time.time())
    return Outcome(text, value=view.to_json(), exit_code=_code(view, wait))


def words_of(ctx: click.Context, file: Path | None, without: Sequence[str] = ()) -> list[str]:
    """The words by which a verb was called, from what click made of them.

    Parameters
    ----------
    file
        What takes the place of the argument ``file``.
    without
        Names of parameters that are left out.
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
            words.append(option)  # its value may be left out
        else:
            words.append(f"{option}={one:.12g}s" if isinstance(one, float) else f"{option}={one}")
    return words


def _code(view: RunView, waited: bool) -> int:
    return JOB_FAILED if waited and view.status is not Status.SUCCEEDED else SUCCESS


def _begun(child: subprocess.Popen[bytes], runs: Runs, said: Path, began: float) -> RunFolder:
    """The run that this runner has begun, once it has."""
    deadline = time.monotonic() + PATIENCE
    while True:
        code = child.poll()
        for run in runs.all():
            with suppress(SubmarineError, OSError):
                # A number of a process comes again; a second is what clocks of files may differ.
                if run.journal.stat().st_mtime < began - 1:
                    continue
                if view_of(run).pid == child.pid:
                    return run
        if code is not None or time.monotonic() > deadline:
            words = _words(said)
            if code is None:
                words = words or "The runner has not begun in time; history shows whether it does."
            with suppress(OSError):
                said.unlink()
            raise RefusedError(words or f"The runner ended with code {code}, and said nothing.")
        time.sleep(_PAUSE)


def _words(said: Path) -> str:
    try:
        text = said.read_text(encoding="utf-8", errors="replace")[-_MOST_SAID:]
    except OSError:
        return ""
    return printable(text.strip().removeprefix("submarine: "), _MOST_SAID)


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The kernel's, without what is about the kernel alone."""
    kept = {name: value for name, value in environ.items() if not name.startswith(_OURS)}
    if kept.get("MPLBACKEND", "").startswith("module://"):
        del kept["MPLBACKEND"]  # that of this kernel's outputs
    return kept
