"""Base class of interpreters, with the types of their arguments and results.

Interpreters depend on nothing else of Zeppelin and are tested without it. ``thrift`` and
``execution`` convert Zeppelin's calls to these types.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from submarine_runtime.translation import _
from submarine_zeppelin.interface.java_values import ResourceValue


class Kind(enum.StrEnum):
    """Output types of Zeppelin. Its pages do not sanitize ``HTML``: escape all text."""

    TEXT = "TEXT"
    HTML = "HTML"
    TABLE = "TABLE"
    IMG = "IMG"


#: User of a paragraph where Zeppelin has no authentication; Zeppelin's own name.
ANONYMOUS = "anonymous"
#: Option of a paragraph about the forms in its text.
FORM_OPTION = "form"
#: Ids of a note and of one of its paragraphs.
ParagraphKey = tuple[str, str]


class Code(enum.StrEnum):
    """How a paragraph ended."""

    SUCCESS = "SUCCESS"
    ERROR = "ERROR"
    #: Success; the output that was streamed and saved is kept.
    KEEP = "KEEP_PREVIOUS_RESULT"


@dataclass(frozen=True)
class Message:
    """One part of a paragraph's output."""

    kind: Kind
    data: str


@dataclass(frozen=True)
class Result:
    """Result of a run. ``messages`` replace the streamed output unless the code is ``KEEP``.

    Attributes
    ----------
    forms
        Zeppelin's dynamic forms (``gui``): ``{"params": {...}, "forms": {...}}``. None keeps them.
    """

    code: Code
    messages: tuple[Message, ...] = ()
    forms: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Context:
    """Paragraph, user and options of a run.

    Attributes
    ----------
    title
        Title of the paragraph, for ``%submarine.python`` the name of its file; may be empty.
    user
        User that Zeppelin authenticated; ``anonymous`` without authentication.
    options
        Words in parentheses after the interpreter's name: ``{"only": "only"}`` for
        ``%submarine.python(only)``.
    params
        Values of the dynamic forms.
    forms
        Dynamic forms that Zeppelin itself has found in the text (option ``form=simple``).
    config
        Settings of the paragraph, which are returned unchanged.
    recovering
        The server reconnects to a running paragraph: attach to it and start nothing.
    """

    note_id: str
    paragraph_id: str
    note_name: str = ""
    title: str = ""
    text: str = ""
    user: str = ANONYMOUS
    roles: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    forms: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    recovering: bool = False

    @property
    def key(self) -> ParagraphKey:
        """Note id and paragraph id; copies of a note have the same paragraph ids."""
        return self.note_id, self.paragraph_id

    @property
    def form_mode(self) -> str:
        """Value of the option ``form``, in lower case: ``simple``, ``native`` or empty."""
        return self.options.get(FORM_OPTION, "").strip().lower()


@dataclass(frozen=True)
class NoteParagraph:
    """A paragraph as the server has it; ``text`` includes the ``%interpreter`` line."""

    note_id: str
    paragraph_id: str
    title: str
    text: str


@dataclass(frozen=True)
class Completion:
    """One completion: displayed text, inserted text and kind.

    Zeppelin's classic page does not show a list if completions have a kind.
    """

    name: str
    value: str
    meta: str = ""


class Output(Protocol):
    """Output of a paragraph, during its run and afterwards. Methods are thread-safe.

    Raises
    ------
    ParagraphGoneError
        By each method, if the paragraph or its note was deleted, or if the paragraph was run again
        and this is the output of an earlier run.
    """

    def show(self, messages: Sequence[Message]) -> None:
        """Replace the output and save it with the note."""

    def append(self, text: str, kind: Kind = Kind.TEXT) -> None:
        """Append to the last message if it has this kind, else add a message. Saved later."""

    def link(self, label: str, url: str, tooltip: str = "") -> None:
        """Set the job link below the paragraph; only http and https."""


class Resources(Protocol):
    """Values that the interpreters of a Zeppelin share, by name.

    Raises
    ------
    ValueError
        By each method, if the value cannot be shared or read.
    """

    def put(self, name: str, value: ResourceValue) -> None:
        """Set a value of this process."""

    def get(self, name: str) -> ResourceValue | None:
        """Return a value of this process, or else of another; None if there is none."""

    def remove(self, name: str) -> bool:
        """Remove a value of this process; return whether there was one."""


class NoResources(Resources):
    """The resources of a server that shares none."""

    def put(self, name: str, value: ResourceValue) -> None:
        """Refuse the value."""
        raise ValueError(_("this server shares no values"))

    def get(self, name: str) -> ResourceValue | None:
        """Return None."""
        return None

    def remove(self, name: str) -> bool:
        """Return False."""
        return False


class Server(Protocol):
    """Calls of an interpreter to Zeppelin's server. Each call has a timeout.

    Attributes
    ----------
    group
        The server's id of this process.
    resources
        The values that interpreters share.
    """

    group: str = ""
    resources: Resources = NoResources()

    def paragraphs(self, note_id: str, user: str) -> list[NoteParagraph]:
        """Return all paragraphs of a note in order."""

    def output(self, context: Context) -> Output:
        """Return the output of a paragraph, also after its run."""


class ParagraphGoneError(Exception):
    """The paragraph or its note was deleted, or shows a later run."""


class Interpreter(ABC):
    """Interpreter of one session. Methods are called from several threads.

    Parameters
    ----------
    properties
        Settings from Zeppelin's administrator. They may contain secrets and must not be logged.
    server
        Zeppelin's server.
    session
        Id of the session: one for all (shared), or per note or user (scoped, isolated).
    """

    def __init__(self, properties: Mapping[str, str], server: Server, session: str) -> None:
        self.properties = properties
        self.server = server
        self.session = session

    @abstractmethod
    def interpret(self, text: str, context: Context, output: Output) -> Result:
        """Run a paragraph until it ends or is cancelled.

        Errors of the user or the cluster are returned as a ``Result`` with code ``ERROR``.
        """

    def expand(self, text: str, context: Context) -> str:
        """Return the text that is run, with the values of its forms. Must not block.

        A run of the same paragraph with other values is another run.
        """
        return text

    @abstractmethod
    def cancel(self, context: Context) -> None:
        """Request that a running paragraph stops, and return at once."""

    def serial_key(self, context: Context) -> str:
        """Return a key: paragraphs with the same key run in sequence, others in parallel."""
        return context.note_id

    def active(self, context: Context) -> bool:
        """Whether work that the paragraph started continues after ``interpret`` has returned.

        In this case the same text is not run again and the output stays. Called before each
        repeated run of a text; must not block.
        """
        return False

    def progress(self, context: Context) -> int:
        """Return the progress of a running paragraph in percent. Called often; must not block."""
        return 0

    def completion(self, text: str, cursor: int, context: Context) -> list[Completion]:
        """Return completions for the text before ``cursor``."""
        return []

    def close(self) -> None:  # noqa: B027  (most interpreters hold no resources)
        """Release the resources of the session. Jobs continue."""
