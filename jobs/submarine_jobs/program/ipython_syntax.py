"""Find IPython syntax in a cell, and replace it by comments or refuse it.

Valid Python is not changed. Line magics and shell commands that only prepare the notebook
(``%matplotlib inline``, ``!pip install x``) become comments, with a warning. Syntax that the
program would need (``x = !cmd``, ``%run``, ``%%bash``, top-level ``await``) is refused. ``checks``
finds Python's syntax errors.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass
from functools import lru_cache

from submarine_jobs.errors import UsageError
from submarine_jobs.program.logical_lines import LogicalLine, logical_lines
from submarine_runtime.translation import _

# A cell without a match contains no IPython syntax.
_SUSPECT = re.compile(
    r"^[ \t\f]*[%!?,;/]|\?|=[ \t\f]*[!%]|\b(?:await|async)\b|\A(?:[ \t\f]*\n)*[ \t]", re.MULTILINE
)
# IPython's help applies to a name or an item; Python reports any other ? as a syntax error.
_QUESTION = re.compile(r"[\w*\]]\?{1,2}\Z")
_TRANSPARENT_CELL_MAGICS = frozenset({"time", "capture"})
_RUNNING_MAGIC = re.compile(
    r"(?:timeit|prun|lprun|mprun|memit|run|load|macro|edit|paste|cpaste|rerun|recall|pylab|store"
    r"|sx|system|sc)\Z"
)


class IPythonSyntaxError(UsageError):
    """A cell contains IPython syntax that cannot be removed; ``line`` starts at 1."""

    def __init__(self, line: int, message: str, fix: str) -> None:
        super().__init__(message, fix)
        self.line = line


@dataclass(frozen=True)
class RemovedLine:
    """A line that was replaced by a comment: its number, its text, and its kind."""

    line: int
    text: str
    what: str


@dataclass(frozen=True)
class CleanedSource:
    """Python text with the same number of lines as the cell, and the removed lines."""

    text: str
    removed: tuple[RemovedLine, ...] = ()


@lru_cache(maxsize=1024)
def clean_source(source: str, *, lenient: bool = False) -> CleanedSource:
    """Convert a cell's text to Python text with the same number of lines.

    Parameters
    ----------
    source
        The cell without its ``%%submarine`` line, with plain newlines.
    lenient
        Remove syntax that would be refused, to analyze cells that are not sent.

    Raises
    ------
    IPythonSyntaxError
        If syntax cannot be removed without a change of the program.
    """
    if not _SUSPECT.search(source):
        return CleanedSource(source)
    tree = parse_python(source)
    removed: list[RemovedLine] = []
    if tree is None:
        source = _without_commands(_dedent(source), removed, lenient)
        tree = parse_python(source)
    if tree is not None and not lenient and (line := _top_level_await(tree)) is not None:
        raise IPythonSyntaxError(
            line,
            _("await outside a function works in a notebook only."),
            _("Put it into an async function and call asyncio.run(...)."),
        )
    return CleanedSource(source, tuple(removed))


def parse_python(source: str | bytes) -> ast.Module | None:
    """Return the syntax tree of a program; None if it is not Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def _dedent(source: str) -> str:
    """Remove the indentation of the first line from each line, as IPython does."""
    match = re.search(r"\A(?:[ \t\f]*\n)*([ \t]+)\S", source)
    return re.sub("^" + match.group(1), "", source, flags=re.MULTILINE) if match else source


def _without_commands(source: str, removed: list[RemovedLine], lenient: bool) -> str:
    pieces: list[str] = []
    number, code_seen, position = 1, False, 0
    for line in logical_lines(source):
        text = source[line.start : line.end]
        pieces.append(source[position : line.start])
        number += pieces[-1].count("\n")
        replacement, what = _replacement(line, text, code_seen, number, lenient)
        if what:
            removed.append(RemovedLine(number, text.strip(), what))
        code_seen = code_seen or text.lstrip()[:1] not in ("", "#")
        pieces.append(replacement)
        number += text.count("\n")
        position = line.end
    pieces.append(source[position:])
    return "".join(pieces)


