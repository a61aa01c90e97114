"""A note's paragraphs as the cells of a program, by Zeppelin's own rule and ours.

Only paragraphs of this group count, run or not, in the order of the note. One that is titled with
the name of a Python or shell file belongs to that file, every other Python paragraph to the main
program. Does not merge or judge (``submarine_jobs.program.job_bundle``, ``checks``) and talks to
no server.
"""

from __future__ import annotations

import difflib
import re
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from submarine_jobs.errors import UsageError
from submarine_jobs.program import (
    PROGRAM,
    Bundle,
    Cell,
    CellCollection,
    DocumentCell,
    build_bundle,
    check_file_name,
)
from submarine_jobs.text import one_line
from submarine_zeppelin.interface import NoteParagraph, Place

#: Before a paragraph's number where a cell's label is wanted; ``wording`` makes a word of it.
MARK = "¶"
GROUP = "submarine"
#: Words in brackets behind the interpreter's name.
OPTIONS = ("only", "local")
_HEAD = re.compile(r"[ \t\r\n]*%([A-Za-z_][\w-]*(?:\.[\w-]+)*)(\([^)\n]*\))?")
_SHELL_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*)*\.sh")
_PYTHONS = ("python", "ipython", "pyspark", "ipyspark", "jupyter")
_MAX_NOTES = 500


@dataclass(frozen=True)
class Head:
    """What stands before a paragraph's body; ``name`` is empty where nothing does."""

    name: str = ""
    body: str = ""
    first_line: int = 1
    options: frozenset[str] = frozenset()


