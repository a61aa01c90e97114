"""``data put|list|show|rm``: named datasets in the job root."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from submarine_jobs.commands.grammar import (
    Verb,
    backend_option,
    option,
    profile_option,
    verb_group,
)
from submarine_jobs.datasets import DatasetStore, put_value
from submarine_jobs.display import (
    TABLE_MIME_TYPE,
    columns,
    sample_table,
    zeppelin_table,
)
from submarine_jobs.errors import SubmarineError, UsageError
from submarine_jobs.frontends import Frontend, Outcome, SubmitProgress
from submarine_jobs.outputs import unpack_values
from submarine_jobs.text import duration, escape_html_line, one_line, size, timestamp
from submarine_runtime.translation import _, gettext_noop

if TYPE_CHECKING:
    from submarine_jobs.client import Session
    from submarine_jobs.datasets import Dataset
    from submarine_jobs.model import JobSpec

_COLUMNS = (
    gettext_noop("NAME"),
    gettext_noop("SIZE"),
    gettext_noop("FILES"),
    gettext_noop("ROWS"),
    gettext_noop("SOURCE"),
    gettext_noop("AGE"),
    gettext_noop("SHA256"),
)
#: Characters of a digest in a table; `data show` shows the whole one.
_SHORT = 12
#: Maximum number of columns of a dataset that are listed.
_MAX_SCHEMA = 50
#: Maximum number of jobs that are examined before data is removed.
_MAX_JOBS = 1000


@verb_group(
    {
        gettext_noop("Data for jobs"): {
            "put": gettext_noop("Store a frame, arrays or files under a name."),
            "list": gettext_noop("List your datasets with size and age."),
            "show": gettext_noop("Show size, schema and a sample of a dataset."),
            "rm": gettext_noop("Remove a dataset that no running job uses."),
        }
    }
)
def data() -> None:
    """Store data in the job root under a name, for `run --input NAME=data:DATASET`.

    The same content is uploaded once.
    """


def _complete_files(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


@data.command(
    cls=Verb,
    example=(
        "data put digits digits.npz",
        "data put digits-train train/",
        "data put digits digits.npz --replace",
    ),
)
@click.argument("name", metavar="NAME")
@click.argument(
    "values",
    metavar="VALUE | FILE...",
    nargs=-1,
    required=True,
    shell_complete=_complete_files,
)
@option("--replace", is_flag=True, help="Give NAME to this data if it belongs to other data.")
@profile_option
@backend_option
@click.pass_obj
def put(
    frontend: Frontend,
    /,
    name: str,
    values: tuple[str, ...],
    replace: bool,
    profile: str | None,
    backend: str | None,
) -> Outcome:
    """Store data as NAME: a variable of the notebook, or files and directories.

    A pandas or Spark DataFrame and an Arrow table are stored as Parquet, a NumPy array as .npy, a
    dict of arrays as .npz, and files as they are. The same content is uploaded once.
    """
    session = frontend.session(frontend.config({"profile": profile, "backend": backend}))
    store = session.datasets()
    value = _value(frontend, values)
    with SubmitProgress(frontend) as line:
        step = _("Uploading {name}").format(name=one_line(name, 64))
        result = put_value(
            store, name, value, lambda done, total: line.show(step, done, total), replaces=replace
        )
    dataset = result.dataset
    head = (
        _("{name} is stored: {size} in {uri}.")
        if result.uploaded
        else _("{name} is stored: {size} in {uri}. The cluster had this content already.")
    ).format(name=dataset.name, size=size(dataset.size), uri=dataset.uri)
    return _shown(dataset, head, {**dataset.facts(), "uploaded": result.uploaded})


@data.command("list", cls=Verb, example=("data list", "data list --json"))
@profile_option
@backend_option
@click.pass_obj
def list_(frontend: Frontend, /, profile: str | None, backend: str | None) -> Outcome:
    """List your datasets, and content without a name: that of frames, and of replaced names."""
    session = frontend.session(frontend.config({"profile": profile, "backend": backend}))
    store = session.datasets()
    named = store.names()
    found = [*named, *store.unnamed(named)]
    value = [dataset.facts() for dataset in found]
    if not found:
        text = _("There are no datasets.\n  {command} data put NAME VALUE").format(
            command=frontend.command
        )
        return Outcome(text, value=value)
    rows = [_row(dataset) for dataset in found]
    total = sum({one.digest: one.size for one in found}.values())
    note = _("{size} in total. {command} data rm removes a name or a digest.").format(
        size=size(total), command=frontend.command
    )
    return Outcome(columns.text(_COLUMNS, rows, note), columns.html(_COLUMNS, rows, note), value)


@data.command(cls=Verb, example=("data show digits", "data show digits --json"))
@click.argument("name", metavar="NAME")
@profile_option
@backend_option
@click.pass_obj
def show(frontend: Frontend, /, name: str, profile: str | None, backend: str | None) -> Outcome:
    """Show size, schema and a sample of a dataset; NAME may be the beginning of its digest."""
    session = frontend.session(frontend.config({"profile": profile, "backend": backend}))
    dataset = session.datasets().find(name)
    head = _("{name}: {size} in {uri}.").format(
        name=dataset.name or dataset.digest[:_SHORT], size=size(dataset.size), uri=dataset.uri
    )
    return _shown(dataset, head, dataset.facts())


@data.command(
    cls=Verb, example=("data rm digits", "data rm 5d41402abc4b", "data rm digits --force")
)
@click.argument("name", metavar="NAME")
@option("--force", is_flag=True, help="Remove data that running jobs may still read.")
@profile_option
@backend_option
@click.pass_obj
def rm(
    frontend: Frontend,
    /,
    name: str,
    force: bool,
    profile: str | None,
    backend: str | None,
) -> Outcome:
    """Remove a dataset; NAME may be the beginning of its digest.

    Its content is removed with its last name. While a running job uses it this is refused.
    """
    session = frontend.session(frontend.config({"profile": profile, "backend": backend}))
    store = session.datasets()
    dataset = store.find(name)
    label = dataset.name or dataset.digest[:_SHORT]
    others = store.others(dataset)
    if dataset.name == "" and others:
        raise UsageError(
            _("The content {label} has the name {names}.").format(
                label=label, names=", ".join(others)
            ),
            _("Remove the names."),
        )
    if not others and not force:
        _check_unused(session, store, dataset, label)
    freed = store.remove(dataset)
    text = (
        _("{label} is removed; {size} are free.").format(label=label, size=size(freed))
        if freed or not others
        else _("The name {label} is removed; its content belongs to {names} too.").format(
            label=label, names=", ".join(others)
        )
    )
    return Outcome(text, value={"name": dataset.name, "digest": dataset.digest, "freed": freed})


def _value(frontend: Frontend, words: tuple[str, ...]) -> object:
    """Return the variable that ``words`` name, or the paths."""
    word = words[0]
    if len(words) > 1 or not word.isidentifier() or frontend.kind == "cli":
        return list(words)
    if frontend.namespace is not None:
        if word in frontend.namespace:
            return frontend.namespace[word]
    elif frontend.kind == "zeppelin" and not Path(word).exists():
        # The variables are in another process, which sends them as it does for --with.
        return unpack_values(frontend.packed_values([word])).values[word]
    if not Path(word).exists():
        raise UsageError(
            _("There is neither a variable nor a file {word}.").format(word=word[:100]),
            _("Run the cell that defines it, or check the path."),
        )
    return [word]


def _check_unused(session: Session, store: DatasetStore, dataset: Dataset, label: str) -> None:
    """Raise UsageError if an unfinished job has this content as an input."""
    using, unknown = [], []
    for record in session.jobs(_MAX_JOBS):
        if record.state.ended:
            continue
        try:
            spec = session.job(record.job_id).directory.spec()
        except (SubmarineError, OSError, ValueError, KeyError):
            unknown.append(record.job_id)
            continue
        if _uses(spec, store, store.directory(dataset)):
            using.append(record.job_id)
    jobs = using or unknown
    if not jobs:
        return
    listed = ", ".join(jobs[:5]) + ("…" if len(jobs) > 5 else "")
    raise UsageError(
        _("{label} is an input of jobs that have not ended: {jobs}.").format(
            label=label, jobs=listed
        )
        if using
        else _("It is not known whether {jobs} read {label}.").format(label=label, jobs=listed),
        _("Wait for their end, or add --force."),
    )


def _uses(spec: JobSpec, store: DatasetStore, directory: str) -> bool:
    uris = [item.uri for item in spec.inputs]
    uris += [item.source for item in (*spec.localization, *spec.archives)]
    uris += [spec.input_path or ""]
    paths = (store.storage.path_of(uri) for uri in uris if uri)
    return any(path and (path + "/").startswith(directory + "/") for path in paths)


def _row(dataset: Dataset) -> tuple[str, ...]:
    return (
        one_line(dataset.name, 64) or "-",
        size(dataset.size),
        f"{dataset.files:,}",
        _count(dataset.rows),
        one_line(dataset.source, 20),
        duration(max(0.0, time.time() - dataset.created)),
        dataset.digest[:_SHORT],
    )


def _count(rows: int | None) -> str:
    return "-" if rows is None else f"{rows:,}"


def _shown(dataset: Dataset, head: str, value: dict[str, Any]) -> Outcome:
    """Return the description of a dataset: facts, schema, sample."""
    schema = ", ".join(
        f"{one_line(name, 80)}: {one_line(kind, 80)}".removeprefix(": ")
        for name, kind in dataset.schema[:_MAX_SCHEMA]
    )
    more = len(dataset.schema) - _MAX_SCHEMA
    facts = [
        (_("Digest"), dataset.digest),
        (_("Stored"), f"{timestamp(dataset.created)}, {one_line(dataset.user, 64)}"),
        (_("Source"), one_line(dataset.source, 20)),
        (_("Files"), f"{dataset.files:,}"),
        (_("Rows"), _count(dataset.rows)),
        (_("Schema"), (schema + (f", … ({more} more)" if more > 0 else "")) or "-"),
    ]
    width = max(len(label) for label, _fact in facts)
    lines = [one_line(head, 2000), *(f"{label:<{width}}  {fact}" for label, fact in facts)]
    sample = dataset.sample
    left_out = (
        [_("{count} more columns.").format(count=sample.columns_left_out)]
        if sample.columns_left_out
        else []
    )
    about = "".join(
        f"<tr><td>{escape_html_line(label)}</td><td>{escape_html_line(fact, 5000)}</td></tr>"
        for label, fact in facts
    )
    html = f"<p>{escape_html_line(head, 2000)}</p><table><tbody>{about}</tbody></table>"
    if not sample.columns:
        return Outcome("\n".join(lines), html, value)
    table = sample_table(sample.columns, sample.rows)
    html += table.html + "".join(f"<p>{escape_html_line(line)}</p>" for line in left_out)
    text = "\n".join([*lines, "", table.text, *left_out])
    zeppelin = zeppelin_table(sample.columns, sample.rows, "\n".join([*lines, *left_out]))
    return Outcome(text, html, value, mime={TABLE_MIME_TYPE: zeppelin})