def _replacement(
    line: LogicalLine, text: str, code_seen: bool, number: int, lenient: bool
) -> tuple[str, str]:
    """Return the replacement of a line, and the kind of the removed syntax ("" for none)."""
    if line.assigns is not None and not lenient:
        kind = _("a shell command") if text[line.assigns - line.start] == "!" else _("a magic")
        raise IPythonSyntaxError(
            number,
            _("{short} assigns the output of {kind}, which is not Python.").format(
                short=_short(text), kind=kind
            ),
            _("Use subprocess.run(...), or compute it in the notebook and send it with --with."),
        )
    if line.escape:
        return _command(text, code_seen, number, lenient)
    if line.help and _QUESTION.search(text.rstrip()):
        return _commented(text), _("a question about an object")
    if line.assigns is not None:
        # Keep the binding, so that a search for the name finds it.
        split = line.assigns - line.start
        lines = text[:split] + "None" + "\n" * text.count("\n", split)
        return lines, _("a command")
    return text, ""


def _command(text: str, code_seen: bool, number: int, lenient: bool) -> tuple[str, str]:
    body = text.strip()
    magic = re.match(r"(%{1,2})\s*([\w.]*)", body)
    if magic is None:
        if body[0] == "!":
            return _commented(text), _("a shell command")
        if body[0] == "?":
            return _commented(text), _("a question about an object")
        if lenient:
            return _commented(text), _("automatic calling")
        raise IPythonSyntaxError(
            number,
            _("{short} uses IPython's automatic calling, which is not Python.").format(
                short=_short(body)
            ),
            _("Write the call with its brackets."),
        )
    mark, name = magic.groups()
    if mark == "%" and name == "time" and (statement := body[magic.end() :].strip()):
        indent = text[: len(text) - len(text.lstrip())]
        return indent + statement, _("the magic %time (its statement stays)")
    if not lenient:
        _refuse_magic(mark, name, body, code_seen, number)
    return _commented(text), _("the magic {mark}{name}").format(mark=mark, name=name)


def _refuse_magic(mark: str, name: str, body: str, code_seen: bool, number: int) -> None:
    if mark == "%%" and (code_seen or name not in _TRANSPARENT_CELL_MAGICS):
        raise IPythonSyntaxError(
            number,
            _("{short} is a cell magic, which a program cannot hold.").format(short=_short(body)),
            _(
                "Only %%time and %%capture on the first line are left out by themselves; move "
                "it to a cell that is not collected."
            ),
        )
    if mark == "%" and _RUNNING_MAGIC.match(name):
        raise IPythonSyntaxError(
            number,
            _(
                "{short} runs code through IPython, and leaving it out would change the program."
            ).format(short=_short(body)),
            _("Write it as Python, or move it to a cell that is not collected."),
        )


def _commented(text: str) -> str:
    """Return the lines as comments; ``pass`` keeps the block of an indented line."""
    body = text.lstrip(" \t\f")
    indent = text[: len(text) - len(body)]
    first, *others = body.split("\n")
    start = f"{indent}pass  # " if indent else "# "
    return "\n".join([start + first, *("# " + line for line in others)])


def _short(text: str) -> str:
    line = text.strip().split("\n")[0]
    return line if len(line) <= 60 else line[:59] + "…"


def _top_level_await(tree: ast.Module) -> int | None:
    """Return the line of the first ``await``, ``async for`` or ``async with`` outside functions."""
    pending: list[ast.AST] = list(reversed(tree.body))
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.Await, ast.AsyncFor, ast.AsyncWith)):
            return node.lineno
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp)) and any(
            generator.is_async for generator in node.generators
        ):
            return node.lineno
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        pending.extend(reversed(list(ast.iter_child_nodes(node))))
    return None
