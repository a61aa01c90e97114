"""What the core says of cells, in the words of a note: paragraphs, and how one is collected.

Works on sentences alone; what it does not know stays as it is.
"""

from __future__ import annotations

import re

from submarine_jobs.errors import SubmarineError
from submarine_zeppelin.notes.note import MARK

_PLACE = re.compile(rf"\b([Cc])ell(s?) (?={MARK}\d)")
_NUMBER = re.compile(rf"{MARK}(\d+)")
#: What a card ends with, as HTML, once nothing moves it any more.
STANDS_STILL = (
    "<br>Zeppelin's interpreter has ended, so this stands still; the job goes on. The next "
    "paragraph of %submarine that you run moves it again."
)
#: Verbs of a terminal of Zeppelin's machine.
OWNERS = ("kernel", "minicluster", "zeppelin")
TERMINAL = "|".join(OWNERS)
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
    # Else what is for a terminal would be typed into a paragraph.
    (re.compile(rf"`submarine (?!(?:{TERMINAL})\b)"), "`%submarine "),
    (re.compile(r"^Usage: submarine\b"), "Usage: %submarine"),
    (re.compile(r"\b(no|a) collected cell\b"), r"\1 %submarine.python paragraph"),
    (re.compile(r"\bcollected cells\b"), "%submarine.python paragraphs"),
    (re.compile(r"\bcollect the cell that\b"), "put into the program the paragraph that"),
    (re.compile(r"\bThe notebook has no code cell called\b"), "The note has no paragraph called"),
    (re.compile(r" It is looked for in [^\n<]{1,200}\.ipynb as saved\."), ""),
    (re.compile(r">Cell</th>"), ">Paragraph</th>"),
    (re.compile(r"%%submarine (?=workflow\b)"), "%submarine "),
    (re.compile(r"%%submarine\b"), "%submarine.python"),
)
_PARAGRAPHS = """\
  %submarine.python         Code of the program, and run here. Titled model.py it is that file.
  %submarine.python(only)   Code of the program, not run here.
  %submarine.python(local)  Run here, and no code of the program.
  %submarine.sh             Bash, run here. Titled prepare.sh it lies beside the program.
"""
#: In the help of all verbs.
_HELP = (
    (r"^Notebook cells:$", f"Paragraphs:\n{_PARAGRAPHS.rstrip()}"),
    (r"\bRun notebook cells and\b", "Run a note's paragraphs and"),
    (r"^(  cells +)Show which cells are collected\b", r"\1Show which paragraphs make the program"),
    (
        r"^(  run +.*\n)",
        r"\1  dashboard    A form that runs a job, as of the former interpreter.\n",
    ),
)


def in_note(text: str) -> str:
    """A sentence, or a page, with paragraphs where the core names cells."""
    text = _PLACE.sub(lambda match: f"{'P' if match[1] == 'C' else 'p'}aragraph{match[2]} ", text)
    text = _NUMBER.sub(r"\1", text)
    for pattern, words in _OTHERS:
        text = pattern.sub(words, text)
    return text


def help_in_note(text: str) -> str:
    """The help of all verbs without what is for a terminal."""
    text = re.sub(rf"(?m)^  (?:{TERMINAL}) .*\n", "", text)
    text = re.sub(r"(?s)\n?^The first minute:\n.*", "", text, flags=re.MULTILINE)
    text = re.sub(r"(?m)^  clear .*\n", "", text)
    for pattern, words in _HELP:
        text = re.sub(pattern, words, text, flags=re.MULTILINE)
    return text


def sentence(error: SubmarineError) -> str:
    """An error as a paragraph shows it."""
    return in_note(str(error))
