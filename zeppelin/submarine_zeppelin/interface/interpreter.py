"""What an interpreter is given and what it gives back; knows nothing of thrift.

The server side (``serving``) turns Zeppelin's calls into these; the interpreters of the group
(``interpreters``) see nothing else of Zeppelin, so that they are tested without one.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


class Kind(enum.StrEnum):
    """Zeppelin's types of output that we use; ``HTML`` is trusted by its pages: escape all text."""

    TEXT = "TEXT"
    HTML = "HTML"
    TABLE = "TABLE"
    IMG = "IMG"


#: The ids of a note and of one of its paragraphs.
Place = tuple[str, str]


class Code(enum.StrEnum):
    """How a paragraph ended."""

    SUCCESS = "SUCCESS"
    ERROR = "ERROR"
    #: What was streamed and saved stays as it is.
    KEEP = "KEEP_PREVIOUS_RESULT"


@dataclass(frozen=True)
class Message:
    """One piece of a paragraph's output."""

    kind: Kind
    data: str


@dataclass(frozen=True)
class Result:
    """What an execution gives back; ``messages`` replace what was streamed, unless ``KEEP``.

    Attributes
    ----------
    forms
        Zeppelin's dynamic forms (``gui``): ``{"params": {...}, "forms": {...}}``; None: unchanged.
    """

    code: Code
    messages: tuple[Message, ...] = ()
    forms: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Context:
    """Where and for whom a paragraph runs.

    Attributes
    ----------
    title
        The paragraph's title: for ``%submarine.python`` the name of its file; empty: none.
    user
        Who runs it, as Zeppelin authenticated them; ``anonymous`` where it does not.
    options
        Words in brackets after the interpreter's name: ``%submarine.python(only)`` has
        ``{"only": "only"}`` or as the server sends it.
    params
        Values of the dynamic forms.
    config
        The paragraph's settings, to be given back unchanged.
    recovering
        The server reconnects to a paragraph that was running: attach, start nothing.
    """

    note_id: str
    paragraph_id: str
    note_name: str = ""
    title: str = ""
    text: str = ""
    user: str = "anonymous"
    roles: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    recovering: bool = False

    @property
    def place(self) -> Place:
        """The paragraph itself: a clone or an import of a note has the ids of its paragraphs."""
        return self.note_id, self.paragraph_id


@dataclass(frozen=True)
class NoteParagraph:
    """A paragraph of a note as the server has it now; ``text`` with its ``%interpreter`` line."""

    note_id: str
    paragraph_id: str
    title: str
    text: str


@dataclass(frozen=True)
class Completion:
    """One proposal: what is shown, what is put in, and a word on its kind.

    Zeppelin's classic page shows no list at all where proposals have such a word.
    """

    name: str
    value: str
    meta: str = ""


class Output(Protocol):
    """A paragraph's output while it runs and after; every call is safe from any thread.

    Raises
    ------
    ParagraphGoneError
        By each method, where the paragraph or its note was deleted, or the paragraph was run
        again and this is the output of the run before: stop writing then.
    """

    def show(self, messages: Sequence[Message]) -> None:
        """Replace the whole output, and save it so that a reload shows the same."""

    def append(self, text: str, kind: Kind = Kind.TEXT) -> None:
        """Add to the last piece if it is of this kind, else begin a new one; not saved yet."""

    def link(self, label: str, url: str, tooltip: str = "") -> None:
        """The job's link below the paragraph; only http and https."""


class Server(Protocol):
    """What an interpreter may ask of Zeppelin's server; each call has a time limit.

    Attributes
    ----------
    group
        The id under which the server knows this process.
    """

    group: str = ""

    def paragraphs(self, note_id: str, user: str) -> list[NoteParagraph]:
        """All paragraphs of a note in their order."""

    def output(self, context: Context) -> Output:
        """The output of a paragraph, also after it has finished."""


class ParagraphGoneError(Exception):
    """The paragraph or its note is no longer there, or shows a later run."""


class Interpreter(ABC):
    """One entry of the group in one session; made once, used from several threads.

    Parameters
    ----------
    properties
        The settings that Zeppelin's administrator made; may hold secrets: never log them.
    server
        Zeppelin.
    session
        The session's id: one for all (shared), a note's or a user's (scoped, isolated).
    """

    def __init__(self, properties: Mapping[str, str], server: Server, session: str) -> None:
        self.properties = properties
        self.server = server
        self.session = session

    @abstractmethod
    def interpret(self, text: str, context: Context, output: Output) -> Result:
        """Run a paragraph; blocks until it has ended or was cancelled.

        Never raises for what a user or a cluster does: that is a ``Result`` of code ``ERROR``.
        """

    @abstractmethod
    def cancel(self, context: Context) -> None:
        """Ask a running paragraph to stop; returns at once."""

    def lane(self, context: Context) -> str:
        """Paragraphs of one lane run one after the other, those of others beside them."""
        return context.note_id

    def active(self, context: Context) -> bool:
        """Whether what the paragraph began goes on although ``interpret`` has returned.

        Then the same text is not run again, whatever Zeppelin asks for: the output stays and goes
        on. Asked before each run of a text that has been run; tells what is known already.
        """
        return False

    def progress(self, context: Context) -> int:
        """Percent of a running paragraph; asked every half second: tells what is known already."""
        return 0

    def completion(self, text: str, cursor: int, context: Context) -> list[Completion]:
        """Proposals for what stands before ``cursor`` in ``text``."""
        return []

    def close(self) -> None:  # noqa: B027  (most hold nothing)
        """The session ends: release what it holds. Jobs live on."""
