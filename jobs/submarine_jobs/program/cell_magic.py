"""Parse the ``%%submarine`` line or the tag that marks a cell.

``%%submarine run digits --gpu 1`` is recognised as a cell whose body belongs to the program, and
the verbs of ``cell_verbs`` as cells whose body does not. ``commands`` implements the verbs.
"""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from submarine_jobs.errors import UsageError
from submarine_jobs.program.file_names import PROGRAM, check_file_name
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "submarine.cells"
#: The verb of this package that takes the text of a cell, besides ``run``.
_OWN = ("predict", "submarine_jobs.commands.predict:predict")


@functools.cache
def cell_verbs() -> dict[str, EntryPoint]:
    """Return the entry points of the verbs that take the text of a cell, by name."""
    # cost: importlib.metadata (5 ms), which `%load_ext` does not need.
    from importlib.metadata import EntryPoint, entry_points

    found = [*entry_points(group=ENTRY_POINT_GROUP), EntryPoint(*_OWN, ENTRY_POINT_GROUP)]
    return {point.name: point for point in found if point.name != "run"}


MAGIC = "submarine"
#: The tag of a cell that is collected and does not run in the notebook.
ONLY_TAG = "submarine-only"
_MARK = re.compile(rf"\A((?:[ \t\f]*\n)*)[ \t]*%%{MAGIC}(?![\w.])([^\n]*)(?:\n|\Z)")
#: IPython's magic that writes a cell to a file; a Python file is collected as well.
_WRITEFILE = re.compile(r"\A((?:[ \t\f]*\n)*)%%(?:writefile|file)(?![\w.])([^\n]*)(?:\n|\Z)")

#: ``%submarine run``, ``job = %submarine run``, ``%%submarine predict``
_RUN = re.compile(
    rf"^[ \t]*(?:[\w.]+[ \t]*=[ \t]*)?%{{1,2}}{MAGIC}[ \t]+(?:run|predict)(?:[ \t]|$)", re.M
)


class MarkedCell(NamedTuple):
    """A cell that starts with ``%%submarine``, or that has the tag.

    ``line`` is the rest of that line, ``body`` the text below it, ``first_line`` the number of
    the body's first line in the cell (2, or more with blank lines above the magic). For a tagged
    cell, ``body`` is the whole text and ``line`` contains the options of the tag. ``write_mode`` is
    "w" or, with ``-a``, "a" for a ``%%writefile x.py`` cell; its ``line`` is ``--file x.py``.
    """

    line: str
    body: str
    first_line: int
    write_mode: str = ""


class CollectOptions(NamedTuple):
    """Options of ``%%submarine``; ``verb`` is ``run`` for ``%%submarine run ...``."""

    filename: str = PROGRAM
    only: bool = False
    verb: str | None = None

    @property
    def in_program(self) -> bool:
        """Whether the cell's text is part of a program; other verbs have their own use for it."""
        return self.verb in (None, "run")


def parse_cell(source: str, tags: Iterable[str] = ()) -> MarkedCell | None:
    """Split a cell into magic line and body; return None if it is not marked.

    Parameters
    ----------
    tags
        The cell's tags. ``submarine`` collects it, ``submarine:model.py`` for that file;
        ``submarine-only`` and ``submarine-only:model.py`` do not run it here. A ``%%submarine`` or
        ``%%writefile`` line overrides the tags.
    """
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    match = _MARK.match(source)
    if match is None:
        written = _WRITEFILE.match(source)
        if written is not None:
            return _written_cell(written[2], source[written.end() :], written[1].count("\n") + 2)
        line = tags_to_line(tags)
        return None if line is None else MarkedCell(line, source, 1)
    return MarkedCell(match[2].strip(), source[match.end() :], match[1].count("\n") + 2)


def _written_cell(line: str, body: str, first_line: int) -> MarkedCell | None:
    """Return a ``%%writefile x.py`` cell; None if its file cannot be part of a program."""
    try:
        words = shlex.split(line)
        names = [word for word in words if word not in ("-a", "--append")]
        # IPython replaces $name and {name} by values of the notebook.
        if len(names) != 1 or not names[0].endswith(".py") or set("${}") & set(names[0]):
            return None
        name = check_file_name(names[0].removeprefix("./"))
    except (UsageError, ValueError):
        return None
    mode = "w" if len(words) == 1 else "a"
    return MarkedCell(f"--file {shlex.quote(name)} --only", body, first_line, mode)


def writes_file(source: str) -> bool:
    """Return whether a cell writes a Python file of the program (``%%writefile x.py``)."""
    marked = parse_cell(source) if "%%" in source[:1000] else None
    return marked is not None and bool(marked.write_mode)


def starts_job(source: str) -> bool:
    """Return whether a cell contains ``%submarine run`` or ``predict``, or the cell magic."""
    return _RUN.search(source) is not None


def tags_to_line(tags: Iterable[str]) -> str | None:
    """Return the tags as the rest of a ``%%submarine`` line; None without a tag of Submarine."""
    parts = [tag.partition(":") for tag in tags]
    marks = [(mark.strip(), colon, name.strip()) for mark, colon, name in parts]
    marks = [part for part in marks if part[0] in (MAGIC, ONLY_TAG)]
    if not marks:
        return None
    words = ["--only"] if any(mark == ONLY_TAG for mark, _, _ in marks) else []
    files = [name for _, colon, name in marks if colon]
    if files:
        words += ["--file", shlex.quote(files[0])]
    return " ".join(words)


def tags_of_metadata(metadata: object) -> tuple[str, ...]:
    """Return the tags in a cell's metadata; invalid values are ignored."""
    tags = metadata.get("tags") if isinstance(metadata, dict) else None
    return tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else ()


def parse_options(line: str) -> CollectOptions:
    """Parse ``[--file NAME.py] [--only]``.

    Raises
    ------
    UsageError
        For an unknown option, or a missing or invalid file name.
    """
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        raise UsageError(
            _("The quotes in %%submarine {line} do not close.").format(line=line[:80])
        ) from None
    if words and not words[0].startswith("-"):
        if words[0] == "run" or words[0] in cell_verbs():
            return CollectOptions(verb=words[0])
        verbs = " or ".join(f"{verb} NAME [options]" for verb in ("run", *sorted(cell_verbs())))
        raise UsageError(
            _('%%submarine does not know "{word}".').format(word=words[0][:40]),
            _("Above a cell it takes [--file NAME.py] [--only], {verbs}.").format(verbs=verbs),
        )
    filename, only = PROGRAM, False
    words.reverse()
    while words:
        word = words.pop()
        if word == "--only":
            only = True
        elif word == "--file" and words:
            filename = check_file_name(words.pop())
        elif word.startswith("--file="):
            filename = check_file_name(word[len("--file=") :])
        elif word == "--file":
            raise UsageError(_("--file needs a file name."), _("For example: --file model.py."))
        else:
            raise UsageError(
                _('%%submarine has no option "{word}".').format(word=word[:40]),
                _("It takes [--file NAME.py] [--only]."),
            )
    return CollectOptions(filename, only)
