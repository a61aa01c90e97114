"""Base class of ``%submarine.python`` and ``%submarine.sh``: options, cancellation, errors."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from submarine_jobs.errors import SubmarineError
from submarine_runtime.translation import _
from submarine_zeppelin.interface import (
    Code,
    Context,
    Interpreter,
    Kind,
    Message,
    Output,
    ParagraphGoneError,
    ParagraphKey,
    Result,
    Server,
)
from submarine_zeppelin.notes import (
    Paragraph,
    check_options,
    error_text,
    interpreter_names,
    read_note,
    record_form_values,
)


class LocalInterpreter(Interpreter):
    """Interpreter that runs paragraphs on Zeppelin's machine.

    Attributes
    ----------
    entry
        Name in the group: ``python`` or ``sh``.
    """

    entry: ClassVar[str]

    def __init__(self, properties: Mapping[str, str], server: Server, session: str) -> None:
        super().__init__(properties, server, session)
        self._lock = threading.Lock()
        self._stops: dict[ParagraphKey, threading.Event] = {}

    def interpret(self, text: str, context: Context, output: Output) -> Result:
        """Run a paragraph, unless it has the option ``only`` or is recovered."""
        interpreter_names(context.note_id).learn(self.entry, context.text)
        record_form_values(text, context)
        stop = threading.Event()
        with self._lock:
            self._stops[context.key] = stop
        try:
            if context.recovering:
                return _text_result(_("The interpreter was restarted. Run this paragraph again."))
            paragraphs = self.server.paragraphs(context.note_id, context.user)
            note = read_note(paragraphs, interpreter_names(context.note_id))
            own = next((item for item in note if item.paragraph_id == context.paragraph_id), None)
            check_options(
                self.entry, (k if v in ("", k) else f"{k}={v}" for k, v in context.options.items())
            )
            if "only" in context.options:
                return replace(
                    _text_result(self._describe_collected(own)), forms=self._forms(context)
                )
            return self._run(text, context, output, note, own, stop)
        except ParagraphGoneError:
            return Result(Code.ERROR)
        except SubmarineError as error:
            message = Message(Kind.TEXT, error_text(error))
            return Result(Code.ERROR, (message,), self._forms(context))
        finally:
            with self._lock:
                if self._stops.get(context.key) is stop:
                    del self._stops[context.key]

    @abstractmethod
    def _run(
        self,
        text: str,
        context: Context,
        output: Output,
        note: list[Paragraph],
        own: Paragraph | None,
        stop: threading.Event,
    ) -> Result:
        """Run ``text`` until it ends or ``stop`` is set; ``own`` is its paragraph in the note."""

    @abstractmethod
    def _describe_collected(self, own: Paragraph | None) -> str:
        """Return the message for a paragraph that is part of the program and is not run."""

    def _forms(self, context: Context) -> Mapping[str, Any] | None:
        """Return the forms of a paragraph that did not run; None keeps those of Zeppelin."""
        return None

    def cancel(self, context: Context) -> None:
        """Stop a paragraph, or prevent its start."""
        with self._lock:
            stop = self._stops.get(context.key)
        if stop is not None:
            stop.set()

    def close(self) -> None:
        """Stop all paragraphs."""
        with self._lock:
            for stop in self._stops.values():
                stop.set()


def _text_result(text: str) -> Result:
    return Result(Code.SUCCESS, (Message(Kind.TEXT, text),))
