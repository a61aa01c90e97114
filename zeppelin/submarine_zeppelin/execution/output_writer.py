"""Send outputs to the server in one thread, each at most a few times a second.

The result that ``interpret`` returns replaces streamed output, and a later checkpoint replaces the
result. A successful run therefore saves its output first and returns ``KEEP``; any other result is
recorded in the output, so that later updates start from it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from dataclasses import replace
from weakref import WeakKeyDictionary, WeakValueDictionary

from submarine_zeppelin.execution.output import SAVE_EVERY, ParagraphOutput
from submarine_zeppelin.interface import (
    DEFAULT_LIMIT,
    Code,
    Context,
    Kind,
    Message,
    ParagraphGoneError,
    ParagraphKey,
    Result,
    fit,
)
from submarine_zeppelin.thrift import EventClient, EventRefusedError, ServerUnavailableError

log = logging.getLogger(__name__)
#: Minimum seconds between two updates of an output.
INTERVAL = 0.4
#: Seconds from a change to its transmission, so that bursts are sent together.
BATCH_DELAY = 0.05
MAX_PAUSE = 30.0
#: Maximum size in characters and number of saved outputs of ended runs in memory. The oldest are
#: released; Zeppelin's server has them.
MAX_SIZE, MAX_OUTPUTS = 16 << 20, 100


class OutputWriter:
    """Outputs of all paragraphs of this process."""

    def __init__(self, events: EventClient) -> None:
        self.limit = DEFAULT_LIMIT
        self._events = events
        self._condition = threading.Condition()
        # Weak: an output that is not used otherwise is not needed here.
        self._current: WeakValueDictionary[ParagraphKey, ParagraphOutput] = WeakValueDictionary()
        self._held: OrderedDict[ParagraphOutput, int] = OrderedDict()
        self._due: dict[ParagraphOutput, float] = {}
        # Weak: the time of the last update must not keep an output in memory.
        self._sent_at: WeakKeyDictionary[ParagraphOutput, float] = WeakKeyDictionary()
        self._failures: dict[ParagraphOutput, int] = {}
        self._thread: threading.Thread | None = None

    def begin(self, context: Context) -> ParagraphOutput:
        """Create the output of a new run and close that of an earlier run of the paragraph."""
        output = ParagraphOutput(self._events, context, self._changed, lambda: self.limit)
        with self._condition:
            before = self._current.get(context.key)
            self._current[context.key] = output
        if before is not None:
            before.close(f"paragraph {context.paragraph_id} was run again")
        return output

    def current(self, context: Context) -> ParagraphOutput:
        """Return the output of a paragraph's last run, also after the run."""
        with self._condition:
            output = self._current.get(context.key)
        return output if output is not None else self.begin(context)

    def finish(self, output: ParagraphOutput) -> None:
        """Send and save an output in this thread. If the server is unavailable, retry later."""
        with self._condition:
            self._due.pop(output, None)
        self._flush(output, save=True)
        self.release_oldest(output)

    def clear(self, output: ParagraphOutput) -> None:
        """Clear the output at the start of a run."""
        try:
            output.clear()
        except (ServerUnavailableError, EventRefusedError) as error:
            log.warning("output of %s was not cleared: %s", output.context.paragraph_id, error)
            output.invalidate()

    def resend(self, output: ParagraphOutput) -> None:
        """Send an output again, because the server may have cleared it."""
        output.invalidate()
        self.finish(output)

    def finish_run(self, output: ParagraphOutput, result: Result) -> Result:
        """Save the streamed output of a run, or record the result that replaces it."""
        if result.code is Code.KEEP:
            self.finish(output)
            return replace(result, messages=())
        if result.code is Code.SUCCESS and not result.messages:
            self.finish(output)
            return replace(result, code=Code.KEEP)
        messages = fit(result.messages or output.messages, self.limit)
        output.set_result(messages)
        self.release_oldest(output)
        return replace(result, messages=tuple(messages))

    def abandon_run(self, output: ParagraphOutput, notice: str) -> Result:
        """Return the result of a run that does not stop: its output so far and a notice."""
        messages = [*output.messages, Message(Kind.TEXT, notice + "\n")]
        output.close("the paragraph was cancelled")
        return Result(Code.ERROR, tuple(fit(messages, self.limit)))

    def release_oldest(self, ended: ParagraphOutput) -> None:
        """Record that a run has ended, and release the oldest outputs beyond the limits."""
        size = ended.size
        with self._condition:
            self._held[ended] = size
            self._held.move_to_end(ended)
            space, released = MAX_SIZE, []
            for number, output in enumerate(reversed(self._held)):
                space -= self._held[output]
                over = space < 0 or number >= MAX_OUTPUTS
                if over and output not in self._due and output is not ended:
                    released.append(output)
            for output in released:
                del self._held[output]
        for output in released:
            output.release()

    def flush_all(self) -> None:
        """Send and save all waiting outputs in this thread, before the process ends."""
        with self._condition:
            outputs = list(self._due)
        for output in outputs:
            self.finish(output)

    def resend_all(self) -> None:
        """Send all outputs to a restarted server, which may not have them."""
        with self._condition:
            outputs = [one for one in self._current.values() if not (one.closed or one.released)]
        for output in outputs:
            output.invalidate()
            self._plan(output, 0)

    def _changed(self, output: ParagraphOutput) -> None:
        with self._condition:
            if output in self._due and output not in self._failures:
                return
        self._plan(output, BATCH_DELAY)

    def _plan(self, output: ParagraphOutput, delay: float) -> None:
        with self._condition:
            earliest = self._sent_at.get(output, 0.0) + INTERVAL
            pause = min(2.0 ** self._failures.get(output, 0) - 1, MAX_PAUSE)
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
        except ServerUnavailableError as error:
            self._failed(output, error)
        except EventRefusedError as error:
            self._refused(output, error)
        else:
            with self._condition:
                self._failures.pop(output, None)
                self._sent_at[output] = time.monotonic()
            if not saved:
                self._plan(output, SAVE_EVERY)
        if output.closed:
            self._remove(output)

    def _refused(self, output: ParagraphOutput, error: EventRefusedError) -> None:
        context = output.context
        try:
            self._events.check_exists(context.note_id, context.paragraph_id, context.user)
        except ParagraphGoneError as gone:
            output.close(str(gone))
        except (ServerUnavailableError, EventRefusedError) as failure:
            self._failed(output, failure)
        else:
            self._failed(output, error)

    def _failed(self, output: ParagraphOutput, error: Exception) -> None:
        with self._condition:
            failures = self._failures[output] = self._failures.get(output, 0) + 1
        if failures == 1:
            where = output.context.paragraph_id
            log.warning("the output of %s cannot be sent and is retried: %s", where, error)
        self._plan(output, 0)

    def _remove(self, output: ParagraphOutput) -> None:
        with self._condition:
            for table in (self._due, self._sent_at, self._failures, self._held):
                table.pop(output, None)
            if self._current.get(output.context.key) is output:
                del self._current[output.context.key]
