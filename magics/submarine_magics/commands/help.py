"""Help on the words of ``%submarine``, for Shift+Tab and for ``?``.

This module finds the words. The grammar of the commands explains them.
"""

from __future__ import annotations

import re

from submarine_jobs.commands import explain_word
from submarine_jobs.commands.grammar import explain_below
from submarine_jobs.program import cell_verbs
from submarine_magics.commands.completion import verb_above, words_of
from submarine_runtime.translation import _

_LINE = re.compile(
    r"(?P<head>(?:[ \t]*|[^#'\"]*=[ \t]*)(?P<marks>%%?)submarine)(?![\w.])(?P<rest>.*)"
)
COLLECTING = _("""\
%%submarine [--file NAME.py] [--only]      on the first line of a cell

Collects the cell into the training program, and runs it in the kernel too.

    --file NAME.py    the file of the program that contains the cell [main.py]
    --only            do not run the cell in the kernel

%%submarine run NAME [OPTIONS]      submits the collected cells with this one as the last.
%%submarine predict [MODEL] [OPTIONS] applies the function predict of the cell to an input.
%%submarine workflow NAME [OPTIONS] stores the workflow that the lines below describe.
The cell tags submarine, submarine:NAME.py, submarine-only and submarine-only:NAME.py have the
same effect without a line in the cell. %submarine help shows all commands.""")


def help_at(code: str, cursor: int) -> str | None:
    """Return help on the word of ``%submarine`` at ``cursor``; None if the cursor is elsewhere."""
    cursor = max(0, min(cursor, len(code)))
    start = code.rfind("\n", 0, cursor) + 1
    end = code.find("\n", cursor)
    line = code[start : end if end >= 0 else len(code)]
    found = _LINE.match(line)
    if found is None or cursor - start < found.start("marks"):
        return _help_below(code, cursor)
    if found["marks"] == "%%" and code[:start].strip():
        return None
    at = max(cursor - start, found.end("head"))
    # The whole word, also if the cursor is in the middle of it.
    at += len(re.match(r"\S*", line[at:])[0])  # type: ignore[index]
    words = [word for word in words_of(line[found.end("head") : at]) if word]
    return help_on(found["marks"], words)


def help_on(marks: str, words: list[str]) -> str | None:
    """Return help on the last of ``words`` after ``%submarine`` or ``%%submarine``."""
    if words[:1] == ["help"]:
        words = words[1:]
    if marks == "%%" and words[:1] != ["run"]:
        if not words or words[0] not in cell_verbs():
            return COLLECTING
        return explain_word(words, "%%submarine", in_cell=True)
    return explain_word(words, marks + "submarine")


def _help_below(code: str, cursor: int) -> str | None:
    """Return help on a word of the text below ``%%submarine VERB``."""
    if not code.lstrip().startswith("%%submarine"):
        return None
    whole_word = re.match(r"[\w.$-]*", code[cursor:])
    below = verb_above(code[: cursor + len(whole_word[0] if whole_word else "")])
    return explain_below(*below) if below is not None else None
