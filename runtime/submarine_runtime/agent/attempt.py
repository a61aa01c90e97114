"""One run of a task's program with its checkpoints, helpers, samples and end.

Used for single tasks and for tasks of a gang. The callers report to the coordinator (``gang_task``)
or write the record (``single_task``).
"""

from __future__ import annotations

import os
import signal
import threading
import time
from shutil import rmtree
from typing import Any, Callable, Mapping, Sequence

from submarine_runtime import restore_points, stacks
from submarine_runtime.agent import measurement, outputs, program, sync
from submarine_runtime.agent.measurement import SampleLog, sample_shipper
from submarine_runtime.agent.program import (
    Ending,
    HelperError,
    HelperProcesses,
    Program,
    ProgramResources,
    Wakeup,
    helper_ending,
    memory_ending,
    setup_of,
    start_program,
)
from submarine_runtime.agent.shipping import LogShipper, log_shippers
from submarine_runtime.agent.sync import SyncThread
from submarine_runtime.frameworks import (
    EVALUATOR,
    NOT_COLLECTIVE_ROLES,
    collective_tasks,
    first_rank,
    must_join,
    setting_of,
    world_size,
)
from submarine_runtime.network import PortUse, Reservation
from submarine_runtime.processes import Guard
from submarine_runtime.protocol import (
    AgentConfig,
    EndReason,
    IdleLimit,
    Member,
    chief_of,
    layout,
)
from submarine_runtime.record import Status
from submarine_runtime.snapshots import restore, restore_chosen
from submarine_runtime.storage import (
    DamagedError,
    NotFoundError,
    Scratch,
    Store,
    StoreError,
    retry,
)
from submarine_runtime.translation import _


