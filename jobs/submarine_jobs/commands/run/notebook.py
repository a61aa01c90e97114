"""``run NOTEBOOK.ipynb``: submit the notebook as a job, or execute it in this process.

The options are in ``notebook_options``. Another package provides the runner by an entry point.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from submarine_jobs import program
from submarine_jobs.commands.grammar import normal, printable
from submarine_jobs.commands.run.notebook_options import notebook_parameters
from submarine_jobs.errors import SubmarineError, UsageError
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.frontends import Frontend, Outcome

RUNNERS = "submarine.runners"
_SUFFIX = ".ipynb"
#: Parameters of options that apply to both.
_SHARED = (
    "target",
    "program",
    "timeout",
    "profile",
    "backend",
    "as_json",
    "verbose",
    "return_names",
    "on_interrupt",
    "wait",
)
#: If only these are given, the content of the notebook decides between both.
_BARE = ("target", "program", "timeout", "profile", "backend", "as_json", "verbose")


@dataclass(frozen=True)
class NotebookRun:
    """The execution of a notebook in this process.

    Attributes
    ----------
    notebook, output
        A path or a URL; ``output`` None: a new file in the notebook's directory.
    parameters
        Name, typed value, and whether the value is always text.
    parameter_files
        Paths or URLs of YAML files.
    cells
        Names of the cells to execute; none: all.
    job_options
        Options for each job of the notebook: a text, a list of texts, or True for a flag.
    run_id, on_interrupt, lease, timeout
        See ``submarine_jobs.model.headless_settings.Headless``; None or empty: not set.
    """

    notebook: str
    output: str | None = None
    parameters: tuple[tuple[str, str, bool], ...] = ()
    parameter_files: tuple[str, ...] = ()
    kernel: str | None = None
    cells: tuple[str, ...] = ()
    job_options: Mapping[str, Any] = field(default_factory=dict)
    return_names: tuple[str, ...] = ()
    run_id: str = ""
    on_interrupt: str | None = None
    lease: float | None = None
    timeout: float | None = None
    notify: str | None = None
    profile: str | None = None
    backend: str | None = None
    verbose: bool = False


def notebook_run(ctx: click.Context, typed: Mapping[str, Any]) -> NotebookRun | None:
    """Return the execution that the options describe; None if they describe a job.

    Raises
    ------
    UsageError
        If options of both are given, or options of an execution without a notebook.
    """
    given = _given(ctx)
    named = typed["program"] or typed["target"] or ""
    own = [name for name in notebook_parameters(ctx.command) if name in given]
    is_notebook = named.lower().split("?")[0].endswith(_SUFFIX)
    if not is_notebook:
        if own:
            raise UsageError(
                _("{option} is for executing a notebook, and none is named.").format(
                    option=_spelling(ctx, own[0])
                ),
                _("Write for example submarine run train.ipynb -p date 2026-11-22."),
            )
        return None
    bare = given.issubset(_BARE) and not ctx.meta["program_args"]
    if not own and not (bare and ("://" in named or _starts_jobs(Path(named).expanduser()))):
        return None
    _refuse_others(ctx, given)
    return _request(named, typed, given)


def _given(ctx: click.Context) -> set[str]:
    """Return the names of the parameters that were typed."""
    source = click.core.ParameterSource.COMMANDLINE
    return {name for name in ctx.params if ctx.get_parameter_source(name) is source}


def _refuse_others(ctx: click.Context, given: set[str]) -> None:
    others = sorted(given.difference(notebook_parameters(ctx.command), _SHARED))
    if ctx.meta["program_args"]:
        raise UsageError(
            _("A notebook that is executed takes no arguments after --."),
            _("Give it parameters: -p NAME VALUE."),
        )
    if others:
        name = _spelling(ctx, others[0])
        raise UsageError(
            _("{name} is an option of a job, and the notebook is executed here.").format(name=name),
            _("For the jobs that its cells start write --job {name}=VALUE.").format(
                name=name.lstrip("-")
            ),
        )


def _spelling(ctx: click.Context, name: str) -> str:
    param = next(param for param in ctx.command.params if param.name == name)
    return next((word for word in param.opts if word.startswith("--")), param.opts[0])


def _starts_jobs(path: Path) -> bool:
    """Return whether cells of the notebook contain ``%submarine run``; False on an error."""
    try:
        document = program.read_notebook(path)
    except program.NotebookError:
        return False  # running the notebook reports the error
    return any(program.starts_job(cell.source) for cell in document.cells)


def _request(named: str, typed: Mapping[str, Any], given: set[str]) -> NotebookRun:
    pairs = [(name, value, False) for name, value in typed["parameters"]]
    pairs += [(name, value, True) for name, value in typed["raw_parameters"]]
    names = (name for words in typed["return_names"] for name in words)
    return NotebookRun(
        notebook=named,
        output=typed["output"],
        parameters=tuple(pairs),
        parameter_files=tuple(typed["parameter_files"]),
        kernel=typed["kernel"],
        cells=typed["cells"] or (),
        job_options=_job_options(typed["job_pairs"]),
        return_names=tuple(dict.fromkeys(names)),
        run_id=typed["run_id"] or "",
        on_interrupt=typed["on_interrupt"] if "on_interrupt" in given else None,
        lease=typed["lease"],
        timeout=typed["timeout"],
        notify=typed["notify"],
        profile=typed["profile"],
        backend=typed["backend"],
        verbose=typed["verbose"],
    )


def _job_options(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return options as in a kernelspec: booleans of flags, lists of repeated options."""
    found: dict[str, Any] = {}
    for key, text in pairs:
        key = normal(key)
        value: Any = json.loads(text) if text in ("true", "false") else text
        if key in found:
            before = found[key] if isinstance(found[key], list) else [found[key]]
            value = [*before, value]
        found[key] = value
    return found


def execute_notebook(request: NotebookRun, frontend: Frontend) -> Outcome:
    """Execute the notebook by the installed runner.

    Raises
    ------
    SubmarineError
        If no runner is installed, or if the runner raises it.
    """
    # cost: importlib.metadata (5 ms), which a job does not need.
    from importlib.metadata import entry_points

    if frontend.kind not in ("cli", "python"):
        raise UsageError(
            _("A notebook is executed from a command line, not from within a notebook."),
            _("In a terminal: submarine run {notebook}.").format(
                notebook=printable(request.notebook, 200)
            ),
        )
    runner = next(iter(entry_points(group=RUNNERS, name="notebook")), None)
    if runner is None:
        raise SubmarineError(
            _("Nothing that executes notebooks is installed."), _("Install the package again.")
        )
    outcome: Outcome = runner.load()(request, frontend)
    return outcome


def job_options(ctx: click.Context, typed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a job among those of ``run``.

    Raises
    ------
    UsageError
        If an option of an execution is given.
    """
    given = _given(ctx)
    own = notebook_parameters(ctx.command)
    for name in own:
        if name in given:
            raise UsageError(
                _("{option} is for executing a notebook, which a job is not.").format(
                    option=_spelling(ctx, name)
                )
            )
    return {name: value for name, value in typed.items() if name not in own}
