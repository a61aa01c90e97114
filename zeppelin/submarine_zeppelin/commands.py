"""``submarine zeppelin``: the interpreter in a Zeppelin installation, and notes as notebooks."""

from __future__ import annotations

from pathlib import Path

import click

from submarine_jobs.commands.grammar import Verb, option, verb_group
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import JOB_FAILED, SUCCESS, Outcome


@verb_group(
    {
        "A Zeppelin": {
            "install": "Put the interpreter group into it, or bring it up to date.",
            "check": "Look whether it is well, and start it as Zeppelin would.",
            "uninstall": "Remove the group.",
        },
        "A note": {"export-note": "Make a Jupyter notebook of it."},
    }
)
def zeppelin() -> None:
    """The interpreter group `submarine` of a Zeppelin, and notes as notebooks."""


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
    help="Value of a setting, in place of its default; repeatable.",
)
@option("--replace", is_flag=True, help="In place of Zeppelin's own former interpreter.")
def install(directory: str, python: str | None, values: tuple[str, ...], replace: bool) -> Outcome:
    """Install the interpreter group `submarine` into the Zeppelin of DIRECTORY."""
    from submarine_zeppelin.installation import installer as installing

    where = installing.installation(directory)
    changed, said = installing.install(where, python, _pairs(values), replace=replace)
    done = f"Installed the interpreter group submarine as {where.setting}."
    if not changed:
        done = f"The interpreter group submarine is installed already as {where.setting}."
    return Outcome(
        "\n".join([done, *said]),
        value={"path": str(where.setting), "changed": changed, "notes": said},
    )


@zeppelin.command(cls=Verb, example=("zeppelin uninstall /opt/zeppelin",))
@click.argument("directory")
def uninstall(directory: str) -> Outcome:
    """Remove the interpreter group from the Zeppelin of DIRECTORY."""
    from submarine_zeppelin.installation import installer as installing

    removed = installing.uninstall(installing.installation(directory))
    return Outcome(
        "\n".join(f"Removed {path}." for path in removed)
        + "\nRestart Zeppelin, and remove the group's settings on its page Interpreters.",
        value={"removed": [str(path) for path in removed]},
    )


@zeppelin.command(cls=Verb, example=("zeppelin check /opt/zeppelin",))
@click.argument("directory")
def check(directory: str) -> Outcome:
    """Look whether the group in the Zeppelin of DIRECTORY is well; exit code 1 where it is not."""
    from submarine_jobs.commands import result_lines
    from submarine_jobs.doctor import Status
    from submarine_zeppelin.installation import checks as checking, installer as installing

    results = checking.check(installing.installation(directory))
    failed = any(result.status is Status.ERROR for result in results)
    return Outcome(
        "\n".join(result_lines(results)),
        value={"checks": [result.to_json() for result in results]},
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
    help="The notebook [that of the note's name, here].",
)
@option("--force", is_flag=True, help="Write over a notebook that no note was exported to.")
def export_note(file: Path, output: Path | None, force: bool) -> Outcome:
    """Make a Jupyter notebook of the note in FILE, a .zpln, for `submarine run` and workflows."""
    from submarine_zeppelin.notes import (
        NOTEBOOK,
        check_replaceable,
        export,
        keep,
        read_note_file,
        stem_of,
    )

    note = read_note_file(file)
    target = output or Path(stem_of(note.name, note.note_id) + NOTEBOOK)
    if target.suffix != NOTEBOOK:
        raise UsageError(f"{target} is no name of a notebook.", f"It ends in {NOTEBOOK}.")
    if not force:
        check_replaceable(target)
    made = export(note.paragraphs, note.note_id)
    path = keep(made, target.parent, target.stem)
    written = [str(path), *(str(path.parent / name) for name in made.files)]
    cells = len(made.document["cells"]) - 1
    lines = [f"{' and '.join(written)}: {cells} cell{'' if cells == 1 else 's'}.", *made.left_out]
    return Outcome(
        "\n".join(lines),
        value={"files": written, "cells": cells, "left_out": list(made.left_out)},
    )


def _pairs(words: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--set {word[:80]!r} has no name.", "Write --set NAME=VALUE.")
        pairs[name.strip()] = value
    return pairs
