"""Read the paragraphs of a note as the cells of a program.

The program consists of the paragraphs of this group, run or not, in the order of the note. The
title of a paragraph may name a Python or shell file of the program; other Python paragraphs belong
to the main program. ``submarine_jobs`` merges and checks the cells.
"""

from __future__ import annotations

import difflib
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
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
from submarine_runtime.translation import _
from submarine_zeppelin.interface import FORM_OPTION, Context, NoteParagraph, ParagraphKey
from submarine_zeppelin.notes.form_templates import (
    SIMPLE,
    FormRun,
    expand_body,
    forms_of,
    record_forms,
)

#: Prefix of a paragraph's number in a cell's label; ``wording`` replaces it in messages.
MARK = "¶"
GROUP = "submarine"
#: Words in parentheses after the interpreter's name.
OPTIONS = ("only", "local")
_HEADER = re.compile(r"[ \t\r\n]*%([A-Za-z_][\w-]*(?:\.[\w-]+)*)(\([^)\n]*\))?")
_SHELL_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*)*\.sh")
_PYTHONS = ("python", "ipython", "pyspark", "ipyspark", "jupyter")
_MAX_NOTES = 500


@dataclass(frozen=True)
class Header:
    """Interpreter name, options and body of a paragraph; ``name`` may be empty.

    Attributes
    ----------
    name
        Interpreter name; empty if the paragraph has none.
    body
        Text after the interpreter's name and its options.
    first_line
        Line number of the first line of ``body`` in the editor, from 1.
    options
        Words in parentheses after the interpreter's name.
    """

    name: str = ""
    body: str = ""
    first_line: int = 1
    options: frozenset[str] = frozenset()

    @property
    def form_mode(self) -> str:
        """Value of the option ``form``, in lower case; empty if there is none."""
        return _form_mode(self.options)


def _form_mode(options: Iterable[str]) -> str:
    for word in options:
        name, _equals, value = word.partition("=")
        if name.strip() == FORM_OPTION:
            return value.strip().lower()
    return ""


def parse_header(text: str) -> Header:
    """Split a paragraph into interpreter name, options and body."""
    text = normalize_newlines(text)
    match = _HEADER.match(text)
    if match is None:
        return Header(body=text)
    line = text[: match.end()].count("\n") + 1
    body, lines = _split_body(text[match.end() :])
    options = frozenset(word.strip() for word in (match[2] or "").strip("()").split(","))
    return Header(match[1], body, line + lines, options)


def _split_body(rest: str) -> tuple[str, int]:
    """Return the body after an interpreter's name, and on which line after it the body begins."""
    same, newline, below = rest.partition("\n")
    return (below, 1) if newline and not same.strip() else (rest.lstrip(" \t"), 0)


