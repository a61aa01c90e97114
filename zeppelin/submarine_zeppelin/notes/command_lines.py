"""What a ``%submarine`` paragraph holds: commands, a line each, or a verb and the text below it.

Works on text alone; what the commands do is ``lines``' matter.
"""

from __future__ import annotations

import re
import shlex

from submarine_jobs.commands import CellBody
from submarine_jobs.errors import UsageError
from submarine_jobs.program import cell_verbs

#: How a text begins that is none of commands: YAML, or the first job file of several.
_BELOW = re.compile(r"\s*(?:[\w.]+\s*[:=]|[-{\[]|#\s*[\w.-]+\.job\s*$)")


def lines_of(text: str) -> list[str]:
    """The commands of a paragraph: a line each, joined where one ends in a backslash."""
    joined = plain(text).replace("\\\n", " ")
    lines = [line.strip() for line in joined.split("\n")]
    found = [line for line in lines if line and not line.startswith("#")]
    if not found:
        return ["help"]
    return found


def body_of(text: str, first_line: int, label: str) -> tuple[list[str], CellBody] | None:
    """A verb of ``cell_verbs`` and the text below its line; None where the lines are commands.

    Parameters
    ----------
    first_line
        The number that the editor shows for the first line of ``text``.
    label
        What a person calls the paragraph.
    """
    lines = plain(text).split("\n")
    for number, line in enumerate(lines):
        said = line.strip()
        if not said or said.startswith("#"):
            continue
        below = lines[number + 1 :]
        if said.split()[0] not in cell_verbs() or not _is_text(below):
            return None
        body = CellBody("\n".join(below), first_line + number + 1, label, "Paragraph")
        return words_of(said), body
    return None


def _is_text(below: list[str]) -> bool:
    """Whether lines are no commands: a verb of cells may also be one of those."""
    for line in below:
        if _BELOW.match(line):
            return True
        if line.strip() and not line.lstrip().startswith("#"):
            return False
    return False


def words_of(line: str) -> list[str]:
    """The words of a command.

    Raises
    ------
    UsageError
        If its quotes do not close.
    """
    try:
        return shlex.split(line)
    except ValueError:
        raise UsageError(f"The quotes in {line[:80]!r} do not close.") from None


def plain(text: str) -> str:
    """With one kind of line ends."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
