"""Execute a run: start nodes, handle their ends and signals, write the journal.

One thread makes all decisions according to ``progress``; each node's process has its own thread.
"""

from __future__ import annotations

import heapq
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from submarine_jobs.errors import UsageError
from submarine_jobs.text import duration
from submarine_runtime.translation import _, ngettext
from submarine_workflows.local.log_limit import LogLimit
from submarine_workflows.local.node_process import AttemptResult, NodeProcess
from submarine_workflows.local.preparation import NodePreparer, PreparedNode, read_outputs
from submarine_workflows.local.process_guard import ProcessGuard
from submarine_workflows.local.progress import ROOT, Progress, Step
from submarine_workflows.runs import Journal, RunFolder, Status, view_of

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: Seconds between reads of the journal.
_PREVIOUS_RUN_INTERVAL = 0.4
#: Seconds between checks of conditions without events: cancel file, previous run, log sizes.
_INTERVAL = 0.5
TIMED_OUT = 124


@contextmanager
def on_signals(handler: Callable[[int], None]) -> Iterator[None]:
    """Call ``handler`` from the signal handler; no effect outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous: dict[signal.Signals, Any] = {}
    try:
        for number in _SIGNALS:
            # Ignored signals stay ignored, as for nohup.
            if signal.getsignal(number) is not signal.SIG_IGN:
                previous[number] = signal.signal(number, lambda which, frame: handler(which))
        yield
    finally:
        for number, old_handler in previous.items():
            with suppress(TypeError, ValueError):
                signal.signal(number, old_handler)


class Predecessor:
    """The previous run, active when this one started."""

    def __init__(self, run: RunFolder) -> None:
        self.run = run.run
        self._folder = run
        self._read = float("-inf")
        self._open: dict[str, Status] = {}

    def must_wait_for(self, path: str) -> bool:
        """Return whether its node of that path has not ended."""
        now = time.monotonic()
        if now - self._read > _PREVIOUS_RUN_INTERVAL:
            self._read = now
            self._open = self._statuses()
        return path in self._open

    def _statuses(self) -> dict[str, Status]:
        try:
            view = view_of(self._folder)
        except UsageError:  # its files were deleted: nothing runs
            return {}
        if not view.alive:
            return {}
        return {node.path: node.status for node in view.nodes if not node.status.ended}


@dataclass
class _RunningNode:
    process: NodeProcess
    prepared: PreparedNode
    attempt: int
    log: LogLimit
    since: float = field(default_factory=time.monotonic)


@dataclass(order=True)
class _WaitingNode:
    """A node that may start when its delay has passed and fewer than the maximum run."""

    ready: float
    order: int
    step: Step = field(compare=False)
    tries: int = field(compare=False, default=0)


class Runner:
    """One run, from the beginning or resumed.

    Parameters
    ----------
    progress
        State, including nodes that are already done.
    attempts
        Path -> number of the next attempt.
    say
        Called with a sentence for each event.
    earlier
        An active run; its nodes run before the same nodes of this run.
    """

    def __init__(
        self,
        progress: Progress,
        preparer: NodePreparer,
        journal: Journal,
        guard: ProcessGuard,
        attempts: dict[str, int],
        say: Callable[[str], None],
        earlier: Predecessor | None = None,
    ) -> None:
        self._progress = progress
        self._preparer = preparer
        self._journal = journal
        self._guard = guard
        self._attempts = attempts
        self._say = say
        self._earlier = earlier
        self._events: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._waiting: list[_WaitingNode] = []
        self._running: dict[str, _RunningNode] = {}
        self._order = 0
        self._hard = False
        self._facts: dict[str, Any] = {}
        #: Why the run was stopped, and the resulting exit code.
        self.stopped = ""
        self.exit_code = 0
        #: Path -> reason of failed nodes, in order of failure.
        self.failures: dict[str, str] = {}
        progress.changed = self.changed

    def run(self) -> Status:
        """Run until all nodes have ended; return the status of the flow."""
        limit = self._preparer.options.timeout
        deadline = time.monotonic() + limit if limit is not None else None
        with on_signals(lambda number: self._events.put(("signal", number))):
            self._enqueue(self._progress.advance())
            while not self._progress.root.status.ended:
                self._start_due()
                try:
                    self._handle(*self._next(deadline))
                except KeyboardInterrupt:  # in a notebook, where no handler can be set
                    self._on_signal(signal.SIGINT)
        return self._progress.root.status

    def changed(self, step: Step) -> None:
        """Record a status in the journal, and report it."""
        facts, self._facts = self._facts, {}
        if step.path == ROOT:
            self._journal.add("flow", status=str(step.status))
            return
        self._journal.add("node", node=step.path, status=str(step.status), **facts)
        if step.status in (Status.RUNNING, Status.CANCELLED, Status.SKIPPED) and not step.is_flow:
            self._say(f"{step.path}: {step.status}")

    def _next(self, deadline: float | None) -> tuple[str, Any]:
        now = time.monotonic()
        if deadline is not None and now >= deadline and not self._progress.killed:
            return "timeout", None
        wait = _INTERVAL
        if self._waiting and self._has_capacity():
            wait = min(wait, max(0.0, self._waiting[0].ready - now) or 0.05)
        if deadline is not None:
            wait = min(wait, max(deadline - now, 0.05))
        try:
            return self._events.get(timeout=wait)
        except queue.Empty:
            return "look", None

    def _handle(self, kind: str, what: Any) -> None:
        for running in self._running.values():
            running.log.check()
        if kind == "ended":
            self._on_end(*what)
        elif kind == "signal":
            self._on_signal(what)
        elif kind == "timeout":
            limit = duration(self._preparer.options.timeout)
            self._stop(
                _("It was stopped after its time limit of {limit}.").format(limit=limit), TIMED_OUT
            )
        elif self._preparer.run.cancel.exists() and not self._progress.killed:
            self._stop(_("It was cancelled."), 1)
        if self._progress.killed:
            self._end_all()
        self._enqueue(self._progress.advance())

    def _has_capacity(self) -> bool:
        return len(self._running) < self._preparer.options.max_parallel

    def _enqueue(self, steps: list[Step], delay: float = 0.0, tries: int = 0) -> None:
        for step in steps:
            self._order += 1
            ready = time.monotonic() + delay
            heapq.heappush(self._waiting, _WaitingNode(ready, self._order, step, tries))

    def _start_due(self) -> None:
        """Start due nodes in order; nodes delayed by an earlier run let others start first."""
        hold: list[_WaitingNode] = []
        now = time.monotonic()
        while self._waiting and self._has_capacity() and self._waiting[0].ready <= now:
            waiting = heapq.heappop(self._waiting)
            if self._earlier is not None and self._earlier.must_wait_for(waiting.step.path):
                hold.append(waiting)
                continue
            self._start(waiting)
        for waiting in hold:
            waiting.ready = now + _INTERVAL
            heapq.heappush(self._waiting, waiting)

    def _start(self, waiting: _WaitingNode) -> None:
        step = waiting.step
        attempt = self._attempts.get(step.path, 0)
        self._attempts[step.path] = attempt + 1
        name = self._preparer.run.log(step.path, attempt).name
        self._facts = {"attempt": attempt, "log": f"logs/{name}"}
        self._progress.started(step)
        try:
            prepared = self._preparer.prepare(step, attempt)
        except UsageError as exc:
            self._say(f"{step.path}: {Status.FAILED}. {exc}")
            self._finish(step, Status.FAILED, AttemptResult(2, str(exc)), {})
            return
        order = (step, waiting.tries)
        process = NodeProcess(
            prepared.work, self._guard, lambda end: self._events.put(("ended", (*order, end)))
        )
        self._running[step.path] = _RunningNode(
            process, prepared, attempt, LogLimit(prepared.work.log)
        )
        process.start()

    def _on_end(self, step: Step, tries: int, end: AttemptResult) -> None:
        running = self._running.pop(step.path)
        prepared = running.prepared
        outputs = read_outputs(self._preparer.run.output(step.path))
        took = duration(time.monotonic() - running.since)
        status, why = Status.FAILED, f". {end.reason}"
        if end.stopped and self._progress.killed:
            status, why = Status.KILLED, ""
        elif end.code == 0:
            status, why = Status.SUCCEEDED, ""
        elif prepared.succeed_on_failure:
            status = Status.FAILED_SUCCEEDED
        elif tries < prepared.retries and not self._progress.killed:
            delay = prepared.backoff * (2**tries if prepared.exponential else 1)
            left = prepared.retries - tries
            more = ngettext(
                "{left} more try, the next in {delay}.",
                "{left} more tries, the next in {delay}.",
                left,
            ).format(left=left, delay=duration(delay))
            self._say(
                _("{path}: attempt {tries} failed. {reason} {more}").format(
                    path=step.path, tries=tries + 1, reason=end.reason, more=more
                )
            )
            self._facts = {"attempt": running.attempt, "code": end.code, "reason": end.reason}
            self._progress.requeue(step)
            self._enqueue([step], delay, tries + 1)
            return
        self._say(
            _("{path}: {status} after {took}{why}").format(
                path=step.path, status=status, took=took, why=why
            )
        )
        self._finish(step, status, end, outputs)

    def _finish(
        self, step: Step, status: Status, end: AttemptResult, outputs: dict[str, str]
    ) -> None:
        if status is Status.FAILED:
            self.failures[step.path] = end.reason
        self._facts = {"code": end.code, "reason": end.reason, "outputs": outputs}
        self._progress.ended(step, status, outputs)

    def _on_signal(self, number: int) -> None:
        name = signal.Signals(number).name
        if self._progress.killed and self.stopped:
            if number == signal.SIGINT:
                self._hard = True
                self._say(_("Ended immediately: jobs of the nodes may continue."))
                self._end_all()
            return
        self._stop(_("It was interrupted by {name}.").format(name=name), 128 + number)
        if number == signal.SIGINT:
            self._say(_("A second Ctrl-C ends them immediately."))

    def _stop(self, why: str, code: int) -> None:
        self.stopped, self.exit_code = why, code
        count = len(self._running)
        self._say(
            ngettext(
                "{why} Stopping {count} node …", "{why} Stopping {count} nodes …", count
            ).format(why=why, count=count)
        )
        self._progress.kill()

    def _end_all(self) -> None:
        """Stop running nodes, once per request, and drop waiting ones."""
        for running in self._running.values():
            running.process.stop(hard=self._hard)
        for waiting in self._waiting:
            self._progress.ended(waiting.step, Status.KILLED)
        self._waiting.clear()
