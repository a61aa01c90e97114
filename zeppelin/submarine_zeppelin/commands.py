"""Commands ``submarine zeppelin install|check|uninstall|migrate|export-note``."""

from __future__ import annotations

from pathlib import Path

import click

from submarine_jobs.commands.grammar import Verb, option, verb_group
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import JOB_FAILED, SUCCESS, Outcome
from submarine_runtime.translation import _, gettext_noop, ngettext
from submarine_zeppelin import migration, notes
from submarine_zeppelin.installation import (
    find_installation,
    install as install_group,
    uninstall as uninstall_group,
)


@verb_group(
    {
        gettext_noop("Zeppelin installations"): {
            "install": gettext_noop("Install or update the interpreter group."),
            "check": gettext_noop("Check the installation and start the interpreter process."),
            "uninstall": gettext_noop("Remove the interpreter group."),
            "migrate": gettext_noop("List what of a former Submarine interpreter runs."),
        },
        gettext_noop("Notes"): {
            "export-note": gettext_noop("Export a note as a Jupyter notebook.")
        },
    },
    extra="zeppelin",
)
def zeppelin() -> None:
    """Manage the Zeppelin interpreter group `submarine`, and export notes."""


@zeppelin.command(
    cls=Verb,
    example=(
        "zeppelin install /opt/zeppelin",
        "zeppelin install /opt/zeppelin --set submarine.yarn.queue=ml "
        "--set HADOOP_CONF_DIR=/etc/hadoop/conf",
    ),
)
@click.argument("directory")
@option("--python", metavar="PROGRAM", help="Python that Zeppelin starts [the one that runs this].")
@option(
    "--set",
    "values",
    multiple=True,
    metavar="NAME=VALUE",
    help="Value of a setting, instead of its default; repeatable.",
)
@option("--replace", is_flag=True, help="Replace Zeppelin's former Submarine interpreter.")
def install(directory: str, python: str | None, values: tuple[str, ...], replace: bool) -> Outcome:
    """Install the interpreter group `submarine` in the Zeppelin of DIRECTORY."""
    installation = find_installation(directory)
    changed, notices = install_group(installation, python, _pairs(values), replace=replace)
    done = _("Installed the interpreter group submarine as {setting}.").format(
        setting=installation.setting
    )
    if not changed:
        done = _("The interpreter group submarine is already installed as {setting}.").format(
            setting=installation.setting
        )
    return Outcome(
        "\n".join([done, *notices]),
        value={"path": str(installation.setting), "changed": changed, "notes": notices},
    )


@zeppelin.command(cls=Verb, example=("zeppelin uninstall /opt/zeppelin",))
@click.argument("directory")
def uninstall(directory: str) -> Outcome:
    """Remove the interpreter group from the Zeppelin of DIRECTORY."""
    removed = uninstall_group(find_installation(directory))
    return Outcome(
        "\n".join(_("Removed {path}.").format(path=path) for path in removed)
        + _("\nRestart Zeppelin, then remove the settings of the group on its page Interpreters."),
        value={"removed": [str(path) for path in removed]},
    )


@zeppelin.command(cls=Verb, example=("zeppelin check /opt/zeppelin",))
@click.argument("directory")
def check(directory: str) -> Outcome:
    """Check the group in the Zeppelin of DIRECTORY; exit code 1 if a check fails."""
    # cost: the checks with thriftpy2; `zeppelin --help` does not need them.
    from submarine_jobs.commands import result_lines
    from submarine_jobs.doctor import Status
    from submarine_zeppelin.installation import check_installation, find_installation

    results = check_installation(find_installation(directory))
    failed = any(result.status is Status.ERROR for result in results)
    return Outcome(
        "\n".join(result_lines(results)),
        value={"checks": [result.to_json() for result in results]},
        exit_code=JOB_FAILED if failed else SUCCESS,
    )


@zeppelin.command(
    cls=Verb,
    example=("zeppelin migrate --check /opt/zeppelin", "zeppelin migrate --check notebook --json"),
)
@click.argument("directory", type=click.Path(path_type=Path))
@option("--check", is_flag=True, help="Only read and report; migrate changes nothing yet.")
def migrate(directory: Path, check: bool) -> Outcome:
    """List which settings and notes of a Zeppelin run with this interpreter group.

    DIRECTORY is the home of a Zeppelin with its former Submarine interpreter, or a directory with
    notes (.zpln, note.json). Exit code 1 if something does not run or a file cannot be read.
    """
    if not check:
        raise UsageError(
            _("migrate needs --check: it reports, and changes nothing."),
            _("Add --check; `submarine zeppelin install --replace` installs the group."),
        )
    report = migration.check_migration(directory)
    lines = [
        _("{file} is skipped: {error}").format(file=file, error=error)
        for file, error in report.unreadable
    ]
    for effect, heading in (
        (migration.FAILS, _("Does not run:")),
        (migration.CHANGES, _("Changes:")),
        (migration.RUNS, _("Runs unchanged:")),
    ):
        found = [one for one in report.findings if one.effect == effect]
        if found:
            lines += ["", f"{heading}"]
            lines += [f"  {one.place}{': ' if one.text else ''}{one.text}" for one in found]
    lines += [
        "",
        _("{notes} notes use the group: {fails} findings fail, {changes} change.").format(
            notes=report.notes,
            fails=report.count(migration.FAILS),
            changes=report.count(migration.CHANGES),
        ),
    ]
    failed = bool(report.count(migration.FAILS) or report.unreadable)
    return Outcome(
        "\n".join(lines).strip(),
        value=migration.report_json(report),
        exit_code=JOB_FAILED if failed else SUCCESS,
    )


@zeppelin.command(
    "export-note", cls=Verb, example=("zeppelin export-note digits.zpln -o digits.ipynb",)
)
@click.argument("file", type=click.Path(path_type=Path))
@option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The notebook [NOTE-NAME.ipynb in this directory].",
)
@option("--force", is_flag=True, help="Overwrite a notebook that was not exported from a note.")
def export_note(file: Path, output: Path | None, force: bool) -> Outcome:
    """Export the note in FILE (.zpln) as a Jupyter notebook, for `submarine run` and workflows."""
    note = notes.read_note_file(file)
    target = output or Path(notes.notebook_stem(note.name, note.note_id) + notes.NOTEBOOK)
    if target.suffix != notes.NOTEBOOK:
        raise UsageError(
            _("{target} is not the name of a notebook.").format(target=target),
            _("Use a name that ends in {notebook}.").format(notebook=notes.NOTEBOOK),
        )
    if not force:
        notes.check_replaceable(target)
    notebook = notes.export_notebook(note.paragraphs, note.note_id)
    path = notes.write_notebook(notebook, target.parent, target.stem)
    written = [str(path), *(str(path.parent / name) for name in notebook.files)]
    cells = len(notebook.document["cells"]) - 1
    lines = [
        ngettext("{written}: {cells} cell.", "{written}: {cells} cells.", cells).format(
            written=" and ".join(written), cells=cells
        ),
        *notebook.left_out,
    ]
    return Outcome(
        "\n".join(lines),
        value={"files": written, "cells": cells, "left_out": list(notebook.left_out)},
    )


def _pairs(words: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.strip():
            raise UsageError(
                _("--set {word!r} has no name.").format(word=word[:80]),
                _("Write --set NAME=VALUE."),
            )
        pairs[name.strip()] = value
    return pairs
