"""A note as a Jupyter notebook, so that it runs where no Zeppelin is: headless, in a workflow.

The same note gives the same bytes. Collected paragraphs become cells with Submarine's tags,
commands become lines of ``%submarine``; what has no meaning outside a Zeppelin is left out, and
told. Writes no file (``interpreters.note_folder``).
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
from submarine_zeppelin.notes import legacy as former
from submarine_zeppelin.notes.command_lines import body_of, lines_of
from submarine_zeppelin.notes.note import Paragraph, shell_files

_LOAD = "%load_ext submarine_magics"
#: The title of the paragraph whose values a run may replace: papermill's tag.
PARAMETERS = "parameters"
_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")
_RUNS = ("run",)


@dataclass(frozen=True)
class Exported:
    """A note as a notebook.

    Attributes
    ----------
    document
        The notebook, in format 4.5.
    files
        Shell paragraphs that are files of the program: they lie beside the notebook.
    left_out
        A sentence for each paragraph that it does not have.
    """

    document: dict[str, Any]
    files: dict[str, bytes] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    def to_bytes(self) -> bytes:
        """The notebook's file."""
        text = json.dumps(self.document, ensure_ascii=False, indent=1) + "\n"
        return text.encode("utf-8", "surrogatepass")


def export(note: Sequence[Paragraph], note_id: str) -> Exported:
    """The notebook of a note.

    Raises
    ------
    UsageError
        If a title cannot be the name of a file of a program.
    """
    files = shell_files(note)
    cells = [_cell("code", "submarine-load", _LOAD)]
    left_out: list[str] = []
    for paragraph in note:
        made = list(_cells(paragraph, sorted(files)))
        cells += made
        if not made and paragraph.body.strip():
            left_out.append(_left_out(paragraph))
    return Exported(_document(_unique(cells), note_id), files, tuple(left_out))


def check_replaceable(path: Path) -> None:
    """Refuse to write over a notebook that somebody may have written by hand.

    Raises
    ------
    UsageError
        If a file is there that was not exported from a note.
    """
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return
    except (OSError, ValueError):
        found = None
    try:
        ours = isinstance(found["metadata"]["submarine"]["note"], str)
    except (TypeError, KeyError, IndexError):
        ours = False
    if not ours:
        raise UsageError(
            f"{path} is there already, and was not exported from a note.",
            "Name another file with -o, or write over it with --force.",
        )


def _cells(paragraph: Paragraph, files: Sequence[str]) -> Iterator[dict[str, Any]]:
    body = paragraph.body.strip("\n")
    name = _UNFIT.sub("-", paragraph.paragraph_id)[:60] or f"paragraph-{paragraph.number}"
    if not body.strip():
        return
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
    """The commands as magics; nothing of what only a Zeppelin has, and no workflow in itself."""
    if body_of(body, 1, "") is not None:
        return ""
    lines = []
    for line in lines_of(body):
        if former.word_of(line) is not None:
            continue
        try:
            typed = shlex.split(line)
        except ValueError:
            typed = []  # the kernel says what is wrong with it
        words = former.ours(typed)
        if words[:1] and words[0] in cell_verbs():
            continue  # else a run of a workflow could start the workflow again
        said = line if words == typed else shlex.join(words)
        if words[:1] and words[0] in _RUNS and files:
            brought = " ".join(f"--file {shlex.quote(f'./{name}')}" for name in files)
            verb, _, rest = said.partition(" ")
            said = f"{verb} {brought} {rest}".rstrip()
        lines.append(f"%{MAGIC} {said}")
    return "\n".join(lines)


def _left_out(paragraph: Paragraph) -> str:
    words = paragraph.body.split(maxsplit=1)
    if paragraph.entry == "sh":
        why = "it is a file beside the program, which it is here too"
    elif paragraph.entry == "submarine" and words and words[0] in cell_verbs():
        why = "it says what runs, and is not run by itself"
    elif paragraph.entry == "submarine":
        why = "only a Zeppelin has its form"
    else:
        why = f"it is one of %{paragraph.name}" if paragraph.name else "it has no interpreter"
    title = f" {paragraph.title!r}" if paragraph.title else ""
    return f"Paragraph {paragraph.number}{title} is no cell: {why}."


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
    """Ids that differ, whatever the note's were."""
    seen: set[str] = set()
    for cell in cells:
        name, number = cell["id"], 1
        while cell["id"] in seen:
            number += 1
            cell["id"] = f"{name[:58]}-{number}"
        seen.add(cell["id"])
    return cells


def _document(cells: list[dict[str, Any]], note_id: str) -> dict[str, Any]:
    return {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
            "submarine": {"note": note_id},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
