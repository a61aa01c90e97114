"""``predict``: a job that applies a function to the rows of an input and writes Parquet."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click
from click.core import ParameterSource

from submarine_jobs.commands import predict as predict_parts
from submarine_jobs.commands.grammar import (
    Callback,
    CellBody,
    CellVerb,
    ParsedType,
    complete_jobs,
    option,
)
from submarine_jobs.commands.run import options_of, run_job, run_option, together
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import JOB_FAILED, Frontend, Outcome
from submarine_jobs.model import NamedInput, NamedOutput, in_workflow_node
from submarine_jobs.options import (
    RUN_OPTIONS,
    RunOptions,
    count,
    format_input,
    parse_input,
    parse_save_output,
)
from submarine_runtime.protocol import APPEND_RUN
from submarine_runtime.translation import _, gettext_noop

#: Name of the output in the job.
OUTPUT = "predictions"
#: Options of ``run`` that a prediction has too, in the order of the help.
_OF_RUN = (
    *("name", "program", "worker", "memory", "vcores", "gpus", "worker_resources"),
    *("worker_docker_image", "timeout"),
    *("gang_timeout", "gang_retries", "max_restarts", "heartbeat", "lost_after"),
    *("params", "files", "archives", "localization", "with_names"),
    *("python_env", "docker_image", "env", "secrets"),
    *("queue", "keytab", "principal", "distribute_keytab", "share", "priority"),
    *("node_label", "nodes", "racks", "spread", "avoid_nodes", "network_interface"),
    "gpu_topology",
    *("profile", "backend", "settings", "quicklinks"),
    *("wait", "on_interrupt", "dry_run", "force", "verbose"),
)
#: Formats of ``submarine_data`` and of batches; a test compares them.
FORMATS = (
    *("parquet", "orc", "csv", "text", "sequencefile", "tfrecord", "avro", "lmdb", "images"),
)
BATCH_FORMATS = ("numpy", "arrow", "pandas")
_SIZE = re.compile(r"(\d{1,12})([kmg]?)(?:i?b)?", re.IGNORECASE | re.ASCII)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def _parse_size(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    size = int(match[1]) * _UNITS[match[2].lower()] if match else 0
    if not size:
        raise UsageError(
            _("{text!r} is not a size.").format(text=text[:40]),
            _("Write for example 64M, 512k or 1G."),
        )
    return size


def _parse_columns(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(","))
    if names == ("",):
        return ()
    if not all(names):
        raise UsageError(
            _("{text!r} has an empty name of a column.").format(text=text[:60]),
            _("Write for example id,label."),
        )
    return names


def _parse_output(text: str) -> NamedOutput:
    """Parse ``URI[:overwrite|append-run][:stream]``."""
    try:
        found = parse_save_output(f"{OUTPUT}={text}")
    except UsageError as error:
        raise _renamed(error) from None
    return found if found.stream else replace(found, parts=True)


def _parse_input(text: str) -> tuple[NamedInput, bool]:
    """Return an input, and whether its mode is written."""
    found = parse_input(text)
    return found, found.mode != "download" or format_input(found) != text


def _renamed(error: UsageError) -> UsageError:
    """Return an error about ``--save-output`` as one about ``--output``."""

    def words(text: str) -> str:
        for before in (f"--save-output {OUTPUT}=", f"--save-output '{OUTPUT}="):
            text = text.replace(before, "--output '" if "'" in before else "--output ")
        return text.replace(f"--save-output {OUTPUT}", "--output").replace("NAME=URI", "URI")

    if "--save-output" not in f"{error.message}{error.fix}":
        return error
    return type(error)(words(error.message), words(error.fix or ""))


def _columns_option(name: str, parameter: str, help: str) -> Callable[[Callback], Callback]:
    return option(
        name,
        parameter,
        type=ParsedType("columns", _parse_columns),
        multiple=True,
        metavar="COLUMNS",
        heading="Prediction",
        help=help,
    )


_HEADINGS = {
    "name": "Program",
    "worker": "Size",
    "gang_timeout": "Gang and faults",
    "params": "Data",
    "python_env": "Environment",
    "queue": "Cluster",
    "wait": "Flow",
}


def _run_options() -> Callable[[Callback], Callback]:
    decorators, heading = [], ""
    for parameter in _OF_RUN:
        heading = _HEADINGS.get(parameter, heading)
        changes: dict[str, Any] = {"heading": heading}
        if parameter == "program":
            changes["help"] = gettext_noop("File with the functions [the cell; predict.py].")
        if parameter == "name":
            changes["help"] = gettext_noop("Name of the job [predict].")
        decorators.append(run_option(parameter, **changes))
    return together(decorators)


@click.command(
    "predict",
    cls=CellVerb,
    example=(
        "predict digits@best --input x=hdfs:///data/digits --output hdfs:///data/scores \\",
        "      --keys id --worker 8 --program score.py",
        "predict hdfs:///models/digits/7 --input x=data:digits-test \\",
        "      --output hdfs:///tmp/test:overwrite --program score.py",
        "predict digits@best --input x=hdfs:///data/images --output hdfs:///features \\",
        "      --format tfrecord --batch-size 256 --gpu 1 --program features.py",
    ),
)
@click.argument(
    "model", metavar="[JOB | JOB@VERSION | URI]", required=False, shell_complete=complete_jobs
)
@option(
    "--input",
    "inputs",
    type=ParsedType("input", _parse_input, prefix=False),
    multiple=True,
    required=True,
    metavar="NAME=URI[:MODE]",
    heading="Prediction",
    help="The data; each further input is data of the program, as for run; repeatable.",
)
@option(
    "--output",
    type=ParsedType("output", _parse_output, prefix=False),
    metavar="URI[:MODE]",
    required=True,
    heading="Prediction",
    help="New directory for the results; MODE: overwrite, append-run, stream.",
)
@_columns_option("--columns", "columns", "Columns that predict receives: a,b [all].")
@_columns_option(
    "--keys", "keys", "Columns that the output has too: id,label; '' for none [all that are read]."
)
@option(
    "--batch-size",
    type=ParsedType("number", count("The number of rows", 1).parse),
    metavar="N",
    heading="Prediction",
    help="Rows of a batch [1024].",
)
@option(
    "--batch-format",
    type=click.Choice(BATCH_FORMATS),
    default="numpy",
    heading="Prediction",
    help="What predict receives: arrays by column, an Arrow batch, or a DataFrame [numpy].",
)
@option(
    "--format",
    "data_format",
    type=click.Choice(FORMATS),
    heading="Prediction",
    help="Format of the data [by the names of the files].",
)
@option(
    "--part-size",
    type=ParsedType("size", _parse_size),
    metavar="SIZE",
    heading="Prediction",
    help="Input of a part, the unit that a restart repeats: 64M, 512k [1M to 64M].",
)
@_run_options()
@click.pass_context
def predict(ctx: click.Context, /, **typed: Any) -> Outcome:
    """Apply a function to all rows of an input, and write the results as Parquet.

    The function predict(batch) is that of the cell below %%submarine predict, of the collected
    cells with --file predict.py, or of --program. The workers divide the input. A worker that is
    started again continues after the parts that are stored. With a function evaluate(batch,
    result) the job has metrics.
    """
    frontend = ctx.find_object(Frontend) or Frontend()
    if ctx.get_parameter_source("on_interrupt") is ParameterSource.DEFAULT and in_workflow_node():
        typed["on_interrupt"] = "cancel"  # As in `run`.
    chosen = {
        name: typed.pop(name)
        for name in (
            *("model", "inputs", "output", "columns", "keys"),
            *("batch_size", "batch_format", "data_format", "part_size"),
        )
    }
    others = {name: None for name in RUN_OPTIONS if name not in typed}
    none = {"target": None, **others, "roles": (), "tensorboard": False}
    return _predict(options_of({**none, **typed}, ()), chosen, frontend, CellBody.given(ctx))


def _predict(
    base: RunOptions, chosen: dict[str, Any], frontend: Frontend, body: CellBody | None
) -> Outcome:
    (data, has_mode), *rest = dict.fromkeys(chosen["inputs"])
    data, others = _data_input(data, has_mode=has_mode), [item for item, _mode in rest]
    for item in (data, *others):
        predict_parts.check_name(item.name)
    functions = predict_parts.functions_of(base, frontend, body)
    warnings = predict_parts.check_functions(functions, model=bool(chosen["model"]))
    session = frontend.session(frontend.config(base.config_options))
    storage, _root = session.backend().job_root()
    if data.mode == "mount":
        data = replace(data, uri=predict_parts.with_scheme(data.uri, storage))
    inputs, output = [data, *others], chosen["output"]
    target = storage.path_of(output.uri)
    if text := chosen["model"]:
        model = predict_parts.model_input(text, session, frontend, yes=base.force)
        if model is None:
            return Outcome(_("Nothing was submitted."), value=None, exit_code=JOB_FAILED)
        inputs.append(model)
    for sentence in warnings:
        frontend.say(_("warning: {text}").format(text=sentence))
    settings = {
        "input": data.name,
        "output": OUTPUT,
        # The submission refuses a URI of another file system.
        "uri": output.uri if target is None else predict_parts.uri_in_job(storage, target),
        "append_run": output.mode == APPEND_RUN,
        "stream": output.stream,
        "model": "MODEL" if text else "",
        "columns": _listed(chosen["columns"]),
        "keys": _listed(chosen["keys"]),
        "batch_size": chosen["batch_size"] or 1024,
        "batch_format": chosen["batch_format"],
        "format": chosen["data_format"],
        "part_size": chosen["part_size"] or 0,
    }
    options = replace(
        base,
        name=base.name or "predict",
        inputs=tuple(inputs),
        outputs=(output,),
        framework="any",
        return_names=(predict_parts.RESULT,),
    )
    try:
        return run_job(options, frontend, lambda: predict_parts.with_call(functions, settings))
    except UsageError as error:
        raise _renamed(error) from None


def _data_input(item: NamedInput, *, has_mode: bool) -> NamedInput:
    """Return the input of the data: it is not fetched unless its mode says so."""
    if item.shard:
        raise UsageError(
            _("--input {name}: :{mode} divides the files, and predict divides them itself.").format(
                name=item.name, mode=item.word
            ),
            _("Leave the mode out."),
        )
    return item if has_mode else replace(item, mode="mount")


def _listed(given: tuple[tuple[str, ...], ...]) -> list[str] | None:
    """Return the names of a repeatable option; None if it is not given."""
    if not given:
        return None
    return list(dict.fromkeys(name for names in given for name in names))
