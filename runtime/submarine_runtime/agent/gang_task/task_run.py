"""Execute one ``start`` order of a task: run the program and report its end.

Orders are handled during the run. ``task_agent`` implements the steps before the first program and
after the last one.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Callable, Mapping, Sequence

from submarine_runtime.agent.attempt import Attempt
from submarine_runtime.agent.gang_task.end_messages import ended_line
from submarine_runtime.agent.gang_task.orders import Orders
from submarine_runtime.agent.gang_task.task_status import TaskStatus
from submarine_runtime.agent.link import Link
from submarine_runtime.agent.outputs import OutputSaver
from submarine_runtime.agent.program import Ending, ProgramResources, Wakeup
from submarine_runtime.agent.shipping import LogFiles, LogShippingThread
from submarine_runtime.network import Reservation
from submarine_runtime.protocol import AgentConfig, EndReason, Member, from_json, layout
from submarine_runtime.storage import Scratch, Store, wait_sentence
from submarine_runtime.translation import _


@dataclass
class TaskContext:
    """The components that an agent in task mode uses from its first program to its last."""

    config: AgentConfig
    store: Store
    scratch: Scratch
    status: TaskStatus
    wakeup: Wakeup
    orders: Orders
    link: Link
    shipping: LogShippingThread
    logs: LogFiles
    ports: Reservation
    resources: ProgramResources = field(default_factory=ProgramResources)
    devices: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()


class TaskRun:
    """One run.

    Parameters
    ----------
    prepare
        Called before the program with the gang's members; returns the ending if it failed.
    on_save
        Executes a ``save`` order.
    on_running
        Called after the program has started.
    """

    def __init__(
        self,
        context: TaskContext,
        order: Mapping[str, Any],
        prepare: Callable[[Sequence[Member]], Ending | None],
        on_save: Callable[[Mapping[str, Any]], None],
        on_running: Callable[[], None],
    ) -> None:
        self._context = context
        self._order = order
        self._prepare = prepare
        self._on_save = on_save
        self._on_running = on_running
        self.epoch, self.attempt_number = number_of(order)
        #: ``starting running ending ended``, for a restarted coordinator.
        self.phase = "starting"
        #: Whether the last snapshot has been taken.
        self.synced = False
        self._succeeded = False
        self._stop_reason: str | None = None
        self._syncing: threading.Thread | None = None
        self._saving: OutputSaver | None = None
        self._members = members = [from_json(Member, item) for item in order.get("members") or []]
        config = replace(context.config, epoch=self.epoch, attempt=self.attempt_number)
        self._tasks = sum(member.role == config.role for member in members)
        logs = context.logs.begin(self.epoch, self.attempt_number)
        context.status.begin_attempt(self.epoch, self.attempt_number)
        self.attempt = Attempt(
            config,
            members,
            context.store,
            context.scratch,
            context.status,
            logs,
            context.measured,
            lambda: self._send_state("met"),
            None if order.get("alone") else context.link.send,
            lambda what, seconds: self._send("idle", what=what, seconds=seconds),
        )
        context.logs.shipped_by(self.attempt.log_shippers)

    def run(self) -> None:
        """Run until the end has been reported."""
        context, attempt = self._context, self.attempt
        ending = self._start()
        if ending is None:
            self.phase = "running"
            self._send_state(
                "running", pid=attempt.pid, started=attempt.started, network=attempt.network
            )
            self._on_running()
            ending = self._with_detail(attempt.watch(context.wakeup, self._execute_orders))
        self.phase = "ending"
        remaining = [attempt.log_shippers[layout.HELPER_STREAM]] if attempt.helpers_remain else []
        context.shipping.end(log for log in attempt.shippers if log not in remaining)
        self._sync(ending)
        if ending.reason is EndReason.SUCCEEDED:
            self._succeeded = True
            self._send_state("ending")
            self.save()
            if not self._wait_saved(execute_orders=True) and self._stop_reason is None:
                detail = _("Its logs or outputs were not saved in time.")
                ending = Ending(EndReason.OUTPUT_NOT_SAVED, detail, ending.exit_code)
            elif self._saving is not None and self._saving.failure and self._stop_reason is None:
                reason, detail = EndReason.OUTPUT_NOT_SAVED, self._saving.failure
                ending = Ending(reason, detail, ending.exit_code)
        context.ports.hold()
        self.phase = "ended"
        saved_outputs = {"hints": context.status.hints, **self.saved_outputs()}
        if attempt.streams is not None and attempt.streams.sentences:
            warnings = [*saved_outputs.get("warnings", ()), *attempt.streams.sentences]
            saved_outputs["warnings"] = warnings
        line = ended_line(
            ending, self.epoch, self.attempt_number, attempt.log_lengths(), saved_outputs
        )
        context.link.send(line)

    def _sync(self, ending: Ending) -> None:
        follow = ending.reason is EndReason.SUCCEEDED
        seconds = self._context.config.save_grace

        def sync() -> None:
            self.attempt.sync(ending, seconds, outputs_follow=follow)
            self.synced = True
            self._send("synced")

        self._syncing = threading.Thread(target=sync, name="last-sync", daemon=True)
        self._syncing.start()

    def saved_outputs(self) -> dict[str, Any]:
        """Return ``outputs`` and ``missing`` so far."""
        return (
            self._saving.saved_outputs()
            if self._saving is not None
            else {"outputs": [], "missing": []}
        )

    def save(self) -> None:
        """Save outputs in the background, unless that has begun."""
        context, syncing = self._context, self._syncing
        if self._saving is not None or self.attempt.started is None or syncing is None:
            return
        self._saving = OutputSaver(
            context.store,
            context.scratch,
            self.attempt.prefix,
            context.config.save_grace,
            syncing.join,
            context.wakeup.wake,
            self.attempt.holds,
            context.config.spec.keep,
            self.attempt.first_rank,
            partial(self.attempt.save_outputs, succeeded=self._succeeded),
            succeeded=self._succeeded,
        )
        self._saving.start()

    def end_helpers(self) -> None:
        """End what ran beside the program for other tasks, and ship the rest of its log."""
        self.attempt.end_helpers()
        self._context.shipping.end(self.attempt.shippers)

    def wait_idle(self, seconds: float) -> bool:
        """Wait until this run has no running operation; return False after the timeout."""
        deadline = time.monotonic() + seconds
        if self._syncing is not None:
            self._syncing.join(seconds)
        if self._saving is not None:
            return self._saving.join(max(0.0, deadline - time.monotonic()))
        return self._syncing is None or not self._syncing.is_alive()

    def give_up_saving(self) -> None:
        """Stop saving: a later attempt, in any container, provides the job's outputs."""
        if self._saving is not None:
            self._saving.cancel()

    def fence(self) -> None:
        """Stop all writes at once, because another attempt may write from now on; any thread."""
        self.attempt.fence()
        self.give_up_saving()

    def wait_saved(self) -> bool:
        """Wait for outputs and logs; return False after ``save_grace`` seconds."""
        return self._wait_saved(execute_orders=False)

    def _start(self) -> Ending | None:
        context, attempt = self._context, self.attempt
        restore = self._order.get("restore")
        ending = self._prepare(self._members)
        if ending is None and isinstance(restore, Mapping):
            ending = attempt.restore(restore)
        if ending is not None:
            return ending
        if context.link.silent:
            self.attempt.fence()
        if context.orders.must_end:
            self._execute_orders()
            return self._with_detail(Ending(EndReason.CANCELLED))
        context.resources.tasks = max(1, self._tasks)
        context.shipping.begin(attempt.shippers)
        return attempt.start(context.ports, context.resources, context.wakeup)

    def _with_detail(self, ending: Ending) -> Ending:
        if ending.reason is EndReason.CANCELLED:
            ending.detail = self._stop_reason or _("The task was stopped.")
        return ending

    def _send_state(self, state: str, **fields: Any) -> None:
        self._send("state", state=state, **fields)

    def _send(self, kind: str, **fields: Any) -> None:
        line = {"type": kind, "epoch": self.epoch, "attempt": self.attempt_number}
        self._context.link.send({**line, **fields})

    def _execute_orders(self) -> dict[str, str] | None:
        """Execute orders that have arrived while the program runs."""
        orders = self._context.orders
        if orders.over:
            self.fence()
            return _stopped(_("the link to the coordinator is over"))
        while True:
            order = orders.peek()
            if order is None:
                return None
            kind = order.get("type")
            if kind == "leave" or (kind == "start" and self.is_newer(order)):
                return self._stop(order)
            orders.pop()
            if kind == "stop":
                return self._stop(order)
            if kind == "save":
                self._on_save(order)
            elif kind in ("snapshot", "keep"):
                self.attempt.order(order)

    def is_newer(self, order: Mapping[str, Any]) -> bool:
        """Return whether a ``start`` order is for a later attempt than this one."""
        return number_of(order) > (self.epoch, self.attempt_number)

    def _stop(self, order: Mapping[str, Any]) -> dict[str, str]:
        self._stop_reason = str(order.get("why") or "")[:500]
        grace = order.get("grace")
        if isinstance(grace, (int, float)):
            self.attempt.config.kill_grace = max(0.0, float(grace))
        return _stopped(self._stop_reason)

    def _wait_saved(self, execute_orders: bool) -> bool:
        """Return whether outputs and logs are saved; executed orders may end the wait."""
        context = self._context
        deadline = time.monotonic() + context.config.save_grace
        while self._saving is None or not self._saving.done or context.shipping.pending:
            if self._saving is None and not context.shipping.pending:
                break
            if time.monotonic() > deadline or context.orders.over:
                return False
            order = context.orders.peek() if execute_orders else None
            if order is not None and order.get("type") == "leave":
                self._stop_reason = ""
                return True
            if order is not None and self._execute_orders() is not None:
                self.give_up_saving()
                return True
            if (self._saving is None or self._saving.done) and context.shipping.outage:
                left = deadline - time.monotonic()
                outage = context.shipping.outage
                context.store.on_wait(wait_sentence(context.store.label, left, outage))
            context.wakeup.wait(0.5)
        context.store.on_wait("")
        return True


def _stopped(why: str) -> dict[str, str]:
    """Return a request to end the program for an order, as opposed to a user's cancel."""
    sentence = (
        _("Stopped: {why}.").format(why=why.rstrip("."))
        if why
        else _("Stopped by the coordinator.")
    )
    return {"reason": EndReason.CANCELLED.value, "why": sentence}


def number_of(order: Mapping[str, Any]) -> tuple[int, int]:
    """Return epoch and attempt of a ``start`` order."""
    return int(order.get("epoch") or 0), int(order.get("attempt") or 0)
