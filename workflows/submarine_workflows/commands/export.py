"""``submarine workflow export``, ``holds`` and ``with-values``.

``submarine_workflows.export`` creates the exported files.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import click

from submarine_jobs.commands import execute
from submarine_jobs.commands.grammar import CONTEXT, Verb, option
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import JOB_FAILED, Frontend, Outcome
from submarine_runtime.files import replace_file
from submarine_runtime.translation import _
from submarine_workflows.azkaban.project import VERB, with_values as replaced
from submarine_workflows.commands.arguments import WORKFLOW_FILE, load_workflow
from submarine_workflows.export import TARGETS, Export, ExportOptions
from submarine_workflows.model import ConditionError, ConditionInputs, read_condition

_MAX_OUTPUT = 1 << 20


@click.command(
    cls=Verb,
    example=(
        "workflow export nightly.flow --to airflow -o ~/airflow/dags",
        "workflow export nightly.flow --to azkaban -o nightly.zip",
        "workflow export nightly.flow --to cron --notify 'mail-us --urgent'",
    ),
)
@click.argument("file", type=WORKFLOW_FILE)
@option(
    "--to", "target", required=True, type=click.Choice(sorted(TARGETS)), help="Target scheduler."
)
@option(
    "-o",
    "--output",
    "place",
    type=click.Path(path_type=Path),
    help="Folder to write to, or the file if there is only one [print it].",
)
@option(
    "--program",
    default="",
    metavar="COMMAND",
    help="Command that calls submarine on the target [submarine; for cron its path here].",
)
@option("--outputs", default="", metavar="URL", help="Location of executed notebooks.")
@option(
    "--include",
    "also",
    multiple=True,
    metavar="PATTERN",
    help="Further files to include, lib/*.py. Repeatable.",
)
@option("--notify", default="", metavar="COMMAND", help="Command to call on failure (cron).")
def export(
    file: Path,
    target: str,
    place: Path | None,
    program: str,
    outputs: str,
    also: tuple[str, ...],
    notify: str,
) -> Outcome:
    """Write the workflow in FILE for Airflow, cron or Azkaban.

    Airflow gets a DAG file and a folder with the notebooks, Azkaban a project's zip, cron a line
    for a crontab.
    """
    workflow = load_workflow(file)
    options = ExportOptions(file, _words(program), outputs, also, notify)
    exported = TARGETS[target](workflow, options)
    return _write_export(exported, place)


@click.command(
    cls=Verb,
    example=("workflow holds '${train:accuracy} > 0.9' --output 'train={\"accuracy\": 0.93}'",),
)
@click.argument("condition")
@option(
    "--output",
    "outputs",
    multiple=True,
    metavar="NODE=JSON",
    help="Output of a node. Repeatable.",
)
def holds(condition: str, outputs: tuple[str, ...]) -> Outcome:
    """Evaluate CONDITION on outputs of nodes: exit code 0 if it holds, else 1."""
    true = condition_holds(condition, outputs)
    text = f"{condition}: {'holds' if true else _('does not hold')}."
    return Outcome(text, value={"holds": true}, exit_code=0 if true else JOB_FAILED)


@click.command(
    VERB,
    cls=Verb,
    context_settings={**CONTEXT, "ignore_unknown_options": True, "allow_interspersed_args": False},
    example=("workflow with-values run fit.ipynb -p date @SUBMARINE_VALUE_1",),
)
@click.argument("words", metavar="COMMAND", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_obj
def with_values(frontend: Frontend, /, words: tuple[str, ...]) -> Outcome:
    """Run COMMAND, replacing each word @NAME by the value of the variable NAME.

    Azkaban projects run notebooks in this way: a value entered on Azkaban's page stays one word,
    whatever it contains.
    """
    return execute(replaced(words, os.environ), frontend)


def _words(program: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(program))
    except ValueError as exc:
        raise UsageError(
            _("--program {program!r} cannot be parsed: {error}.").format(program=program, error=exc)
        ) from None
    return words


def _write_export(exported: Export, place: Path | None) -> Outcome:
    if place is None and any(name.endswith(".zip") for name in exported.files):
        place = Path()  # nothing to print
    if place is None:
        if len(exported.files) > 1:
            raise UsageError(
                _("The export has {count} files.").format(count=len(exported.files)),
                _("Give a folder: -o FOLDER."),
            )
        (data,) = exported.files.values()
        return Outcome(data.decode().rstrip("\n"), value={"text": data.decode()})
    alone = len(exported.files) == 1 and not place.is_dir()
    if not alone and (place.is_file() or place.suffix == ".py"):
        raise UsageError(
            _("The export has {count} files, and {place} is not a folder.").format(
                count=len(exported.files), place=place
            ),
            _("Give a folder: -o FOLDER."),
        )
    for name, data in exported.files.items():
        _write(place if alone else place / PurePosixPath(name), data)
    written = [str(place)] if alone else [str(place / name) for name in exported.files]
    return Outcome("\n".join([*written, exported.usage]), value={"files": written})


def _write(path: Path, data: bytes) -> None:
    """Write atomically: a scheduler may read the file at any time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, data, mode=0o644)
    except OSError as exc:
        raise UsageError(
            _("{path} cannot be written: {strerror}.").format(path=path, strerror=exc.strerror)
        ) from None


def condition_holds(condition: str, outputs: Iterable[str]) -> bool:
    """Return whether ``condition`` holds for the outputs of earlier nodes.

    Parameters
    ----------
    outputs
        ``NODE={"accuracy": 0.93}`` for each node; empty after ``=`` if the node has no output.

    Raises
    ------
    UsageError
        If the condition or an output cannot be parsed.
    """
    try:
        read = read_condition(condition)
    except ConditionError as exc:
        raise UsageError(str(exc)) from None
    found = dict(_output(text) for text in outputs)
    return read.holds(ConditionInputs((True,), found))


def _output(text: str) -> tuple[str, dict[str, object]]:
    node, sign, value = text.partition("=")
    if not sign or not node or len(value) > _MAX_OUTPUT:
        raise UsageError(
            _("--output {text!r} is not an output of a node.").format(text=text[:60]),
            _('Write NODE={"name": value}.'),
        )
    if not value.strip():
        return node, {}
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise UsageError(
            _("The output of {node} is not a JSON object: {value!r}.").format(
                node=node, value=value[:60]
            ),
            _("A node writes it to $JOB_OUTPUT_PROP_FILE."),
        )
    return node, found