def normalize_newlines(text: str) -> str:
    """Replace all line ends by newlines."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def record_form_values(text: str, context: Context) -> None:
    """Record the values of a paragraph's forms, at its start, for the program of the note.

    Parameters
    ----------
    text
        The text that Zeppelin has sent, in which it may have replaced the forms.
    """
    run = FormRun(context.params)
    if context.form_mode == SIMPLE:
        head = parse_header(context.text)
        text = normalize_newlines(text)
        run = FormRun(context.params, head.body, _split_body(text)[0] if head.name else text)
    record_forms(context.key, run)


@dataclass
class InterpreterNames:
    """Names of this group in a note. The group may be configured under other names."""

    groups: set[str] = field(default_factory=lambda: {GROUP})
    #: Whether the group is the default of the note, so that it also has the name ``%python``.
    bare: bool = False

    def learn(self, entry: str, text: str) -> None:
        """Learn the names from a paragraph that Zeppelin sent to the interpreter ``entry``."""
        name = parse_header(text).name
        group, dot, last = name.rpartition(".")
        if dot and last == entry:
            self.groups.add(group)
        elif name and not dot and entry == GROUP:
            self.groups.add(name)
        elif name in ("", entry) and text.strip():
            self.bare = True

    def entry_of(self, name: str) -> str | None:
        """Return ``submarine``, ``python`` or ``sh`` for a name; None for other interpreters."""
        group, dot, last = name.rpartition(".")
        if dot:
            return last if group in self.groups and last in (GROUP, "python", "sh") else None
        if name in self.groups:
            return GROUP
        if self.bare and name in ("", "python", "sh"):
            return name or GROUP
        return None


_NAMES: OrderedDict[str, InterpreterNames] = OrderedDict()


def interpreter_names(note_id: str) -> InterpreterNames:
    """Return the names that this process has learned for a note."""
    names = _NAMES.setdefault(note_id, InterpreterNames())
    _NAMES.move_to_end(note_id)
    while len(_NAMES) > _MAX_NOTES:
        _NAMES.popitem(last=False)
    return names


#: Paragraph -> text and description of an exception that the last run of the text raised.
_RAISED: OrderedDict[ParagraphKey, tuple[str, str]] = OrderedDict()
_MAX_RAISED = 2000


def record_exception(key: ParagraphKey, body: str, raised: str) -> None:
    """Record the exception of a paragraph's last run; an empty string means none."""
    _RAISED.pop(key, None)
    if raised:
        _RAISED[key] = (body, raised)
        while len(_RAISED) > _MAX_RAISED:
            _RAISED.popitem(last=False)


def mark_raised(collection: CellCollection, note_id: str, note: Sequence[Paragraph]) -> None:
    """Mark collected paragraphs if their current text raised an exception in its last run."""
    for item in note:
        body, raised = _RAISED.get((note_id, item.paragraph_id), ("", ""))
        if raised and body == item.body:
            collection.mark_raised(item.paragraph_id, item.label, raised)


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of a note. ``entry`` is None for other interpreters.

    Attributes
    ----------
    options
        ``only``: part of the program, not run here. ``local``: run here, not part of the program.
    body
        Text with the values of its forms.
    unknown_form
        A form whose value is not known, because the paragraph has not been run; empty if none.
    raw
        Text of the body in the note.
    """

    number: int
    paragraph_id: str
    title: str
    name: str
    entry: str | None
    body: str
    first_line: int
    options: frozenset[str] = frozenset()
    unknown_form: str = ""
    raw: str = ""

    @property
    def form_mode(self) -> str:
        """Value of the option ``form``, in lower case; empty if there is none."""
        return _form_mode(self.options)

    @property
    def local(self) -> bool:
        """Whether the paragraph runs here only and is not part of the program."""
        return "local" in self.options

    @property
    def label(self) -> str:
        """Label of the paragraph in place of a cell's label."""
        return f"{MARK}{self.number}"

    @property
    def file(self) -> str:
        """File of the program to which the paragraph belongs; empty if none.

        Raises
        ------
        UsageError
            If the title is an invalid file name.
        """
        title = self.title.strip()
        if self.entry == "python":
            if not title.endswith(".py"):
                return PROGRAM
            try:
                return check_file_name(title)
            except UsageError as error:
                message = error.message.replace(f'--file "{title[:80]}"', "its title", 1)
                raise self._title_error(message, error.fix) from None
        if self.entry == "sh" and title.endswith(".sh"):
            if not _SHELL_FILE.fullmatch(title) or len(title) > 200:
                raise self._title_error(
                    _("its title is not a valid file name."),
                    _("Use letters, digits, _ and -, such as prepare.sh."),
                )
            return title
        return ""

    def check_forms(self) -> None:
        """Raise an error if the values of the paragraph's forms are not known.

        Raises
        ------
        UsageError
            If a value is not known.
        """
        if self.unknown_form:
            raise UsageError(
                _(
                    "Paragraph {number}: the value of its form {form} is not known, because the "
                    "paragraph has not been run since its text was changed or the interpreter was "
                    "started."
                ).format(number=self.number, form=one_line(self.unknown_form, 60)),
                _("Run the paragraph; with (only) it runs nothing."),
            )

    def _title_error(self, message: str, fix: str) -> UsageError:
        return UsageError(
            _("Paragraph {number}, {title!r}: {message}").format(
                number=self.number, title=one_line(self.title, 80), message=message
            ),
            fix,
        )


