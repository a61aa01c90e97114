"""Run the task of a single-task job from claim to record, and handle interruptions.

``context`` creates the components, ``attempt`` runs the program, ``finalization`` saves outputs and
record. ``gang_task`` runs a task of a distributed job.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Callable, Mapping, Sequence

from submarine_runtime import yarn
from submarine_runtime.agent import single_task
from submarine_runtime.agent.attempt import Attempt
from submarine_runtime.agent.live import LiveViews
from submarine_runtime.agent.outputs import model_version
from submarine_runtime.agent.program import Ending, SigtermInterrupt, Wakeup, requested_ending
from submarine_runtime.agent.single_task.context import (
    Cancellation,
    links_of,
    single_member,
    single_task_context,
)
from submarine_runtime.frameworks import not_collective_sentence
from submarine_runtime.protocol import AgentConfig, EndReason, JobStore, State, layout
from submarine_runtime.record import Status, new_record
from submarine_runtime.storage import (
    Scratch,
    StoreError,
    WriteGate,
    cancel_request,
    claim,
    is_superseded,
    open_store,
    retry,
)
from submarine_runtime.translation import _
from submarine_runtime.yarn import LAUNCH_SCRIPT, first_change, write_log, write_traceback

if TYPE_CHECKING:
    from submarine_runtime.agent.single_task.finalization import Finalization

#: Seconds for the record after SIGTERM; YARN's default grace is 0.25 s.
TERMINATION_SECONDS = 1.0
#: Seconds between two checks of the parent process.
CHECK_SECONDS = 0.25
#: Seconds for a request to each ResourceManager; no other step waits for it.
_RM_SECONDS = 3.0


class SingleTaskAgent:
    """Runs one task; ``run`` is called once.

    Parameters
    ----------
    secret
        ``token``, ``certificate`` and ``key`` of the job.
    directory
        Working directory of the container.
    """

    def __init__(self, config: AgentConfig, secret: Mapping[str, str], directory: str) -> None:
        self._config = config
        self._secret = secret
        self._began = time.time()
        self._wakeup = Wakeup()
        self._scratch = Scratch.of(directory, config, os.environ)
        self._task = f"{config.role}:{config.index}"
        self._status = Status(new_record(config, self._task))
        self._cancel = Cancellation(self._on_request)
        self._attempt: Attempt | None = None
        self._views = LiveViews(config, secret, self._status, self._task, self._scratch.root)
        self._view_is_open = self._claimed = False
        self._ending: Ending | None = None
        self._orphaned = False
        #: The process that started the agent, 0 outside YARN; whether YARN says that a user killed
        #: the application.
        self._parent = os.getppid() if "CONTAINER_ID" in os.environ else 0
        self._was_killed: Callable[[AgentConfig], bool] | None = None

    def run(self) -> int:
        """Run the task to its end; return the agent's exit code."""
        if self._parent > 1:
            threading.Thread(target=self._watch_parent, name="parent", daemon=True).start()
        try:
            self._context = single_task_context(
                self._config, self._scratch, self._status, self._wakeup, self._cancel
            )
            if not claim(self._context.store, self._config, os.environ, self._wakeup.wait):
                write_log(
                    f"{self._config.record.job_id} has ended, or another container has claimed it; "
                    "nothing is run here"
                )
                return 1
            self._claimed = True
            self._context.store.gate = WriteGate(self._holds_claim).check
            return self._claimed_run()
        except SigtermInterrupt:
            return self._terminate()
        except StoreError as exc:
            write_log(f"{self._config.record.job_id}: {exc}")
            return exc.exit_code
        except Exception as exc:
            if self._wakeup.terminated:
                return self._terminate()
            write_traceback()
            return self._finish_terminated(
                EndReason.AGENT_LOST, _("The agent failed: {error!r}").format(error=exc)
            )

    def _watch_parent(self) -> None:
        """End the task after the process that started the agent has died: YARN's container ended.

        The NodeManager signals the other processes of a container in most cases, but not always.
        """
        # Imported before it is needed: YARN deletes the archive of this code with SIGTERM.
        self._was_killed = yarn.application_was_killed
        while os.getppid() == self._parent:
            time.sleep(CHECK_SECONDS)
        if not self._wakeup.terminated:
            self._orphaned = True
            os.kill(os.getpid(), signal.SIGTERM)

    def _terminate(self) -> int:
        if self._orphaned or self._master_died():
            return self._finish_terminated(EndReason.MASTER_LOST, _("The application master died."))
        return self._finish_terminated(EndReason.KILLED_ON_CLUSTER, _("SIGTERM came from outside."))

    def _master_died(self) -> bool:
        """Return whether the NodeManager sent SIGTERM because the application master died.

        The master is the parent of an agent in its container. In another container, the shell that
        is the parent dies of the same signal.
        """
        died = in_master_container() and os.getppid() != self._parent
        return died and not (self._was_killed and self._was_killed(self._config))

    def _claimed_run(self) -> int:
        status = self._status
        config = self._config
        record_start_phases(
            status, self._scratch, self._began, config.resourcemanagers, config.store
        )
        status.event("claimed", data={"host": socket.gethostname(), "pid": os.getpid()})
        status.event("state", state=State.STARTING)
        request = retry(
            lambda: cancel_request(self._context.store),
            time.monotonic() + self._config.save_grace,
            wait=self._wakeup.wait,
            store=self._context.store,
        )
        if request is not None:
            self._cancel.cancel_by(request)
            return self._close(requested_ending(request))
        self._context.tokens.start()
        over = self._context.lease.begin(
            layout.CLAIM,
            self._wakeup.wait,
            lambda: self._cancel.request is not None,
            grace=self._config.save_grace,
        )
        if over:
            return self._close(Ending(EndReason.LEASE_EXPIRED, over))
        failed = self._prepare() or self._start()
        if failed is not None:
            return self._close(failed)
        assert self._attempt is not None
        return self._close(
            self._attempt.watch(self._wakeup, lambda: self._cancel.request, alone=True)
        )

    def _holds_claim(self) -> bool:
        """Return whether the job still belongs to this container; otherwise end the program."""
        if not is_superseded(self._context.store):
            return True
        if self._attempt is not None:
            self._attempt.fence()
            self._wakeup.wake()
        return False

    def _prepare(self) -> Ending | None:
        """Claim devices, unpack the bundle, fetch inputs; return the ending if a step fails."""
        preparing, config = self._context.preparing, self._config
        # These steps may take long: open the view, so that a cancel is received.
        failed = preparing.claim_devices(self._open_view) or preparing.place()
        if failed is None and (config.fetch or preparing.is_environment_packed):
            self._open_view()
            failed = preparing.unpack_environment() or preparing.fetch([])
        if failed is not None and self._cancel.request is not None:
            failed = requested_ending(self._cancel.request)
        self._status.set_task(gpus=list(preparing.devices), detail="")
        return failed

    def _start(self) -> Ending | None:
        """Start the program; return the ending if it could not be started."""
        config, preparing = self._config, self._context.preparing
        try:
            member, ports = single_member(config)
        except (ValueError, OSError) as exc:
            return Ending(EndReason.LAUNCH_FAILED, str(exc)[:500])
        self._status.set_record(links=links_of(config, member))
        files = self._context.logs.begin(config.epoch, config.attempt)
        devices = preparing.devices if preparing.driver else ()
        attempt = self._attempt = Attempt(
            config,
            [member],
            self._context.store,
            self._scratch,
            self._status,
            files,
            devices,
            on_idle=self._on_idle,
        )
        self._context.publisher.add(attempt.samples)
        # Import the code for the end of the job now: YARN deletes the archive as soon as it sends
        # SIGTERM, which may come right after the program's start.
        self._closing(self._wakeup.wait)
        failed = attempt.restore(None) or attempt.start(ports, preparing.resources, self._wakeup)
        if failed is not None:
            return failed
        status, started = self._status, attempt.started
        status.set_task(started=started, network=attempt.network or None)
        status.end_phase("start", started)
        status.begin_phase("first_line", started)
        status.begin_phase("run", started)
        status.event("state", state=State.RUNNING, data={"pid": attempt.pid})
        self._context.publisher.ship_events_soon()
        self._open_view()
        return None

    def _open_view(self) -> None:
        """Open the live view and start to ship."""
        if not self._view_is_open:
            self._view_is_open = True
            self._context.publisher.start()
            self._views.open(
                self._context.logs,
                self._cancel.cancel_by,
                lambda name: model_version(self._context.store, self._scratch, name),
                self._context.publisher.announce,
                self._context.lease.renew,
                self._context.tokens.receive,
                lambda: self._attempt.stacks() if self._attempt is not None else [],
            )

    def _close(self, ending: Ending) -> int:
        """Save everything, publish the record, and disconnect the followers."""
        status, self._ending = self._status, ending
        self._context.lease.stop()
        self._context.tokens.stop()
        self._cancel.deadline = time.monotonic() + self._config.save_grace
        if self._attempt is not None and self._attempt.started is not None:
            status.end_phase("first_line")
            status.end_phase("run")
            status.begin_phase("save")
            status.event("state", state=State.FINISHING)
        if self._attempt is not None:
            limit = self._cancel.limit(self._config.save_grace)
            self._attempt.sync(ending, limit, outputs_follow=True)
        closing = self._closing(self._wakeup.wait)
        attempt = self._attempt
        if attempt is not None and attempt.started is None:
            attempt = None
        failure = closing.save(self._scratch, self._context.publisher, attempt, ending)
        if failure is not None and ending.reason is EndReason.SUCCEEDED:
            ending = Ending(EndReason.OUTPUT_NOT_SAVED, failure, ending.exit_code)
        ending = self._check_collective(ending)
        closing.delete_secrets()
        with suppress(OSError):  # On YARN this is a link to a file that the NodeManager removes.
            os.unlink(self._scratch.path(layout.SECRET_ENV))
        closing.record_ending(ending)
        self._views.finish_page()
        # Allow one attempt for the record, even if saving has used up the time.
        self._cancel.deadline = max(self._cancel.deadline, time.monotonic() + TERMINATION_SECONDS)
        try:
            if not closing.publish_record():
                write_log(
                    f"{self._config.record.job_id} was closed by another process in the meantime"
                )
                return 1
        except StoreError as exc:
            write_log(f"the record of {self._config.record.job_id} could not be published: {exc}")
            return exc.exit_code
        self._views.finish_followers()
        succeeded = ending.reason is EndReason.SUCCEEDED
        self._views.unregister(succeeded)
        return 0 if succeeded else 1

    def _check_collective(self, ending: Ending) -> Ending:
        """Warn or fail the job if it succeeded and its processes never used the rendezvous port."""
        port_use = self._attempt.port_use if self._attempt is not None else None
        if ending.reason is not EndReason.SUCCEEDED or port_use is None or port_use.noticed:
            return ending
        required = self._config.spec.require_collective
        sentence = not_collective_sentence(self._config.spec.framework, 1, required)
        if required:
            return Ending(EndReason.NOT_COLLECTIVE, sentence, ending.exit_code)
        if sentence:
            self._status.event("warning", sentence)
            self._status.warn(sentence)
        return ending

    def _closing(self, wait: Callable[[float], object]) -> Finalization:
        # cost: the program has ended; it did not wait for this import.
        from submarine_runtime.agent.single_task.finalization import Finalization

        return Finalization(
            self._config,
            self._context.store,
            self._status,
            self._context.shippers,
            f"{self._task}/e{self._config.epoch}-a{self._config.attempt}",
            lambda: self._cancel.deadline,
            wait,
            () if self._attempt is None else (self._attempt.samples,),
        )

    def _on_idle(self, what: str, seconds: float) -> None:
        """Report a limit of ``--stall`` or ``--idle-gpu`` that is exceeded."""
        attempt = self._attempt
        if attempt is None or not seconds:
            return
        single_task.report_idle(
            what, seconds, self._config.spec, attempt, self._status, self._cancel
        )

    def _on_request(self, request: dict[str, str]) -> None:
        ending = requested_ending(request)
        kind = "cancel_requested" if ending.reason is EndReason.CANCELLED else "lease"
        kind = "idle_gpu" if ending.reason is EndReason.IDLE_GPU else kind
        self._status.event(kind, ending.detail)
        self._wakeup.wake()

    def _finish_terminated(self, reason: EndReason, detail: str) -> int:
        """End the program at once and publish the record in the remaining time."""
        over = None
        if self._attempt is not None:
            over = self._attempt.memory_ending()
        if not self._claimed:
            return 1
        gate = self._context.store.gate
        self._context.store = open_store(self._config.store, timeout=TERMINATION_SECONDS)
        self._context.store.gate = gate
        self._cancel.deadline = time.monotonic() + TERMINATION_SECONDS
        try:
            ending = over or Ending(reason, detail)
            if self._ending is not None and self._ending.reason is not EndReason.SUCCEEDED:
                ending = self._ending  # The program had failed before.
            elif over is None:
                request = self._cancel.request or cancel_request(self._context.store)
                if request is not None:
                    ending = requested_ending(request)
            self._closing(time.sleep).publish_terminated(ending, record_first=over is not None)
        except StoreError as exc:
            write_log(f"the record of {self._config.record.job_id} could not be published: {exc}")
        return 1