class Attempt:
    """One attempt.

    Parameters
    ----------
    config
        Configuration with the ``index``, ``epoch`` and ``attempt`` of this attempt.
    members
        Members of the gang, this task included.
    logs
        Stream -> file.
    devices
        GPUs to measure.
    on_rendezvous
        Called once, when the program has used the port of its gang's rendezvous.
    report
        See ``SyncThread``.
    on_idle
        Called when a limit of ``--stall`` or ``--idle-gpu`` is exceeded; see ``Activity``.

    Attributes
    ----------
    network
        Interface and address that the framework was configured to use, for the record.
    started
        Start of the program, in seconds since the epoch; None if it has not started.
    shippers
        Shippers of its logs and samples.
    port_use
        Detects whether the program uses its rendezvous port; None: not checked.
    """

    def __init__(
        self,
        config: AgentConfig,
        members: Sequence[Member],
        store: Store,
        scratch: Scratch,
        status: Status,
        logs: Mapping[str, str],
        devices: Sequence[str],
        on_rendezvous: Callable[[], None] = lambda: None,
        report: Callable[[dict[str, Any]], None] | None = None,
        on_idle: Callable[[str, float], None] = lambda what, seconds: None,
    ) -> None:
        self.config = config
        self.port_use: PortUse | None = None
        self._on_rendezvous = on_rendezvous
        self.task = f"{config.role}:{config.index}"
        self._members = members
        self.chief = chief_of(members).task if members else self.task
        self._store = store
        self._scratch = scratch
        self._status = status
        self._logs = logs
        self._program: Program | None = None
        self._helpers: HelperProcesses | None = None
        self._guard: Guard | None = None
        self._fenced = self._syncing_began = self._synced = False
        self._lock = threading.Lock()
        self.network = ""
        self._labels: list[str] = []
        self.started: float | None = None
        epoch, attempt = config.epoch, config.attempt
        directory = layout.log_directory(self.task, epoch, attempt)
        self.log_shippers = log_shippers(store, directory, logs, config)
        path = os.path.join(os.path.dirname(logs["stdout"]), f"{scratch.task_name}.samples")
        name = layout.attempt_name(epoch, attempt)
        self._samples = SampleLog(f"{path}.{name}", self.task, epoch, attempt, devices)
        self.samples = sample_shipper(
            store, self._samples.path, self.task, epoch, attempt, config.ship_interval
        )
        self.shippers: list[LogShipper] = [*self.log_shippers.values(), self.samples]
        #: Copies the chief's checkpoints to the directory of an evaluator.
        self.copies: sync.ChiefCheckpoints | None = None
        if config.role == EVALUATOR and self.chief != self.task:
            self.copies = sync.ChiefCheckpoints(
                store,
                scratch.outputs[layout.CHECKPOINTS],
                self.chief,
                config.sync_interval,
                config.save_grace,
                status.event,
            )
        #: Files in the checkpoint directory that are not this task's own.
        self._others = sync.OtherTasksFiles(scratch.outputs[layout.CHECKPOINTS])
        self.holds = self._others.holds if self.copies is None else self.copies.holds
        #: The directories of ``--save-output``; None without this option.
        self.outputs: outputs.TaskOutputs | None = None
        if config.publish:
            self.outputs = outputs.TaskOutputs(config, store, scratch, self.task, status.event)
        #: The inputs with mode ``stream``; None without any.
        self.streams: program.InputStreams | None = None
        if any(one.mode == "stream" for one in config.fetch):
            self.streams = program.InputStreams(
                config,
                store,
                scratch,
                lambda kind, detail, data: status.event(kind, detail, data=data),
            )
        self._on_idle = on_idle
        self._activity: measurement.Activity | None = None
        self._syncing = SyncThread(
            store,
            scratch,
            config,
            self.task,
            epoch,
            attempt,
            lambda kind, detail, data: status.event(kind, detail, data=data),
            chief=self.chief == self.task,
            tensorboard_clients=status.tensorboard_clients,
            copies=self.copies or self._others,
            world=world_size(collective_tasks(members)),
            report=report,
            is_running=self._program_is_running,
            streams=self.streams,
        )

    def _program_is_running(self) -> bool:
        """Return whether the program runs and its end was not requested; from any thread."""
        program = self._program
        if program is None:
            return True
        signalled = program.sent(signal.SIGTERM) or program.sent(signal.SIGKILL)
        return not signalled and program.poll() is None

    def _new_activity(self) -> measurement.Activity | None:
        """Return what detects idleness; None if there is no limit for this task.

        Servers and evaluators wait for other tasks.
        """
        config = self.config
        trains = config.task_role.kind == "tracked" and config.role not in NOT_COLLECTIVE_ROLES
        stall = config.spec.stall if trains else IdleLimit()
        if not stall.seconds and not config.spec.idle_gpu.seconds:
            return None
        return measurement.Activity(
            stall, config.spec.idle_gpu, self._on_idle, self._rank_processes
        )

    def _rank_processes(self, members: Sequence[int]) -> dict[int, int]:
        found = stacks.rank_processes(self._scratch.root, members)
        return {process.number: process.pid for process in found}

    def stacks(self) -> list[dict[str, Any]]:
        """Return the stacks of the program's processes; see ``stacks.report``."""
        program = self._program
        if program is None or program.poll() is not None:
            return []
        entries = stacks.take(program.pid, self._scratch.root, self._scratch.program)
        quiet = self._activity.quiet() if self._activity is not None else {}
        member = next((one for one in self._members if one.task == self.task), None)
        collective = collective_tasks(self._members)
        several = member is not None and world_size(collective) > 1
        first = first_rank(member, collective) if several and member is not None else None
        for entry in entries:
            entry["task"] = self.task
            entry["rank"] = None if first is None else first + entry["process"]
            entry["quiet"] = round(quiet.get(entry["process"], 0.0), 1)
        return entries

    @property
    def prefix(self) -> str:
        """Path of the outputs in the job directory."""
        own = f"{layout.TASKS}/{self.config.role}-{self.config.index}/"
        return "" if self.chief == self.task else own

    @property
    def first_rank(self) -> int | None:
        """Rank of the first process, if the values of every rank are returned."""
        return self._rank(alone=True) if self.config.spec.return_all_ranks else None

    def _rank(self, *, alone: bool = False) -> int | None:
        """Return the rank of the first process; None if there is one in all, unless ``alone``."""
        collective = collective_tasks(self._members)
        member = next((one for one in self._members if one.task == self.task), None)
        if member is None or (world_size(collective) < 2 and not alone):
            return None
        return first_rank(member, collective)

    @property
    def pid(self) -> int:
        """Process id of the running program."""
        assert self._program is not None
        return self._program.pid

    def restore(self, order: Mapping[str, Any] | None) -> Ending | None:
        """Restore checkpoints before the program starts; return the ending if that fails.

        Parameters
        ----------
        order
            ``restore`` of the coordinator's ``start`` line; None: there is no coordinator.
        """
        config = self.config
        if order is None and not (config.restore_from or config.checkpoint_path):
            return None

        return restore_checkpoints(
            self._store,
            self._scratch,
            config,
            self.task,
            order,
            self._status,
            self.streams,
            self._others.remember,
        )

    def order(self, order: Mapping[str, Any]) -> None:
        """Execute a ``snapshot`` or ``keep`` line of the coordinator."""
        self._syncing.order(order)

    def start(
        self, ports: Reservation, resources: ProgramResources, wakeup: Wakeup
    ) -> Ending | None:
        """Start helpers and program; return the ending if they could not be started."""
        config = self.config
        if self.outputs is not None and (unprepared := self.outputs.prepare()):
            return Ending(EndReason.LAUNCH_FAILED, unprepared)
        setup = setup_of(config, self._members, self._scratch)
        if isinstance(setup, Ending):
            return setup
        self.network = setup.network
        self._labels = program.process_labels(setup)
        if setup.hold_ports:
            ports.hold()
        else:
            ports.release()
        try:
            self._guard = Guard()
            if setup.helpers:
                self._helpers = HelperProcesses(
                    self._guard,
                    config.interpreter,
                    self._scratch.root,
                    self._scratch.path("helpers.ready"),
                    self._logs[layout.HELPER_STREAM],
                )
                self._helpers.start(setup.helpers, wakeup.wait)
        except (HelperError, OSError) as exc:
            self.end_helpers()
            return helper_ending(str(exc), config.spec.framework)
        if self.copies is not None:
            self.copies.start()
        self._syncing.start()
        self._syncing_began = True
        resources.ports = ports.ports
        # A check takes 10 ms of CPU time: only if its result is used.
        joins = must_join(config.spec.framework, config.spec.require_collective)
        if setup.rendezvous and joins and ports.ports:
            served = setup.rendezvous == "helper"
            address = next(one.address for one in self._members if one.task == self.task)
            self.port_use = PortUse(address, ports.ports[0], served, self._on_rendezvous)
        rmtree(self._scratch.path("stacks"), ignore_errors=True)  # Of an earlier program.
        streams = self.streams
        failed = streams and streams.start(setup, resources, self._guard)
        failed = failed or start_program(
            config, self._scratch, self._logs, wakeup, self._hold, setup, resources, self._guard
        )
        if failed is not None:
            self.end_helpers()
        elif self.outputs is not None:
            self.outputs.start(self._program_is_running)
        return failed

    def _hold(self, program: Program) -> None:
        with self._lock:
            self._program = program
            if self._fenced:
                program.signal(signal.SIGKILL)
        self.started = program.started

    def watch(
        self,
        wakeup: Wakeup,
        end_request: Callable[[], dict[str, str] | None],
        *,
        alone: bool = False,
    ) -> Ending:
        """Monitor the program until it ends.

        If it succeeds, its helpers remain until ``end_helpers``: other tasks may need them.

        Parameters
        ----------
        end_request
            Returns a request to end the program, or None; called after every event.
        alone
            The task has no gang, so a taken port is not an error of the gang's setup.
        """
        # cost: the program runs already and does not wait for this import.
        from submarine_runtime.agent.program import monitor_program

        assert self._program is not None
        self._activity = self._new_activity()
        streams = self.streams
        requested = end_request
        if streams is not None:
            end_request = lambda: streams.problem() or requested()  # noqa: E731
        words = () if alone else tuple(setting_of(self.config.spec.framework, "ADDRESS_IN_USE"))
        succeeded = False
        try:
            ending = monitor_program(
                self.config,
                self._program,
                self._status,
                wakeup,
                self._scratch,
                self._logs,
                end_request,
                self._samples,
                port_messages=words,
                port_use=self.port_use,
                labels=self._labels,
                first_rank=self._rank(),
                activity=self._activity,
            )
            if streams is not None:
                ending = streams.ending(ending)
            succeeded = ending.reason is EndReason.SUCCEEDED
        finally:
            if streams is not None:
                streams.end()
            if not succeeded or self._helpers is None:
                self.end_helpers()
        if self._fenced:
            detail = _(
                "The coordinator was silent for too long; the program was ended, so that no "
                "other attempt writes beside it."
            )
            return Ending(EndReason.TASK_LOST, detail, signal=int(signal.SIGKILL))
        return ending

    def sync(self, ending: Ending, seconds: float, *, outputs_follow: bool) -> None:
        """Synchronize the program's files after its end.

        Parameters
        ----------
        seconds
            Time limit.
        outputs_follow
            All outputs are saved right after this.
        """
        if self._synced or not self._syncing_began:
            return
        self._synced = True
        if self.outputs is not None:
            self.outputs.stop()
        if self.copies is not None:
            self.copies.stop()
        if self._fenced:
            self._syncing.stop(0.0, whole=False)
        else:
            # A signal can end a program during a write; libraries abort when they do not write.
            whole = ending.signal in (None, signal.SIGABRT)
            self._syncing.stop(seconds, whole=whole, outputs_follow=outputs_follow)

    def save_outputs(
        self,
        attempt: Callable[[Callable[[], Any]], Any],
        saved: Callable[[str, int], None],
        missing: Callable[[str], None],
        *,
        succeeded: bool,
    ) -> str | None:
        """Save ``SUBMARINE_OUTPUT_DIR``, and the directories of ``--save-output``.

        Parameters
        ----------
        attempt, saved, missing
            See ``save_output_directory``; files of ``--save-output`` are not counted.
        succeeded
            Whether the task has succeeded. Otherwise only ``--save-on-failure`` saves files.

        Returns
        -------
        str or None
            The first error's sentence.
        """
        failure = None
        if succeeded or self.config.spec.save_on_failure:
            failure = outputs.save_output_directory(
                self._store, self._scratch, self.task, attempt, saved, missing
            )
        if failure is None and self.outputs is not None:
            failure = self.outputs.save(attempt, missing, succeeded=succeeded)
        return failure

    def fence(self) -> None:
        """End the program at once and stop all writes; from any thread."""
        with self._lock:
            self._fenced = True
            if self._program is not None and self._program.poll() is None:
                self._program.signal(signal.SIGKILL)
        if self.outputs is not None:
            self.outputs.stop()
        if self.copies is not None:
            self.copies.stop()
        if self._syncing_began:
            self._syncing.stop(0.0, whole=False)

    def memory_ending(self) -> Ending | None:
        """Kill the program; return an out-of-memory ending if it uses too much memory now."""
        if (program := self._program) is None:
            return None
        over = memory_ending(program, self.config)
        program.signal(signal.SIGKILL)
        return over

    def log_lengths(self) -> dict[str, int]:
        """Return stream -> length of the local log; that of helpers only if there is one."""
        lengths = {stream: log.length() for stream, log in self.log_shippers.items()}
        if not lengths[layout.HELPER_STREAM]:
            del lengths[layout.HELPER_STREAM]
        return lengths

    @property
    def helpers_remain(self) -> bool:
        """Whether helpers run that were not ended by ``end_helpers``."""
        return self._helpers is not None

    def end_helpers(self) -> None:
        """End the processes beside the program; may be called repeatedly."""
        if self.streams is not None:
            self.streams.end()
        if self._helpers is not None:
            self._helpers.end()
            self._helpers = None
        if self._guard is not None:
            self._guard.release()