def head_of(text: str) -> Head:
    """Split a paragraph into the name of its interpreter and its body."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    match = _HEAD.match(text)
    if match is None:
        return Head(body=text)
    line = text[: match.end()].count("\n") + 1
    rest = text[match.end() :]
    same, newline, below = rest.partition("\n")
    options = frozenset(word.strip() for word in (match[2] or "").strip("()").split(","))
    if newline and not same.strip():
        return Head(match[1], below, line + 1, options)
    return Head(match[1], rest.lstrip(" \t"), line, options)


@dataclass
class Spellings:
    """By which names a note calls this group: it may have been set up under another one."""

    groups: set[str] = field(default_factory=lambda: {GROUP})
    #: Whether the group is the note's default, so that ``%python`` is ours as well.
    bare: bool = False

    def learn(self, entry: str, text: str) -> None:
        """Take note of how a paragraph that came to us for ``entry`` is spelled."""
        name = head_of(text).name
        group, dot, last = name.rpartition(".")
        if dot and last == entry:
            self.groups.add(group)
        elif name and not dot and entry == GROUP:
            self.groups.add(name)
        elif name in ("", entry) and text.strip():
            self.bare = True

    def entry_of(self, name: str) -> str | None:
        """The entry that a name means: ``submarine``, ``python``, ``sh``; None: not ours."""
        group, dot, last = name.rpartition(".")
        if dot:
            return last if group in self.groups and last in (GROUP, "python", "sh") else None
        if name in self.groups:
            return GROUP
        if self.bare and name in ("", "python", "sh"):
            return name or GROUP
        return None


_SPELLINGS: OrderedDict[str, Spellings] = OrderedDict()


def spellings_of(note_id: str) -> Spellings:
    """What is known of one note, in this process."""
    found = _SPELLINGS.setdefault(note_id, Spellings())
    _SPELLINGS.move_to_end(note_id)
    while len(_SPELLINGS) > _MAX_NOTES:
        _SPELLINGS.popitem(last=False)
    return found


#: Note and paragraph -> the text whose last run raised an exception, and which.
_RAISED: OrderedDict[Place, tuple[str, str]] = OrderedDict()
_MAX_RAISED = 2000


def note_raised(place: Place, body: str, raised: str) -> None:
    """Remember that the last run of a paragraph raised ``raised``; empty: it raised nothing."""
    _RAISED.pop(place, None)
    if raised:
        _RAISED[place] = (body, raised)
        while len(_RAISED) > _MAX_RAISED:
            _RAISED.popitem(last=False)


def mark_raised(collection: CellCollection, note_id: str, note: Sequence[Paragraph]) -> None:
    """Mark the collected paragraphs whose present text raised an exception when it ran last."""
    for item in note:
        body, raised = _RAISED.get((note_id, item.paragraph_id), ("", ""))
        if raised and body == item.body:
            collection.mark_raised(item.paragraph_id, item.label, raised)


@dataclass(frozen=True)
class Paragraph:
    """One paragraph of a note; ``entry`` None where it belongs to another interpreter.

    Attributes
    ----------
    options
        Words in brackets: ``only`` is collected and not run, ``local`` is run and not collected.
    """

    number: int
    paragraph_id: str
    title: str
    name: str
    entry: str | None
    body: str
    first_line: int
    options: frozenset[str] = frozenset()

    @property
    def local(self) -> bool:
        """It runs here only: no part of the program."""
        return "local" in self.options

    @property
    def label(self) -> str:
        """What names it where a cell would be named."""
        return f"{MARK}{self.number}"

    @property
    def file(self) -> str:
        """The file of the program that it belongs to; empty: to none.

        Raises
        ------
        UsageError
            If its title is the name of a file that no program may have.
        """
        title = self.title.strip()
        if self.entry == "python":
            if not title.endswith(".py"):
                return PROGRAM
            try:
                return check_file_name(title)
            except UsageError as error:
                wrong = error.message.replace(f'--file "{title[:80]}"', "its title", 1)
                raise self._wrong(wrong, error.fix) from None
        if self.entry == "sh" and title.endswith(".sh"):
            if not _SHELL_FILE.fullmatch(title) or len(title) > 200:
                raise self._wrong(
                    "its title cannot be a file of a program.",
                    "Use letters, digits, _ and -, such as prepare.sh.",
                )
            return title
        return ""

    def _wrong(self, what: str, fix: str) -> UsageError:
        return UsageError(f"Paragraph {self.number}, {one_line(self.title, 80)!r}: {what}", fix)


def read_note(paragraphs: Iterable[NoteParagraph], spellings: Spellings) -> list[Paragraph]:
    """The paragraphs of a note as they are now."""
    found = []
    for number, item in enumerate(paragraphs, start=1):
        head = head_of(item.text or "")
        entry = spellings.entry_of(head.name)
        found.append(
            Paragraph(
                number,
                item.paragraph_id,
                item.title or "",
                head.name,
                entry,
                head.body,
                head.first_line,
                head.options,
            )
        )
    return found


def check_options(entry: str, options: Iterable[str], where: str = "") -> None:
    """Refuse a misspelt word in the brackets: it would run, or be collected, against the wish.

    Raises
    ------
    UsageError
        If there is one that means nothing; ``name=value`` is Zeppelin's own matter.
    """
    for word in options:
        near = difflib.get_close_matches(word.partition("=")[0].lower(), OPTIONS, 1)
        if word and word not in OPTIONS and (near or "=" not in word):
            hint = f"Did you mean ({near[0]})?" if near else f"It takes ({') or ('.join(OPTIONS)})."
            raise UsageError(f"{where}%submarine.{entry} takes no ({word[:40]}).", hint)


def collect(note: Sequence[Paragraph]) -> CellCollection:
    """The Python paragraphs as collected cells.

    Raises
    ------
    UsageError
        If a title is no file name, a paragraph holds what a program cannot, or a word in its
        brackets means nothing.
    """
    collection = CellCollection()
    for item in note:
        if item.entry == "python":
            check_options(item.entry, sorted(item.options), f"Paragraph {item.number}: ")
        if item.entry == "python" and not item.local and item.body.strip():
            collection.add(
                Cell(
                    item.paragraph_id, item.body, item.file, item.label, first_line=item.first_line
                )
            )
    return collection


def elsewhere(note: Sequence[Paragraph]) -> list[DocumentCell]:
    """Python paragraphs outside the program: where a name that is missing may be defined."""
    return [
        DocumentCell(item.paragraph_id, item.body, item.label)
        for item in note
        if (item.entry == "python" and item.local)
        or (item.entry is None and item.name.rpartition(".")[2].lower() in _PYTHONS)
    ]


def shell_files(note: Sequence[Paragraph]) -> dict[str, bytes]:
    """The files that shell paragraphs make: those of the same title joined in their order."""
    parts: dict[str, list[str]] = {}
    for item in note:
        if item.entry == "sh" and not item.local and item.body.strip() and (name := item.file):
            parts.setdefault(name, []).append(item.body.rstrip() + "\n")
    return {name: "\n".join(texts).encode("utf-8", "replace") for name, texts in parts.items()}


def bundle_of(note: Sequence[Paragraph], collection: CellCollection, program: str) -> Bundle:
    """The program of a note, its shell files beside the Python ones."""
    bundle = build_bundle(collection.cells(), program=program)
    return replace(bundle, files={**shell_files(note), **bundle.files})