def record_start_phases(
    status: Status,
    scratch: Scratch,
    began: float,
    resourcemanagers: Sequence[str] = (),
    store: JobStore | None = None,
) -> None:
    """Record the phases before the agent, and its own first phase.

    Parameters
    ----------
    resourcemanagers, store
        Queried with the authentication of the job directory, in a thread, for the time when this
        container was allocated: YARN unpacks an archive before or after it localizes the small
        files with times that are visible here.
    """
    localized = localized_from(scratch, began)
    launched = max(localized, master_launch_time(scratch, began))
    status.end_phases(localized)  # The client's last phase, the wait in the queue.
    status.begin_phase("localizing", localized)
    status.end_phase("localizing", launched)
    if launched < began:
        status.begin_phase("master_start", launched)
        status.end_phase("master_start", began)
    status.begin_phase("start", began)
    container = os.environ.get("CONTAINER_ID")
    if resourcemanagers and store and container:

        def ask() -> None:
            # cost: http.client and the parser, in a thread beside the program.
            from submarine_runtime.yarn import container_started

            granted = container_started(resourcemanagers, container, _RM_SECONDS, store)
            if granted is not None:
                status.localizing_since(granted)

        threading.Thread(target=ask, name="localizing", daemon=True).start()


def localized_from(scratch: Scratch, began: float) -> float:
    """Return when the first of the job's files was localized on this node, else ``began``."""
    ours = ("agent.json", "secret.json", layout.BUNDLE)
    return min(first_change([scratch.path(name) for name in ours]) or began, began)


def master_launch_time(scratch: Scratch, began: float) -> float:
    """Return when YARN launched this container, if it is the application master's; else ``began``.

    The NodeManager writes the launch script when all files are there.
    """
    if not in_master_container():
        return began
    return min(first_change([scratch.path(LAUNCH_SCRIPT)]) or began, began)


def in_master_container() -> bool:
    """Return whether this process runs in the container of the application master."""
    return os.environ.get("CONTAINER_ID", "").endswith("_000001")
