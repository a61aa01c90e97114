"""Runs of paragraphs: each at most once, whatever the server asks for again.

The server calls ``interpret`` up to three times where a call fails, a user runs what is running,
and a server that has come back wants to know what became of a run. All of them get the one run.
Each run has a thread of its own, so that a lost connection loses nothing. Knows no thrift.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

from submarine_zeppelin.execution.complaints import complaint
from submarine_zeppelin.execution.delivery import Delivery
from submarine_zeppelin.execution.execution import (
    PENDING,
    RUNNING,
    UNKNOWN,
    Execution,
    is_active,
    lane_of,
)
from submarine_zeppelin.execution.output import ParagraphOutput
from submarine_zeppelin.interface import Code, Context, Interpreter, Kind, Message, Place, Result

log = logging.getLogger(__name__)
#: Ended runs that are remembered.
KEPT = 50
#: Seconds in which the server asks again for a result that did not reach it.
ASKED_AGAIN = 30.0
#: Seconds between ``cancel`` and the answer of ``interpret``. Where it comes sooner, the server
#: has not noted yet that the paragraph was aborted, and calls it finished or failed.
AFTER_CANCEL = 1.0
#: Seconds in which the ``close`` of an interpreter follows a ``cancel`` that is no user's: a server
#: which stops or restarts an interpreter cancels what runs first, and jobs are to live on.
CLOSE_FOLLOWS = 0.6
#: Seconds that an interpreter has to stop what it does.
TO_STOP = 15.0
_ENDING = Result(Code.ERROR, (Message(Kind.TEXT, "The interpreter ends; run this again.\n"),))


class Executions:
    """All runs of this process; safe from any thread.

    Parameters
    ----------
    begin
        Makes the output of a new run.
    delivery
        Brings output and result of an ended run to where the server looks for them.
    """

    def __init__(self, begin: Callable[[Context], ParagraphOutput], delivery: Delivery) -> None:
        self._begin = begin
        self._delivery = delivery
        self._lock = threading.Lock()
        self._runs: OrderedDict[Place, Execution] = OrderedDict()
        self._lanes: dict[tuple[int, str], Execution] = {}
        self._numbers = itertools.count(1)
        self._stopped = False
        self._closed = threading.Condition()
        self._closed_ids: set[int] = set()

    def run(self, interpreter: Interpreter, text: str, context: Context) -> Execution:
        """The run that a call of ``interpret`` means, ended."""
        execution = self._find_or_start(interpreter, text, context)
        execution.finished.wait()
        if execution.cancelled_at is not None:
            time.sleep(max(0.0, execution.cancelled_at + AFTER_CANCEL - time.monotonic()))
        return execution

    def delivered(self, execution: Execution, *, reached: bool) -> None:
        """Whether the result reached the server, as far as can be told here."""
        execution.delivered = execution.delivered or reached

    def status(self, paragraph_id: str) -> str:
        """``PENDING`` before it begins, ``RUNNING`` while it runs, else ``UNKNOWN``.

        The server does not say of which note; of notes that are copies any that runs counts.
        """
        with self._lock:
            states = {
                execution.state
                for (_, paragraph), execution in self._runs.items()
                if paragraph == paragraph_id and not execution.finished.is_set()
            }
        return next((state for state in (RUNNING, PENDING) if state in states), UNKNOWN)

    def cancel(self, interpreter: Interpreter, context: Context) -> None:
        """Ask a run to stop; returns at once, and so does its ``interpret`` soon after."""
        with self._lock:
            execution = self._runs.get(context.place)
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

    def closing(self, interpreter: Interpreter) -> None:
        """An interpreter is about to be closed: what it runs is not to be cancelled any more."""
        with self._closed:
            self._closed_ids.add(id(interpreter))
            self._closed.notify_all()

    def _cancel(self, interpreter: Interpreter, context: Context) -> None:
        with self._closed:
            if self._closed.wait_for(lambda: id(interpreter) in self._closed_ids, CLOSE_FOLLOWS):
                return
        try:
            interpreter.cancel(context)
        except Exception:
            log.exception("an interpreter could not cancel paragraph %s", context.paragraph_id)

    def busy(self) -> bool:
        """Whether anything runs or waits to run."""
        with self._lock:
            return any(not one.left.is_set() for one in self._runs.values())

    def stop(self) -> None:
        """The process ends: nothing begins any more.

        What runs is not cancelled, since that may cancel its job, and jobs live on; its
        interpreter is closed.
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
                known = self._runs.get(context.place)
            # One of another session, or of this session before it was restarted, is none of these.
            same = known is not None and (context.recovering or known.interpreter is interpreter)
            if known is not None and same and self._is_meant(known, text, context):
                return known
            # Not under the lock: an interpreter is asked.
            active = known is not None and same and known.text == text and is_active(known)
            with self._lock:
                if self._runs.get(context.place) is not known:
                    continue  # asked twice at the same moment, and the other call was first
                if known is None or not active:
                    return self._start(interpreter, text, context, known)
            return self._go_on(known)

    def _go_on(self, known: Execution) -> Execution:
        """The same text again while what it began is active: its output stays and goes on."""
        log.info("paragraph %s is active: not run again", known.context.paragraph_id)
        self._delivery.show_again(known.output)
        return replace(known, result=Result(Code.KEEP), cancelled_at=None, delivered=True, after=())

    def _is_meant(self, known: Execution, text: str, context: Context) -> bool:
        """Whether a call means a run that there is already."""
        if context.recovering:
            return True
        if known.text != text:
            return False
        if not known.finished.is_set():
            return True
        recent = time.monotonic() - known.ended_at < ASKED_AGAIN
        return recent and not known.delivered

    def _start(
        self, interpreter: Interpreter, text: str, context: Context, known: Execution | None
    ) -> Execution:
        with self._closed:
            self._closed_ids.discard(id(interpreter))  # of one before it at the same place
        lane = (id(interpreter), lane_of(interpreter, context))
        before = (self._lanes.get(lane), known)
        after = tuple(one for one in before if one is not None and not one.left.is_set())
        execution = Execution(interpreter, text, context, self._begin(context), after)
        self._lanes[lane] = execution
        self._runs[context.place] = execution
        self._runs.move_to_end(context.place)
        self._forget_old()
        if self._stopped:
            execution.result = _ENDING
            self._finish(execution)
        name = f"paragraph-{next(self._numbers)}"
        threading.Thread(target=self._perform, args=(execution,), daemon=True, name=name).start()
        return execution

    def _forget_old(self) -> None:
        over = [key for key, one in self._runs.items() if one.left.is_set()]
        for key in over[: max(0, len(self._runs) - KEPT)]:
            del self._runs[key]
        for lane in [lane for lane, one in self._lanes.items() if one.left.is_set()]:
            del self._lanes[lane]
        recent = time.monotonic() - ASKED_AGAIN
        for one in self._runs.values():
            if one.left.is_set() and one.ended_at < recent and one.result is not None:
                one.result = replace(one.result, messages=())  # nothing asks for it any more

    def _perform(self, execution: Execution) -> None:
        try:
            for one in execution.after:
                one.left.wait()
            # What is waited for may hold much.
            execution.after = ()
            with self._lock:
                if execution.finished.is_set():
                    return
                execution.state = RUNNING
            result = self._interpret(execution)
            with self._lock:
                if execution.finished.is_set():  # it was cancelled, and has stopped too late
                    return
                execution.result = result
                self._finish(execution)
        finally:
            execution.left.set()

    def _interpret(self, execution: Execution) -> Result:
        try:
            if not execution.context.recovering:
                self._delivery.clear(execution.output)
            result = execution.interpreter.interpret(
                execution.text, execution.context, execution.output
            )
        except BaseException as error:  # whatever a paragraph does, the server gets an answer
            result = complaint(error)
        try:
            return self._delivery.settle(execution.output, result)
        except Exception as error:
            return complaint(error)

    def _await_stop(self, execution: Execution) -> None:
        if execution.finished.wait(TO_STOP):
            return
        with self._lock:
            if not execution.finished.is_set():
                said = "It did not stop within 15 s and goes on by itself; what it prints is lost."
                execution.result = self._delivery.given_up(execution.output, said)
                self._finish(execution)

    def _finish(self, execution: Execution) -> None:
        execution.ended_at = time.monotonic()
        execution.finished.set()
