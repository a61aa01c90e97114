"""``run NOTEBOOK.ipynb``: whether the notebook is a job or executed here, and what is asked for.

Its options are in ``run_notebook_options``. Who executes it is not the core: the packages above
bring a runner by an entry point.
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
from submarine_jobs.commands.run.notebook_options import OWN
from submarine_jobs.errors import SubmarineError, UsageError

if TYPE_CHECKING:
    from submarine_jobs.frontends import Frontend, Outcome

RUNNERS = "submarine.runners"
_SUFFIX = ".ipynb"
#: Options that mean something in both, by their parameters' names.
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
#: With nothing but these the notebook itself says which of both is meant.
_BARE = ("target", "program", "timeout", "profile", "backend", "as_json", "verbose")


@dataclass(frozen=True)
class NotebookRun:
    """A notebook that is to be executed here, from its first cell to its last.

    Attributes
    ----------
    notebook, output
        A path or a URL; of ``output`` None: a new name beside the notebook.
    parameters
        Names with values as they were typed, and whether the value is a text as it stands.
    parameter_files
        YAML files, a path or a URL each.
    cells
        Names of the cells to execute; none: all.
    job_options
        Options for each job of the notebook: a text, a list of texts, or True for a flag.
    run_id, on_interrupt, lease, timeout
        See ``submarine_jobs.model.headless_settings.Headless``; None or empty: not said.
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
    """The execution that the words ask for; None where they ask for a job.

    Raises
    ------
    UsageError
        If options of both stand side by side, or one that wants a notebook stands without one.
    """
    given = _given(ctx)
    named = typed["program"] or typed["target"] or ""
    own = [name for name in OWN if name in given]
    is_notebook = named.lower().split("?")[0].endswith(_SUFFIX)
    if not is_notebook:
        if own:
            raise UsageError(
                f"{_spelling(ctx, own[0])} is for executing a notebook, and none is named.",
                "Write for example submarine run train.ipynb -p date 2026-11-22.",
            )
        return None
    bare = given.issubset(_BARE) and not ctx.meta["program_args"]
    if not own and not (bare and ("://" in named or _starts_jobs(Path(named).expanduser()))):
        return None
    _refuse_others(ctx, given)
    return _request(named, typed, given)


def _given(ctx: click.Context) -> set[str]:
    """Names of the parameters that were typed."""
    source = click.core.ParameterSource.COMMANDLINE
    return {name for name in ctx.params if ctx.get_parameter_source(name) is source}


def _refuse_others(ctx: click.Context, given: set[str]) -> None:
    others = sorted(given.difference(OWN, _SHARED))
    if ctx.meta["program_args"]:
        raise UsageError(
            "A notebook that is executed takes no arguments after --.",
            "Give it parameters: -p NAME VALUE.",
        )
    if others:
        name = _spelling(ctx, others[0])
        raise UsageError(
            f"{name} is an option of a job, and the notebook is executed here.",
            f"For the jobs that its cells start write --job {name.lstrip('-')}=VALUE.",
        )


def _spelling(ctx: click.Context, name: str) -> str:
    param = next(param for param in ctx.command.params if param.name == name)
    return next((word for word in param.opts if word.startswith("--")), param.opts[0])


def _starts_jobs(path: Path) -> bool:
    """Whether cells of the notebook have ``%submarine run`` in them; cheap, and never raises."""
    try:
        document = program.read_notebook(path)
    except program.NotebookError:
        return False  # whoever wants to run it says what is wrong
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
    """What a kernelspec's defaults are too: true and false of flags, lists of what repeats."""
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
    """Have the notebook executed by the runner that is installed.

    Raises
    ------
    SubmarineError
        If there is none, or whatever the runner raises.
    """
    # cost: importlib.metadata (5 ms), which a job does not need.
    from importlib.metadata import entry_points

    if frontend.kind not in ("cli", "python"):
        raise UsageError(
            "A notebook is executed from a command line, not from within a notebook.",
            f"In a terminal: submarine run {printable(request.notebook, 200)}.",
        )
    runner = next(iter(entry_points(group=RUNNERS, name="notebook")), None)
    if runner is None:
        raise SubmarineError(
            "Nothing that executes notebooks is installed.", "Install the package again."
        )
    outcome: Outcome = runner.load()(request, frontend)
    return outcome


def of_a_job(ctx: click.Context, typed: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a job among those of ``run``.

    Raises
    ------
    UsageError
        If one is for executing a notebook.
    """
    given = _given(ctx)
    for name in OWN:
        if name in given:
            raise UsageError(
                f"{_spelling(ctx, name)} is for executing a notebook, which a job is not."
            )
    return {name: value for name, value in typed.items() if name not in OWN}