def restore_checkpoints(
    store: Store,
    scratch: Scratch,
    config: AgentConfig,
    task: str,
    order: Mapping[str, Any] | None,
    status: Status,
    streams: program.InputStreams | None = None,
    others: Callable[[Sequence[str]], object] = len,
) -> Ending | None:
    """Restore checkpoints; return the ending if they exist and cannot be restored.

    Parameters
    ----------
    order
        The coordinator's choice; None: there is no coordinator.
    others
        Receives the names of files that are those of other tasks.
    """
    try:
        if order is None:
            deadline = time.monotonic() + config.save_grace
            order, warnings = retry(
                lambda: restore_points.order_of_single_task(
                    store, task, config.restore_from, config.checkpoint_path
                ),
                deadline,
                store=store,
            )
            for sentence in warnings:
                status.event("warning", sentence)
        if order is None:
            done = restore(store, scratch, config, task, task)
        else:
            done = restore_chosen(store, scratch, config, task, order)
        others(done.others)
        if streams is not None:
            streams.resume(done.began)
    except (DamagedError, NotFoundError) as exc:
        detail = _("The restore point could not be restored: {error}.").format(error=exc)
        damaged = getattr(exc, "part", "") or task
        return Ending(EndReason.LAUNCH_FAILED, detail, unrestored="" if order is None else damaged)
    except (StoreError, OSError) as exc:
        return Ending(
            EndReason.LAUNCH_FAILED,
            _("Checkpoints could not be restored: {error}.").format(error=exc),
        )
    for sentence in done.skipped:
        status.event("warning", sentence)
    if done.source:
        detail = _("{files} files were restored from {source}.").format(
            files=done.files, source=done.source
        )
        data = {"source": done.source, "files": done.files, "bytes": done.bytes}
        status.event("restored", detail, data=data)
    return None
