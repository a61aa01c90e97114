"""One task from claim to record: the order of things, and what happens when it is disturbed.

Its parts: ``claim``, ``starting``, ``watching``, ``publisher``, ``views``, ``ending``, ``closing``.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from typing import TYPE_CHECKING, Callable, Mapping

from submarine_runtime.agent.claim import CLAIM_GRACE, asked_to_cancel, claim
from submarine_runtime.agent.container import new_record, say
from submarine_runtime.agent.ending import Ending, judge
from submarine_runtime.agent.processes import kernel_memory_kills
from submarine_runtime.agent.program import Program
from submarine_runtime.agent.publisher import Publisher, log_shippers
from submarine_runtime.agent.scratch import Scratch
from submarine_runtime.agent.starting import localised_from, start_program
from submarine_runtime.agent.status import Status
from submarine_runtime.agent.store import StoreError, open_store, patiently
from submarine_runtime.agent.views import Views
from submarine_runtime.agent.wakeup import Terminated, Wakeup
from submarine_runtime.agent.watching import Watch, cancel_sentence, memory_ending
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.launch import AgentConfig
from submarine_runtime.protocol.reasons import EndReason
from submarine_runtime.protocol.states import State

if TYPE_CHECKING:
    from submarine_runtime.agent.closing import Closing

#: Seconds for the last words after SIGTERM; YARN's own patience is 0.25 s by default.
LAST_WORDS = 1.0
#: Seconds that a cancel leaves for saving.
CANCELLED_GRACE = 10.0


class Supervisor:
    """Runs one task; ``run`` is called once."""

    def __init__(self, config: AgentConfig, secret: Mapping[str, str], directory: str) -> None:
        self._config = config
        self._secret = secret
        self._began = time.time()
        self._wakeup = Wakeup()
        self._scratch = Scratch.of(directory, config, os.environ)
        self._task = f"{config.role}:{config.index}"
        self._status = Status(new_record(config, self._task))
        self._cancel: dict[str, str] | None = None
        self._deadline = float("inf")
        self._program: Program | None = None
        self._views = Views(config, secret, self._status, self._task)
        self._claimed = False
        self._ending: Ending | None = None

    def run(self) -> int:
        """Run the task to its end; the agent's exit code."""
        try:
            self._prepare_shipping()
            if not claim(self._store, self._config, os.environ, self._wakeup.wait):
                say(f"another container has claimed {self._config.job_id}; nothing is run here")
                return 1
            self._claimed = True
            return self._claimed_run()
        except Terminated:
            return self._last_words(EndReason.KILLED_ON_CLUSTER, "SIGTERM came from outside.")
        except StoreError as exc:
            say(f"{self._config.job_id}: {exc}")
            return 1
        except Exception as exc:
            import traceback

            traceback.print_exc()
            return self._last_words(EndReason.AGENT_LOST, f"The agent failed: {exc!r}")

    def _prepare_shipping(self) -> None:
        config = self._config
        try:
            self._store = open_store(config.store)
        except ValueError as exc:
            raise StoreError(str(exc)) from exc
        directory = layout.log_directory(self._task, config.epoch, config.attempt)
        self._log_paths = {stream: self._scratch.log(stream) for stream in layout.STREAMS}
        self._shippers = log_shippers(self._store, directory, self._log_paths, config)
        self._publisher = Publisher(
            self._store,
            self._shippers,
            self._status.events_after,
            self._on_cancel,
            lambda sentence: self._status.event("warning", f"Shipping waits: {sentence}"),
        )

    def _claimed_run(self) -> int:
        status = self._status
        localised = localised_from(self._scratch, self._began)
        status.end_phases(localised)  # the client's last one, the wait in the queue
        status.begin_phase("localisation", localised)
        status.end_phase("localisation", self._began)
        status.begin_phase("start", self._began)
        status.event("claimed", data={"host": socket.gethostname(), "pid": os.getpid()})
        status.event("state", state=State.STARTING)
        asked = patiently(
            lambda: asked_to_cancel(self._store),
            time.monotonic() + CLAIM_GRACE,
            wait=self._wakeup.wait,
        )
        if asked is not None:
            self._on_cancel(asked)
            return self._close(Ending(EndReason.CANCELLED, cancel_sentence(asked)))
        failed = self._start()
        if failed is not None:
            return self._close(failed)
        assert self._program is not None
        return self._close(self._watch(self._program))

    def _start(self) -> Ending | None:
        """Unpack and start; how it ended if it could not be started."""
        failed = start_program(
            self._config, self._scratch, self._log_paths, self._wakeup, self._hold
        )
        if failed is not None:
            return failed
        assert self._program is not None
        status, started = self._status, self._program.started
        status.set_task(started=started)
        status.end_phase("start", started)
        status.begin_phase("first_line", started)
        status.begin_phase("run", started)
        status.event("state", state=State.RUNNING, data={"pid": self._program.pid})
        self._publisher.want_events()
        self._publisher.start()
        self._views.open(self._log_paths, self._on_cancel, self._publisher.announce)
        return None

    def _hold(self, program: Program) -> None:
        self._program = program

    def _watch(self, program: Program) -> Ending:
        kills = kernel_memory_kills()
        watch = Watch(
            self._config,
            program,
            self._status,
            self._wakeup,
            tuple(self._log_paths.values()),
            lambda: self._cancel,
        )
        code = watch.until_end()
        left = program.end_stragglers(watch.tree.known)
        program.release()
        if left:
            self._status.event("warning", f"The program left {left} processes behind; ended.")
        self._status.use(
            memory_peak=round(watch.tree.peak, 1), cpu_seconds=round(watch.tree.cpu_seconds, 1)
        )
        from submarine_runtime.agent.evidence import gather

        facts = gather(
            self._scratch,
            self._log_paths["stderr"],
            code,
            shell=self._config.command is not None,
            watch=watch,
        )
        facts.kernel_kills = kernel_memory_kills() - kills
        return judge(facts)

    def _close(self, ending: Ending) -> int:
        """Save everything, publish the record, let the followers go."""
        status, self._ending = self._status, ending
        self._deadline = time.monotonic() + self._config.save_grace
        if self._program is not None:
            status.end_phase("first_line")
            status.end_phase("run")
            status.begin_phase("save")
            status.event("state", state=State.FINISHING)
        closing = self._closing(self._wakeup.wait)
        failure = closing.save(self._scratch, self._publisher)
        if failure is not None and ending.reason is EndReason.SUCCEEDED:
            ending = Ending(EndReason.OUTPUT_NOT_SAVED, failure, ending.exit_code)
        closing.settle(ending)
        self._views.finish_page()
        # The record must have its chance even where saving has used up all patience.
        self._deadline = max(self._deadline, time.monotonic() + LAST_WORDS)
        try:
            if not closing.publish_record():
                say(f"{self._config.job_id} was closed by somebody else meanwhile")
                return 1
        except StoreError as exc:
            say(f"the record of {self._config.job_id} could not be published: {exc}")
            return 1
        self._views.finish_followers()
        return 0 if ending.reason is EndReason.SUCCEEDED else 1

    def _closing(self, wait: Callable[[float], object]) -> Closing:
        from submarine_runtime.agent.closing import Closing

        return Closing(
            self._store,
            self._status,
            self._shippers,
            f"{self._task}/e{self._config.epoch}-a{self._config.attempt}",
            lambda: self._deadline,
            wait,
        )

    def _on_cancel(self, asked: dict[str, str]) -> None:
        """From any thread; only the first word counts."""
        if self._cancel is not None:
            return
        self._cancel = asked
        self._status.event("cancel_requested", cancel_sentence(asked))
        self._deadline = min(self._deadline, time.monotonic() + CANCELLED_GRACE)
        self._wakeup.wake()

    def _last_words(self, reason: EndReason, detail: str) -> int:
        """End the program at once and leave the record while there is time."""
        over = None
        if self._program is not None and self._program.poll() is None:
            over = memory_ending(self._program.pid, self._config)
            self._program.signal(signal.SIGKILL)
        if not self._claimed:
            return 1
        self._store = open_store(self._config.store, timeout=LAST_WORDS)
        self._deadline = time.monotonic() + LAST_WORDS
        ending = over or Ending(reason, detail)
        try:
            asked = self._cancel or asked_to_cancel(self._store)
            if self._ending is not None and self._ending.reason is not EndReason.SUCCEEDED:
                ending = self._ending  # it had failed by itself before
            elif asked is not None:
                ending = Ending(EndReason.CANCELLED, cancel_sentence(asked))
            closing = self._closing(time.sleep)
            for log in self._shippers.values():
                log.ship()
            closing.count_logs()
            self._status.miss("Outputs were not saved: the container was killed.")
            if not self._status.state.ended:
                closing.settle(ending)
            closing.publish_record()
        except StoreError as exc:
            say(f"the record of {self._config.job_id} could not be published: {exc}")
        return 1
