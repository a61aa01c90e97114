"""What ``%submarine.python`` and ``%submarine.sh`` share: a paragraph runs here and is stopped.

Says how a paragraph begins, is stopped and fails; what running is, the two say themselves.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from submarine_jobs.errors import SubmarineError
from submarine_zeppelin.interface import (
    Code,
    Context,
    Interpreter,
    Kind,
    Message,
    Output,
    ParagraphGoneError,
    Place,
    Result,
    Server,
)
from submarine_zeppelin.notes import Paragraph, check_options, read_note, sentence, spellings_of


class LocalInterpreter(Interpreter):
    """An entry whose paragraphs run on Zeppelin's machine.

    Attributes
    ----------
    entry
        Its name in the group: ``python``, ``sh``.
    """

    entry: ClassVar[str]

    def __init__(self, properties: Mapping[str, str], server: Server, session: str) -> None:
        super().__init__(properties, server, session)
        self._lock = threading.Lock()
        self._stops: dict[Place, threading.Event] = {}

    def interpret(self, text: str, context: Context, output: Output) -> Result:
        """Run a paragraph's text; ``(only)`` and a recovered one are not run."""
        spellings_of(context.note_id).learn(self.entry, context.text)
        stop = threading.Event()
        with self._lock:
            self._stops[context.place] = stop
        try:
            if context.recovering:
                return _said("The interpreter was started again; run this paragraph once more.")
            found = self.server.paragraphs(context.note_id, context.user)
            note = read_note(found, spellings_of(context.note_id))
            mine = next((item for item in note if item.paragraph_id == context.paragraph_id), None)
            check_options(
                self.entry, (k if v in ("", k) else f"{k}={v}" for k, v in context.options.items())
            )
            if "only" in context.options:
                return _said(self._collected(mine))
            return self._run(text, context, output, note, mine, stop)
        except ParagraphGoneError:
            return Result(Code.ERROR)
        except SubmarineError as error:
            return Result(Code.ERROR, (Message(Kind.TEXT, sentence(error)),))
        finally:
            with self._lock:
                if self._stops.get(context.place) is stop:
                    del self._stops[context.place]

    @abstractmethod
    def _run(
        self,
        text: str,
        context: Context,
        output: Output,
        note: list[Paragraph],
        mine: Paragraph | None,
        stop: threading.Event,
    ) -> Result:
        """Run ``text`` until it ends or ``stop`` is set; ``mine`` is its place in the note."""

    @abstractmethod
    def _collected(self, mine: Paragraph | None) -> str:
        """What is said of a paragraph that is collected and not run."""

    def cancel(self, context: Context) -> None:
        """Stop the paragraph, or keep it from starting."""
        with self._lock:
            stop = self._stops.get(context.place)
        if stop is not None:
            stop.set()

    def close(self) -> None:
        """Stop all paragraphs."""
        with self._lock:
            for stop in self._stops.values():
                stop.set()


def _said(text: str) -> Result:
    return Result(Code.SUCCESS, (Message(Kind.TEXT, text),))
