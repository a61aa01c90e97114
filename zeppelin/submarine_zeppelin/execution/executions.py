"""Run paragraphs, each at most once for repeated calls.

The server calls ``interpret`` up to three times if a call fails, a user may run a paragraph that is
running, and a restarted server asks for the result of a run. All these calls return the same run.
Each run has its own thread, so that the loss of a connection does not affect it.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import Final

from submarine_jobs.errors import SubmarineError
from submarine_runtime.translation import _
from submarine_zeppelin.execution.output import ParagraphOutput
from submarine_zeppelin.execution.output_writer import OutputWriter
from submarine_zeppelin.interface import (
    Code,
    Context,
    Interpreter,
    Kind,
    Message,
    ParagraphKey,
    Result,
)

log = logging.getLogger(__name__)
PENDING: Final = "PENDING"
RUNNING: Final = "RUNNING"
UNKNOWN: Final = "UNKNOWN"
#: Number of ended runs that are kept.
MAX_ENDED = 50
#: Seconds in which the server repeats a call if its result was lost.
RETRY_WINDOW = 30.0
#: Seconds between ``cancel`` and the answer of ``interpret``. If the answer comes sooner, the
#: server has not yet marked the paragraph as aborted and shows it as finished or failed.
CANCEL_DELAY = 1.0
#: Seconds in which a ``close`` follows a ``cancel`` that does not come from a user. A server that
#: stops or restarts an interpreter first cancels its runs; jobs must not be cancelled then.
CLOSE_WINDOW = 0.6
#: Seconds in which an interpreter must stop a cancelled run.
STOP_TIMEOUT = 15.0
_ENDING = Result(
    Code.ERROR,
    (Message(Kind.TEXT, _("The interpreter stops. Run this paragraph again.\n")),),
)


@dataclass(eq=False)
class Execution:
    """One run of a paragraph.

    Attributes
    ----------
    predecessors
        Runs that must end before this one starts.
    state
        ``PENDING``, then ``RUNNING``.
    cancelled_at, ended_at
        Times of ``time.monotonic``; None if it was not cancelled.
    delivered
        Whether the result has probably reached the server.
    """

    interpreter: Interpreter
    text: str
    context: Context
    output: ParagraphOutput
    predecessors: tuple[Execution, ...]
    state: str = PENDING
    result: Result | None = None
    cancelled_at: float | None = None
    ended_at: float = 0.0
    delivered: bool = False
    #: The result is available.
    finished: threading.Event = field(default_factory=threading.Event)
    #: The thread of the run has ended, and the runs after it may start.
    ended: threading.Event = field(default_factory=threading.Event)


class Executions:
    """All runs of this process. Thread-safe.

    Parameters
    ----------
    outputs
        Creates and saves the outputs of runs.
    """

    def __init__(self, outputs: OutputWriter) -> None:
        self._outputs = outputs
        self._lock = threading.Lock()
        self._runs: OrderedDict[ParagraphKey, Execution] = OrderedDict()
        #: The last run for each interpreter and serial key.
        self._last: dict[tuple[int, str], Execution] = {}
        self._numbers = itertools.count(1)
        self._stopped = False
        self._closed = threading.Condition()
        self._closed_ids: set[int] = set()

    def run(self, interpreter: Interpreter, text: str, context: Context) -> Execution:
        """Return the run for a call of ``interpret`` after it has finished."""
        text = interpreter.expand(text, context)
        execution = self._find_or_start(interpreter, text, context)
        execution.finished.wait()
        if execution.cancelled_at is not None:
            time.sleep(max(0.0, execution.cancelled_at + CANCEL_DELAY - time.monotonic()))
        return execution

    def result_sent(self, execution: Execution, *, delivered: bool) -> None:
        """Record whether the result has probably reached the server."""
        execution.delivered = execution.delivered or delivered

    def status(self, paragraph_id: str) -> str:
        """Return ``PENDING`` before a run, ``RUNNING`` during it, else ``UNKNOWN``.

        The server does not send the note, so this is the status in any copy of the note.
        """
        with self._lock:
            states = {
                execution.state
                for (_, paragraph), execution in self._runs.items()
                if paragraph == paragraph_id and not execution.finished.is_set()
            }
        return next((state for state in (RUNNING, PENDING) if state in states), UNKNOWN)

    def cancel(self, interpreter: Interpreter, context: Context) -> None:
        """Request that a run stops, and return at once. Its ``interpret`` returns soon after."""
        with self._lock:
            execution = self._runs.get(context.key)
            running = execution is not None and not execution.finished.is_set()
            if running and execution is not None and execution.cancelled_at is None:
                execution.cancelled_at = time.monotonic()
                if execution.state == PENDING:
                    execution.result = Result(Code.ERROR)
                    self._finish(execution)
                    return
        if execution is not None and running:
            interpreter, context = execution.interpreter, execution.context
            threading.Thread(target=self._await_stop, args=(execution,), daemon=True).start()
        threading.Thread(
            target=self._cancel, args=(interpreter, context), daemon=True, name="cancel"
        ).start()

    def expect_close(self, interpreter: Interpreter) -> None:
        """Discard pending cancellations of an interpreter that is about to be closed."""
        with self._closed:
            self._closed_ids.add(id(interpreter))
            self._closed.notify_all()

    def _cancel(self, interpreter: Interpreter, context: Context) -> None:
        with self._closed:
            if self._closed.wait_for(lambda: id(interpreter) in self._closed_ids, CLOSE_WINDOW):
                return
        try:
            interpreter.cancel(context)
        except Exception:
            log.exception("an interpreter could not cancel paragraph %s", context.paragraph_id)

    def busy(self) -> bool:
        """Whether any run is active or waiting."""
        with self._lock:
            return any(not one.ended.is_set() for one in self._runs.values())

    def stop(self) -> None:
        """Reject new runs, because the process is shutting down.

        Active runs are not cancelled, because that could cancel their jobs; their interpreters are
        closed instead.
        """
        with self._lock:
            self._stopped = True
            for execution in self._runs.values():
                if execution.state == PENDING and not execution.finished.is_set():
                    execution.result = _ENDING
                    self._finish(execution)

    def _find_or_start(self, interpreter: Interpreter, text: str, context: Context) -> Execution:
        while True:
            with self._lock:
                existing = self._runs.get(context.key)
            # Ignore the run of another session, or of this session before a restart.
            same = existing is not None and (
                context.recovering or existing.interpreter is interpreter
            )
            if existing is not None and same and self._matches(existing, text, context):
                if existing.result is not None and existing.result.code is Code.KEEP:
                    # The call may be a new run that arrives before the delivery of the first
                    # answer is recorded. The server has then cleared the output.
                    self._outputs.resend(existing.output)
                return existing
            # Without the lock, because this calls an interpreter.
            active = existing is not None and same and existing.text == text and is_active(existing)
            with self._lock:
                if self._runs.get(context.key) is not existing:
                    continue  # a concurrent call for the same paragraph was first
                if existing is None or not active:
                    return self._start(interpreter, text, context, existing)
            return self._continue(existing)

    def _continue(self, existing: Execution) -> Execution:
        """Answer a repeated run while its work is active: keep the output and run nothing."""
        log.info("paragraph %s is active and is not run again", existing.context.paragraph_id)
        self._outputs.resend(existing.output)
        # Zeppelin has cleared the forms of the paragraph.
        forms = existing.result.forms if existing.result is not None else None
        return replace(
            existing,
            result=Result(Code.KEEP, forms=forms),
            cancelled_at=None,
            delivered=True,
            predecessors=(),
        )

    def _matches(self, existing: Execution, text: str, context: Context) -> bool:
        """Whether a call refers to an existing run."""
        if context.recovering:
            return True
        if existing.text != text:
            return False
        if not existing.finished.is_set():
            return True
        recent = time.monotonic() - existing.ended_at < RETRY_WINDOW
        return recent and not existing.delivered

    def _start(
        self, interpreter: Interpreter, text: str, context: Context, existing: Execution | None
    ) -> Execution:
        with self._closed:
            # The id may be that of an earlier interpreter.
            self._closed_ids.discard(id(interpreter))
        serial = (id(interpreter), serial_key_of(interpreter, context))
        before = (self._last.get(serial), existing)
        predecessors = tuple(one for one in before if one is not None and not one.ended.is_set())
        output = self._outputs.begin(context)
        execution = Execution(interpreter, text, context, output, predecessors)
        self._last[serial] = execution
        self._runs[context.key] = execution
        self._runs.move_to_end(context.key)
        self._remove_old()
        if self._stopped:
            execution.result = _ENDING
            self._finish(execution)
        name = f"paragraph-{next(self._numbers)}"
        threading.Thread(target=self._perform, args=(execution,), daemon=True, name=name).start()
        return execution

    def _remove_old(self) -> None:
        ended = [key for key, one in self._runs.items() if one.ended.is_set()]
        for key in ended[: max(0, len(self._runs) - MAX_ENDED)]:
            del self._runs[key]
        for serial in [serial for serial, one in self._last.items() if one.ended.is_set()]:
            del self._last[serial]
        recent = time.monotonic() - RETRY_WINDOW
        for one in self._runs.values():
            if one.ended.is_set() and one.ended_at < recent and one.result is not None:
                # The server does not request this result again.
                one.result = replace(one.result, messages=())

    def _perform(self, execution: Execution) -> None:
        try:
            for one in execution.predecessors:
                one.ended.wait()
            # Release the outputs and results of earlier runs.
            execution.predecessors = ()
            with self._lock:
                if execution.finished.is_set():
                    return
                execution.state = RUNNING
            result = self._interpret(execution)
            with self._lock:
                if execution.finished.is_set():  # the run was cancelled and stopped too late
                    return
                execution.result = result
                self._finish(execution)
        finally:
            execution.ended.set()

    def _interpret(self, execution: Execution) -> Result:
        try:
            if not execution.context.recovering:
                self._outputs.clear(execution.output)
            result = execution.interpreter.interpret(
                execution.text, execution.context, execution.output
            )
        except BaseException as error:  # the server always gets an answer
            result = error_result(error)
        try:
            return self._outputs.finish_run(execution.output, result)
        except Exception as error:
            return error_result(error)

    def _await_stop(self, execution: Execution) -> None:
        if execution.finished.wait(STOP_TIMEOUT):
            return
        with self._lock:
            if not execution.finished.is_set():
                notice = _(
                    "The paragraph did not stop within 15 s. Its further output is discarded."
                )
                execution.result = self._outputs.abandon_run(execution.output, notice)
                self._finish(execution)

    def _finish(self, execution: Execution) -> None:
        execution.ended_at = time.monotonic()
        execution.finished.set()


def is_active(existing: Execution) -> bool:
    """Whether work that an ended run started continues."""
    try:
        return existing.finished.is_set() and existing.interpreter.active(existing.context)
    except Exception:
        log.exception("the activity of paragraph %s is unknown", existing.context.paragraph_id)
        return False


def serial_key_of(interpreter: Interpreter, context: Context) -> str:
    """Return the serial key of a paragraph; its note id if the interpreter fails."""
    try:
        return interpreter.serial_key(context)
    except Exception:
        log.exception("an interpreter failed to return a serial key")
        return context.note_id


def error_result(error: BaseException) -> Result:
    """Return the result of a run that ended with an exception; log unexpected exceptions."""
    if isinstance(error, SubmarineError):
        message = str(error)
    else:
        log.error("a paragraph failed", exc_info=error)
        kind = type(error).__name__
        message = _("Internal error in Submarine ({kind}). See the interpreter's log.").format(
            kind=kind
        )
    return Result(Code.ERROR, (Message(Kind.TEXT, message + "\n"),))
