"""A note without Zeppelin: its paragraphs, what they show, and the interpreters of one session."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from html import unescape

from submarine_zeppelin.execution import ResourcePool
from submarine_zeppelin.interface import (
    Code,
    Context,
    Interpreter,
    Kind,
    Message,
    NoteParagraph,
    Output,
    ParagraphGoneError,
    Result,
    Server,
    make_interpreter,
)
from submarine_zeppelin.thrift import EventClient

#: Far more than anything takes on a machine that others use too.
PATIENCE = 120.0
#: Seconds in which a paragraph that a failed test has left must stop.
_LEFT = 20.0


def plain(messages: Sequence[Message]) -> str:
    """What a reader sees of an output."""
    texts = [
        unescape(re.sub(r"<[^>]*>", "", one.data)) if one.kind is Kind.HTML else one.data
        for one in messages
    ]
    return "\n".join(texts)


class ShownOutput(Output):
    """A paragraph's output, as a browser has it."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.links: list[tuple[str, str]] = []
        self.gone = False
        self.shows = 0
        self.largest = 0

    def show(self, messages: Sequence[Message]) -> None:
        self._check()
        self.shows += 1
        self.messages = list(messages)
        self.largest = max(self.largest, sum(len(one.data) for one in messages))

    def append(self, text: str, kind: Kind = Kind.TEXT) -> None:
        self._check()
        last = self.messages[-1] if self.messages else None
        if last is not None and last.kind is kind:
            self.messages[-1] = Message(kind, last.data + text)
        else:
            self.messages.append(Message(kind, text))

    def link(self, label: str, url: str, tooltip: str = "") -> None:
        self._check()
        self.links.append((label, url))

    @property
    def text(self) -> str:
        return plain(self.messages)

    def _check(self) -> None:
        if self.gone:
            raise ParagraphGoneError("gone")


class Note(Server):
    """A note, its server and its session."""

    def __init__(self, properties: Mapping[str, str], note_id: str = "2JNOTE") -> None:
        self.properties = {"submarine.allow.service.user": "true", **properties}
        self.note_id = note_id
        self._paragraphs: dict[str, tuple[str, str]] = {}
        self.outputs: dict[str, ShownOutput] = {}
        self._interpreters: dict[str, Interpreter] = {}
        self._started: list[Running] = []
        #: Zeppelin's server is not there: values of other processes are not found.
        self.resources = ResourcePool(EventClient("127.0.0.1", 1, "group"))

    def write(self, paragraph: str, text: str, title: str = "") -> None:
        """Add a paragraph, or edit it."""
        self._paragraphs[paragraph] = (title, text)

    def paragraphs(self, note_id: str, user: str) -> list[NoteParagraph]:
        return [NoteParagraph(note_id, key, *pair) for key, pair in self._paragraphs.items()]

    def output(self, context: Context) -> ShownOutput:
        return self.outputs.setdefault(context.paragraph_id, ShownOutput())

    def context(self, paragraph: str, **more: object) -> Context:
        title, text = self._paragraphs.get(paragraph, ("", ""))
        values = {"note_name": "digits", "title": title, "text": text, **more}
        return Context(self.note_id, paragraph, **values)  # type: ignore[arg-type]

    def entry(self, name: str) -> Interpreter:
        """The interpreter of an entry: ``Submarine``, ``Python`` or ``Shell``."""
        if name not in self._interpreters:
            made = make_interpreter(f"submarine_zeppelin.{name}", self.properties, self, "session")
            self._interpreters[name] = made
        return self._interpreters[name]

    def used(self) -> list[Interpreter]:
        """The interpreters that have run paragraphs."""
        return list(self._interpreters.values())

    def run(self, paragraph: str, **more: object) -> Result:
        """Run a paragraph as Zeppelin does, to its end; what it returns lies in its output."""
        text = self._paragraphs[paragraph][1]
        head, _, body = text.partition("\n")
        found = re.match(r"%submarine(?:\.(python|sh))?(?:\(([\w=]+)\))?(.*)", head)
        assert found is not None, text
        name = {None: "Submarine", "python": "Python", "sh": "Shell"}[found[1]]
        key, _, value = (found[2] or "").partition("=")
        options = {key: value or key} if key else {}
        script = f"{found[3]}\n{body}" if body else found[3]
        output = self.outputs[paragraph] = ShownOutput()
        context = self.context(paragraph, options=options, **more)
        interpreter = self.entry(name)
        result = interpreter.interpret(interpreter.expand(script, context), context, output)
        if result.code is not Code.KEEP:
            output.messages = list(result.messages)
        return result

    def start(self, paragraph: str, **more: object) -> Running:
        """Run a paragraph in the background."""
        self._started.append(Running(self, paragraph, more))
        return self._started[-1]

    def close(self) -> None:
        """Stop the paragraphs that a failed test has left running, and end the session."""
        for left in [one for one in self._started if one.running]:
            left.stop()
        for interpreter in self._interpreters.values():
            interpreter.close()
        self._interpreters.clear()


class Running:
    """A paragraph that runs."""

    def __init__(self, note: Note, paragraph: str, more: Mapping[str, object]) -> None:
        self._results: list[Result] = []
        self._errors: list[BaseException] = []

        self._note, self._paragraph = note, paragraph

        def run() -> None:
            try:
                self._results.append(note.run(paragraph, **more))
            except BaseException as error:
                self._errors.append(error)

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        """Cancel it, and wait a moment for its end."""
        for interpreter in self._note.used():
            interpreter.cancel(self._note.context(self._paragraph))
        self._thread.join(_LEFT)

    def end(self) -> Result:
        """Its result, waited for."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        assert not self._errors, self._errors
        return self._results[0]