def read_note(
    paragraphs: Iterable[NoteParagraph],
    names: InterpreterNames,
    forms: Callable[[ParagraphKey], FormRun | None] = forms_of,
) -> list[Paragraph]:
    """Return the current paragraphs of a note, with the values of their forms.

    Parameters
    ----------
    forms
        Returns the last run of a paragraph.
    """
    result = []
    for number, item in enumerate(paragraphs, start=1):
        head = parse_header(item.text or "")
        entry = names.entry_of(head.name)
        body, unknown = head.body, ""
        if entry is not None and (entry != "sh" or head.form_mode == SIMPLE):
            run = forms((item.note_id, item.paragraph_id))
            body, unknown = expand_body(body, head.form_mode, run)
        result.append(
            Paragraph(
                number,
                item.paragraph_id,
                item.title or "",
                head.name,
                entry,
                body,
                head.first_line,
                head.options,
                unknown,
                head.body,
            )
        )
    return result


def check_options(entry: str, options: Iterable[str], where: str = "") -> None:
    """Reject unknown words in the parentheses, such as misspelled options.

    Raises
    ------
    UsageError
        If there is an unknown word. ``name=value`` is an option of Zeppelin.
    """
    for word in options:
        near = difflib.get_close_matches(word.partition("=")[0].lower(), OPTIONS, 1)
        if word and word not in OPTIONS and (near or "=" not in word):
            hint = (
                _("Did you mean ({near})?").format(near=near[0])
                if near
                else _("Use ({options}).").format(options=") or (".join(OPTIONS))
            )
            raise UsageError(
                _("{where}%submarine.{entry} has no option ({word}).").format(
                    where=where, entry=entry, word=word[:40]
                ),
                hint,
            )


def collect_cells(note: Sequence[Paragraph]) -> CellCollection:
    """Collect the Python paragraphs as cells.

    Raises
    ------
    UsageError
        If a title is not a file name, a paragraph cannot be part of a program, its options contain
        an unknown word, or the value of a form is not known.
    """
    collection = CellCollection()
    for item in note:
        if item.entry == "python":
            check_options(
                item.entry,
                sorted(item.options),
                _("Paragraph {number}: ").format(number=item.number),
            )
        if item.entry == "python" and not item.local and item.body.strip():
            item.check_forms()
            collection.add(
                Cell(
                    item.paragraph_id, item.body, item.file, item.label, first_line=item.first_line
                )
            )
    return collection


def other_python_cells(note: Sequence[Paragraph]) -> list[DocumentCell]:
    """Return Python paragraphs outside the program, which may define missing names."""
    return [
        DocumentCell(item.paragraph_id, item.body, item.label)
        for item in note
        if (item.entry == "python" and item.local)
        or (item.entry is None and item.name.rpartition(".")[2].lower() in _PYTHONS)
    ]


def shell_files(note: Sequence[Paragraph]) -> dict[str, bytes]:
    """Return the files of shell paragraphs. Paragraphs with the same title form one file."""
    parts: dict[str, list[str]] = {}
    for item in note:
        if item.entry == "sh" and not item.local and item.body.strip() and (name := item.file):
            item.check_forms()
            parts.setdefault(name, []).append(item.body.rstrip() + "\n")
    return {name: "\n".join(texts).encode("utf-8", "replace") for name, texts in parts.items()}


def build_note_bundle(
    note: Sequence[Paragraph], collection: CellCollection, program: str
) -> Bundle:
    """Build the bundle of a note, with its Python and shell files."""
    bundle = build_bundle(collection.cells(), program=program)
    return replace(bundle, files={**shell_files(note), **bundle.files})
