"""Reword messages of ``submarine_jobs`` for notes: paragraphs instead of cells.

Other text is not changed.
"""

from __future__ import annotations

import re

from submarine_jobs.errors import SubmarineError
from submarine_zeppelin.notes.note import MARK

_CELL_LABEL = re.compile(rf"\b([Cc])ell(s?) (?={MARK}\d)")
_NUMBER = re.compile(rf"{MARK}(\d+)")
#: Notice at the end of a card that is no longer updated, as HTML.
PAUSED_NOTICE = (
    "<br>Zeppelin's interpreter has stopped, so this card is not updated; the job continues. "
    "Updates resume when you run a %submarine paragraph."
)
#: Verbs that are only available in a terminal on Zeppelin's machine.
TERMINAL_VERBS = ("kernel", "minicluster", "zeppelin")
TERMINAL = "|".join(TERMINAL_VERBS)
_OTHERS = (
    (
        re.compile(r"Add %%submarine to (paragraph \d+) and run it"),
        r"Make \1 a %submarine.python paragraph of the program",
    ),
    (
        re.compile(r"\bCorrect the cell and run it again\b"),
        "Correct the paragraph and run it again",
    ),
    (
        re.compile(r"Change the order of the cells in the notebook, and save it\."),
        "Change the order of the paragraphs.",
    ),
    (re.compile(r"\bNo cell is collected\b"), "The note has no %submarine.python paragraph"),
    (
        re.compile(
            r"Put %%submarine on the first line of a cell and run "
            r"(?:it\.|that cell, or name a file\.)"
        ),
        "Begin a paragraph with %submarine.python; it need not be run.",
    ),
    (re.compile(r"`submarine --help`"), "`%submarine help`"),
    (
        re.compile(
            r"Get (?:a new )?one with `submarine login` or kinit, or set keytab and principal"
        ),
        "Set SUBMARINE_HADOOP_KEYTAB and SUBMARINE_HADOOP_PRINCIPAL on the page Interpreters, or "
        "run kinit in a terminal as Zeppelin's account",
    ),
    # Commands for a terminal are not changed.
    (re.compile(rf"`submarine (?!(?:{TERMINAL})\b)"), "`%submarine "),
    (re.compile(r"^Usage: submarine\b"), "Usage: %submarine"),
    (re.compile(r"\b(no|a) collected cell\b"), r"\1 %submarine.python paragraph"),
    (re.compile(r"\bcollected cells\b"), "%submarine.python paragraphs"),
    (re.compile(r"\bcollect the cell that\b"), "put into the program the paragraph that"),
    (re.compile(r"\bThe notebook has no code cell called\b"), "The note has no paragraph called"),
    (re.compile(r" The saved file [^\n<]{1,200}\.ipynb was searched\."), ""),
    (re.compile(r">Cell</th>"), ">Paragraph</th>"),
    (re.compile(r"%%submarine (?=workflow\b)"), "%submarine "),
    (re.compile(r"%%submarine\b"), "%submarine.python"),
)
_PARAGRAPHS = """\
  %submarine.python         Code of the program, also run here. Title: its file, as model.py.
  %submarine.python(only)   Code of the program, not run here.
  %submarine.python(local)  Code that runs here and is not part of the program.
  %submarine.sh             Bash, run here. Title: its file in the program, as prepare.sh.
"""
#: Replacements in the help of all verbs.
_HELP = (
    (r"^Notebook cells:$", f"Paragraphs:\n{_PARAGRAPHS.rstrip()}"),
    (r"\bRun notebook cells and\b", "Run a note's paragraphs and"),
    (r"^(  cells +)Show which cells are collected\b", r"\1Show which paragraphs make the program"),
    (
        r"^(  run +.*\n)",
        r"\1  dashboard    A form that runs a job, as in the former interpreter.\n",
    ),
)


def reword(text: str) -> str:
    """Reword a message or an HTML page."""
    text = _CELL_LABEL.sub(
        lambda match: f"{'P' if match[1] == 'C' else 'p'}aragraph{match[2]} ", text
    )
    text = _NUMBER.sub(r"\1", text)
    for pattern, words in _OTHERS:
        text = pattern.sub(words, text)
    return text


def reword_help(text: str) -> str:
    """Reword the help of all verbs, and remove commands for a terminal."""
    text = re.sub(rf"(?m)^  (?:{TERMINAL}) .*\n", "", text)
    text = re.sub(r"(?s)\n?^The first minute:\n.*", "", text, flags=re.MULTILINE)
    text = re.sub(r"(?m)^  (?:clear|login) .*\n", "", text)
    for pattern, words in _HELP:
        text = re.sub(pattern, words, text, flags=re.MULTILINE)
    return text


def error_text(error: SubmarineError) -> str:
    """Return the reworded message of an error."""
    return reword(str(error))
