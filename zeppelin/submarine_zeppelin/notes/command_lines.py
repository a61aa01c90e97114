"""Parse a ``%submarine`` paragraph: one command per line, or a verb with a text below it."""

from __future__ import annotations

import re
import shlex

from submarine_jobs.commands import CellBody
from submarine_jobs.errors import UsageError
from submarine_jobs.program import cell_verbs
from submarine_runtime.translation import _
from submarine_zeppelin.notes.note import normalize_newlines

#: Start of a text that does not consist of commands: YAML, the first of several job files, Python.
_BODY_START = re.compile(
    r"\s*(?:[\w.]+\s*[:=]|[-{\[@]|#\s*[\w.-]+\.job\s*$|(?:import|from|def|class)\s)"
)


def split_commands(text: str) -> list[str]:
    """Return the commands of a paragraph, one per line; a backslash continues a line."""
    joined = normalize_newlines(text).replace("\\\n", " ")
    lines = [line.strip() for line in joined.split("\n")]
    commands = [line for line in lines if line and not line.startswith("#")]
    if not commands:
        return ["help"]
    return commands


def parse_cell_verb(text: str, first_line: int, label: str) -> tuple[list[str], CellBody] | None:
    """Return a verb of ``cell_verbs`` and the text below it; None if the lines are commands.

    Parameters
    ----------
    first_line
        Line number of the first line of ``text`` in the editor.
    label
        Label of the paragraph.
    """
    lines = normalize_newlines(text).split("\n")
    for number, line in enumerate(lines):
        command = line.strip()
        if not command or command.startswith("#"):
            continue
        below = lines[number + 1 :]
        if command.split()[0] not in cell_verbs() or not _is_text(below):
            return None
        body = CellBody("\n".join(below), first_line + number + 1, label, "Paragraph")
        return split_words(command), body
    return None


def _is_text(below: list[str]) -> bool:
    """Whether lines are not commands. A verb of cells may also be used as a command."""
    for line in below:
        if _BODY_START.match(line):
            return True
        if line.strip() and not line.lstrip().startswith("#"):
            return False
    return False


def split_words(line: str) -> list[str]:
    """Split a command into words.

    Raises
    ------
    UsageError
        If a quotation mark is missing.
    """
    try:
        return shlex.split(line)
    except ValueError:
        raise UsageError(
            _("A closing quotation mark is missing in {line!r}.").format(line=line[:80])
        ) from None
