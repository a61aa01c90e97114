"""Export a note as a Jupyter notebook, which runs headless or in a workflow without Zeppelin.

Paragraphs of the program become cells with Submarine's tags, and commands become ``%submarine``
lines. Paragraphs that only work in Zeppelin are left out and reported. The export is deterministic.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from submarine_jobs.errors import UsageError
from submarine_jobs.program import MAGIC, ONLY_TAG, PROGRAM, cell_verbs
from submarine_runtime.translation import _
from submarine_zeppelin.notes import legacy
from submarine_zeppelin.notes.command_lines import parse_cell_verb, split_commands
from submarine_zeppelin.notes.note import Paragraph, shell_files

_LOAD = "%load_ext submarine_magics"
#: Title of the paragraph with parameters, which is papermill's tag.
PARAMETERS = "parameters"
_INVALID_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]+")
_RUNS = ("run",)


@dataclass(frozen=True)
class ExportedNotebook:
    """A notebook that was exported from a note.

    Attributes
    ----------
    document
        Notebook in format 4.5.
    files
        Shell files of the program, in the directory of the notebook.
    left_out
        A message for each paragraph that is not exported.
    """

    document: dict[str, Any]
    files: dict[str, bytes] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    def to_bytes(self) -> bytes:
        """Return the contents of the notebook file."""
        text = json.dumps(self.document, ensure_ascii=False, indent=1) + "\n"
        return text.encode("utf-8", "surrogatepass")


def export_notebook(note: Sequence[Paragraph], note_id: str) -> ExportedNotebook:
    """Export a note as a notebook.

    Raises
    ------
    UsageError
        If a title is an invalid file name, or the value of a form is not known.
    """
    files = shell_files(note)
    cells = [_cell("code", "submarine-load", _LOAD)]
    left_out: list[str] = []
    for paragraph in note:
        new_cells = list(_cells(paragraph, sorted(files)))
        cells += new_cells
        if not new_cells and paragraph.body.strip():
            left_out.append(_left_out(paragraph))
    return ExportedNotebook(_document(_unique(cells), note_id), files, tuple(left_out))


def check_replaceable(path: Path) -> None:
    """Raise an error if a file exists that was not exported from a note.

    Raises
    ------
    UsageError
        If such a file exists.
    """
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return
    except (OSError, ValueError):
        found = None
    try:
        is_export = isinstance(found["metadata"]["submarine"]["note"], str)
    except (TypeError, KeyError, IndexError):
        is_export = False
    if not is_export:
        raise UsageError(
            _("{path} exists and was not exported from a note.").format(path=path),
            _("Use another file with -o, or overwrite it with --force."),
        )


def _cells(paragraph: Paragraph, files: Sequence[str]) -> Iterator[dict[str, Any]]:
    body = paragraph.body.strip("\n")
    name = (
        _INVALID_CHARACTERS.sub("-", paragraph.paragraph_id)[:60] or f"paragraph-{paragraph.number}"
    )
    if not body.strip():
        return
    paragraph.check_forms()
    if paragraph.entry == "python":
        yield _cell("code", name, body, paragraph.title, _tags(paragraph))
    elif paragraph.entry == "sh":
        if "only" not in paragraph.options:
            yield _cell("code", name, f"%%bash\n{body}", paragraph.title)
    elif paragraph.entry == "submarine":
        if source := _commands(body, files):
            yield _cell("code", name, source, paragraph.title)
    elif paragraph.name.rpartition(".")[2] == "md":
        yield _cell("markdown", name, body, paragraph.title)


def _tags(paragraph: Paragraph) -> list[str]:
    tags = [PARAMETERS] if paragraph.title.strip().casefold() == PARAMETERS else []
    if paragraph.local:
        return tags
    mark = ONLY_TAG if "only" in paragraph.options else MAGIC
    file = paragraph.file
    return [*tags, mark if file in ("", PROGRAM) else f"{mark}:{file}"]


def _commands(body: str, files: Sequence[str]) -> str:
    """Convert commands to magics, without Zeppelin's own commands and workflow commands."""
    if parse_cell_verb(body, 1, "") is not None:
        return ""
    lines = []
    for line in split_commands(body):
        if legacy.parse_command(line) is not None:
            continue
        try:
            typed = shlex.split(line)
        except ValueError:
            typed = []  # the kernel reports the error
        words = legacy.translate_command_line(typed)
        if words[:1] and words[0] in cell_verbs():
            continue  # otherwise a run of the workflow could start the workflow again
        command = line if words == typed else shlex.join(words)
        if words[:1] and words[0] in _RUNS and files:
            options = " ".join(f"--file {shlex.quote(f'./{name}')}" for name in files)
            verb, _, rest = command.partition(" ")
            command = f"{verb} {options} {rest}".rstrip()
        lines.append(f"%{MAGIC} {command}")
    return "\n".join(lines)


def _left_out(paragraph: Paragraph) -> str:
    words = paragraph.body.split(maxsplit=1)
    if paragraph.entry == "sh":
        reason = _("it is a file of the program and is exported as a file")
    elif paragraph.entry == "submarine" and words and words[0] in cell_verbs():
        reason = _("it defines a workflow")
    elif paragraph.entry == "submarine":
        reason = _("its form works in Zeppelin only")
    else:
        reason = (
            _("it belongs to %{paragraph}").format(paragraph=paragraph.name)
            if paragraph.name
            else _("it has no interpreter")
        )
    title = f" {paragraph.title!r}" if paragraph.title else ""
    return _("Paragraph {number}{title} is not exported: {reason}.").format(
        number=paragraph.number, title=title, reason=reason
    )


def _cell(
    kind: str, name: str, source: str, title: str = "", tags: Sequence[str] = ()
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"tags": list(tags)} if tags else {}
    if title.strip():
        metadata["title"] = title.strip()
    cell: dict[str, Any] = {"cell_type": kind, "id": name, "metadata": metadata}
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    return {**cell, "source": source.splitlines(keepends=True)}


def _unique(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Make the ids of cells unique."""
    used: set[str] = set()
    for cell in cells:
        name, number = cell["id"], 1
        while cell["id"] in used:
            number += 1
            cell["id"] = f"{name[:58]}-{number}"
        used.add(cell["id"])
    return cells


def _document(cells: list[dict[str, Any]], note_id: str) -> dict[str, Any]:
    return {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": _("Python 3"), "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
            "submarine": {"note": note_id},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
