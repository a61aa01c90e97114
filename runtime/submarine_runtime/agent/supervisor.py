"""One task from claim to record: the order of things, and what happens when it is disturbed.

The parts do the work: ``claim``, ``unpack``, ``program``, ``watching``, ``publisher``, ``server``,
``ending``, ``closing``.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Mapping

from submarine_runtime.agent.claim import (
    CLAIM_GRACE,
    asked_to_cancel,
    claim,
)
from submarine_runtime.agent.container import new_record, reachable_host
from submarine_runtime.agent.ending import Ending, judge
from submarine_runtime.agent.environment import (
    place_launcher,
    program_command,
    program_environment,
)
from submarine_runtime.agent.processes import kernel_memory_kills
from submarine_runtime.agent.program import Program
from submarine_runtime.agent.publisher import LogShipper, Publisher
from submarine_runtime.agent.scratch import Scratch
from submarine_runtime.agent.status import Status
from submarine_runtime.agent.store import StoreError, open_store, patiently
from submarine_runtime.agent.wakeup import Terminated, Wakeup
from submarine_runtime.agent.watching import Watch, cancel_sentence
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.launch import AgentConfig
from submarine_runtime.protocol.reasons import EndReason, meaning_of
from submarine_runtime.protocol.states import State

if TYPE_CHECKING:
    from submarine_runtime.agent.server import LiveServer
    from submarine_runtime.agent.yarn_page import YarnPage

#: Seconds for the last words after SIGTERM; YARN's own patience is 0.25 s by default.
LAST_WORDS = 1.0
#: Seconds that a cancel leaves for saving.
CANCELLED_GRACE = 10.0
FOLLOWERS_GRACE = 3.0


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
        self._server: LiveServer | None = None
        self._page: YarnPage | None = None
        self._claimed = False
        self._ending: Ending | None = None

    def run(self) -> int:
        """Run the task to its end; the agent's exit code."""
        try:
            self._prepare_shipping()
            if not claim(self._store, self._config, os.environ, self._wakeup.wait):
                _say(f"another container has claimed {self._config.job_id}; nothing is run here")
                return 1
            self._claimed = True
            return self._claimed_run()
        except Terminated:
            return self._last_words(EndReason.KILLED_ON_CLUSTER, "SIGTERM came from outside.")
        except StoreError as exc:
            _say(f"{self._config.job_id}: {exc}")
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
        self._shippers = {
            stream: LogShipper(
                self._store, directory, stream, path, config.ship_interval, config.ship_bytes
            )
            for stream, path in self._log_paths.items()
        }
        self._publisher = Publisher(
            self._store,
            self._shippers,
            self._status.events_after,
            self._on_cancel,
            lambda sentence: self._status.event("warning", f"Shipping waits: {sentence}"),
        )

    def _claimed_run(self) -> int:
        status = self._status
        localised = self._localised_from()
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

    def _localised_from(self) -> float:
        """When the first of our files came to this node."""
        times = [self._began]
        for name in ("agent.json", "secret.json", layout.BUNDLE):
            with suppress(OSError):
                times.append(os.stat(self._scratch.path(name)).st_ctime)
        return min(times)

    def _start(self) -> Ending | None:
        """Unpack and start; how it ended if it could not be started."""
        from submarine_runtime.agent.unpack import BundleError, unpack

        config, scratch = self._config, self._scratch
        try:
            scratch.make()
            if os.path.exists(scratch.path(layout.BUNDLE)):
                unpack(scratch.path(layout.BUNDLE), scratch.program)
            place_launcher(config, scratch)
            with self._wakeup.deferred():
                self._program = Program(
                    program_command(config, scratch),
                    scratch.program,
                    program_environment(config, scratch, os.environ),
                    *(self._log_paths[stream] for stream in layout.STREAMS),
                )
        except BundleError as exc:
            return Ending(EndReason.LAUNCH_FAILED, f"{exc}.")
        except ValueError as exc:
            return Ending(EndReason.LAUNCH_FAILED, str(exc)[:500])
        except OSError as exc:
            if exc.errno in (errno.ENOSPC, errno.EDQUOT):
                return Ending(EndReason.DISK_FULL, f"{exc.strerror}: {exc.filename}.")
            return Ending(EndReason.LAUNCH_FAILED, f"{exc.strerror}: {exc.filename}.")
        status, started = self._status, self._program.started
        status.set_task(started=started)
        status.end_phase("start", started)
        status.begin_phase("first_line", started)
        status.begin_phase("run", started)
        status.event("state", state=State.RUNNING, data={"pid": self._program.pid})
        self._publisher.want_events()
        self._publisher.start()
        self._serve()
        self._show_on_yarn()
        return None

    def _serve(self) -> None:
        """Open the port; a job without a live view is still a job."""
        from submarine_runtime.agent.server import LiveServer

        try:
            self._server = LiveServer(
                self._config.listen,
                self._secret,
                self._status,
                self._task,
                self._log_paths,
                self._on_cancel,
            )
        except (OSError, ValueError) as exc:
            self._status.event("warning", f"There is no live view: {exc}")
            return
        self._server.start()
        self._publisher.announce(reachable_host(self._config.listen), self._server.port)

    def _show_on_yarn(self) -> None:
        if not os.environ.get("SKEIN_APPMASTER_ADDRESS"):
            return
        from submarine_runtime.agent.yarn_page import page_of

        job = {"job_id": self._config.job_id, "name": self._config.name}
        self._page = page_of(self._status, {**job, "links": dict(self._config.links)})
        if self._page is not None:
            self._page.start()

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
        from submarine_runtime.agent.closing import Closing

        status, self._ending = self._status, ending
        self._deadline = time.monotonic() + self._config.save_grace
        if self._program is not None:
            status.end_phase("first_line")
            status.end_phase("run")
            status.begin_phase("save")
            status.event("state", state=State.FINISHING)
        closing = Closing(
            self._store,
            status,
            self._shippers,
            f"{self._task}/e{self._config.epoch}-a{self._config.attempt}",
            lambda: self._deadline,
            self._wakeup.wait,
        )
        failure = closing.save(self._scratch, self._publisher)
        failure = self._unreturned() or failure
        if failure is not None and ending.reason is EndReason.SUCCEEDED:
            ending = Ending(EndReason.OUTPUT_NOT_SAVED, failure, ending.exit_code)
        self._settle(ending)
        if self._page is not None:
            self._page.finish()
        # The record must have its chance even where saving has used up all patience.
        self._deadline = max(self._deadline, time.monotonic() + LAST_WORDS)
        try:
            if not closing.publish_record():
                _say(f"{self._config.job_id} was closed by somebody else meanwhile")
                return 1
        except StoreError as exc:
            _say(f"the record of {self._config.job_id} could not be published: {exc}")
            return 1
        if self._server is not None:
            self._server.finish(FOLLOWERS_GRACE)
        return 0 if ending.reason is EndReason.SUCCEEDED else 1

    def _settle(self, ending: Ending) -> None:
        status = self._status
        status.end(ending.reason, ending.detail, ending.exit_code, ending.signal, ending.failure)
        if ending.reason is EndReason.SUCCEEDED and status.state is not State.FINISHING:
            raise AssertionError("a program that never ran cannot have succeeded")
        state = meaning_of(ending.reason).state
        status.event("state", ending.detail, state=state, reason=ending.reason)

    def _unreturned(self) -> str | None:
        """Why values of ``--return`` did not come back, if so."""
        try:
            with open(self._scratch.path("returns.txt"), encoding="utf-8") as file:
                sentences = [line.strip() for line in file.read(1 << 16).splitlines()]
        except OSError:
            return None
        for sentence in sentences:
            self._status.miss(sentence)
        return " ".join(sentences)[:2000] or None

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
        from submarine_runtime.agent.closing import Closing

        if self._program is not None and self._program.poll() is None:
            self._program.signal(signal.SIGKILL)
        if not self._claimed:
            return 1
        self._store = open_store(self._config.store, timeout=LAST_WORDS)
        self._deadline = time.monotonic() + LAST_WORDS
        ending = Ending(reason, detail)
        try:
            asked = self._cancel or asked_to_cancel(self._store)
            if self._ending is not None and self._ending.reason is not EndReason.SUCCEEDED:
                ending = self._ending  # it had failed by itself before
            elif asked is not None:
                ending = Ending(EndReason.CANCELLED, cancel_sentence(asked))
            closing = Closing(
                self._store,
                self._status,
                self._shippers,
                f"{self._task}/e{self._config.epoch}-a{self._config.attempt}",
                lambda: self._deadline,
                time.sleep,
            )
            for log in self._shippers.values():
                log.ship()
            closing.count_logs()
            self._status.miss("Outputs were not saved: the container was killed.")
            if not self._status.state.ended:
                self._settle(ending)
            closing.publish_record()
        except StoreError as exc:
            _say(f"the record of {self._config.job_id} could not be published: {exc}")
        return 1


def _say(sentence: str) -> None:
    sys.stderr.write(f"submarine agent: {sentence}\n")
    sys.stderr.flush()
