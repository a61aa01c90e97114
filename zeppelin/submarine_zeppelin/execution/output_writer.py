"""The one thread that sends outputs to the server, each at most a few times a second.

It knows which output is current for a paragraph: what an earlier run writes later is not wanted.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from weakref import WeakKeyDictionary, WeakValueDictionary

from submarine_zeppelin.execution.output import SAVE_EVERY, ParagraphOutput
from submarine_zeppelin.interface import DEFAULT_LIMIT, Context, ParagraphGoneError, Place
from submarine_zeppelin.thrift import EventClient, EventRefusedError, ServerAwayError

log = logging.getLogger(__name__)
#: Seconds between two sendings of one output.
INTERVAL = 0.4
#: Seconds from a first change to its sending: what comes in a burst goes together.
GATHER = 0.05
LONGEST_PAUSE = 30.0
#: Characters and number of outputs whose runs have ended and that are saved; the oldest are
#: released. Zeppelin's server has them.
MAX_HELD, MAX_OUTPUTS = 16 << 20, 100


class Outputs:
    """The outputs of all paragraphs of this process."""

    def __init__(self, events: EventClient) -> None:
        self.limit = DEFAULT_LIMIT
        self._events = events
        self._condition = threading.Condition()
        # One that nothing else uses is not needed for the sake of its paragraph.
        self._current: WeakValueDictionary[Place, ParagraphOutput] = WeakValueDictionary()
        self._held: OrderedDict[ParagraphOutput, int] = OrderedDict()
        self._due: dict[ParagraphOutput, float] = {}
        # Weak: an output that was let go must not be kept by the time of its last sending.
        self._sent_at: WeakKeyDictionary[ParagraphOutput, float] = WeakKeyDictionary()
        self._failures: dict[ParagraphOutput, int] = {}
        self._thread: threading.Thread | None = None

    def begin(self, context: Context) -> ParagraphOutput:
        """The output of a new run; that of an earlier one of the paragraph has ended."""
        output = ParagraphOutput(self._events, context, self._changed, lambda: self.limit)
        with self._condition:
            before = self._current.get(context.place)
            self._current[context.place] = output
        if before is not None:
            before.end(f"paragraph {context.paragraph_id} was run again")
        return output

    def current(self, context: Context) -> ParagraphOutput:
        """The output of the paragraph's last run, also after it has finished."""
        with self._condition:
            output = self._current.get(context.place)
        return output if output is not None else self.begin(context)

    def finish(self, output: ParagraphOutput) -> None:
        """Send and save what is left now, in this thread; a server that is away is tried later."""
        with self._condition:
            self._due.pop(output, None)
        self._flush(output, save=True)
        self.release_oldest(output)

    def release_oldest(self, ended: ParagraphOutput) -> None:
        """Note that a run has ended; let go of the oldest outputs beyond the limits."""
        size = ended.size
        with self._condition:
            self._held[ended] = size
            self._held.move_to_end(ended)
            room, released = MAX_HELD, []
            for number, output in enumerate(reversed(self._held)):
                room -= self._held[output]
                over = room < 0 or number >= MAX_OUTPUTS
                if over and output not in self._due and output is not ended:
                    released.append(output)
            for output in released:
                del self._held[output]
        for output in released:
            output.release()

    def send_rest(self) -> None:
        """Send and save what still waits, in this thread: the process ends."""
        with self._condition:
            outputs = list(self._due)
        for output in outputs:
            self.finish(output)

    def send_all_again(self) -> None:
        """A server that has come back may lack what its predecessor was sent."""
        with self._condition:
            outputs = [one for one in self._current.values() if not (one.ended or one.released)]
        for output in outputs:
            output.forget_sent()
            self._plan(output, 0)

    def _changed(self, output: ParagraphOutput) -> None:
        with self._condition:
            if output in self._due and output not in self._failures:
                return
        self._plan(output, GATHER)

    def _plan(self, output: ParagraphOutput, delay: float) -> None:
        with self._condition:
            earliest = self._sent_at.get(output, 0.0) + INTERVAL
            pause = min(2.0 ** self._failures.get(output, 0) - 1, LONGEST_PAUSE)
            due = max(time.monotonic() + max(delay, pause), earliest)
            self._due[output] = min(due, self._due.get(output, due))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True, name="outputs")
                self._thread.start()
            self._condition.notify()

    def _run(self) -> None:
        while True:
            with self._condition:
                while not (ready := self._next()):
                    first = min(self._due.values(), default=None)
                    self._condition.wait(None if first is None else first - time.monotonic())
                self._due.pop(ready)
            try:
                self._flush(ready)
            except Exception:
                log.exception("an output could not be sent")

    def _next(self) -> ParagraphOutput | None:
        now = time.monotonic()
        return next((output for output, due in self._due.items() if due <= now), None)

    def _flush(self, output: ParagraphOutput, *, save: bool = False) -> None:
        try:
            saved = output.flush(save=save)
        except ServerAwayError as error:
            self._failed(output, error)
        except EventRefusedError as error:
            self._refused(output, error)
        else:
            with self._condition:
                self._failures.pop(output, None)
                self._sent_at[output] = time.monotonic()
            if not saved:
                self._plan(output, SAVE_EVERY)
        if output.ended:
            self._forget(output)

    def _refused(self, output: ParagraphOutput, error: EventRefusedError) -> None:
        context = output.context
        try:
            self._events.check_there(context.note_id, context.paragraph_id, context.user)
        except ParagraphGoneError as gone:
            output.end(str(gone))
        except (ServerAwayError, EventRefusedError) as away:
            self._failed(output, away)
        else:
            self._failed(output, error)

    def _failed(self, output: ParagraphOutput, error: Exception) -> None:
        with self._condition:
            failures = self._failures[output] = self._failures.get(output, 0) + 1
        if failures == 1:
            where = output.context.paragraph_id
            log.warning("the output of %s cannot be sent, trying again: %s", where, error)
        self._plan(output, 0)

    def _forget(self, output: ParagraphOutput) -> None:
        with self._condition:
            for table in (self._due, self._sent_at, self._failures, self._held):
                table.pop(output, None)
            if self._current.get(output.context.place) is output:
                del self._current[output.context.place]
