"""Components of the agent of a job with one task, and its gang of one member.

``single_task_agent`` runs the task.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Callable

from submarine_runtime.agent.preparation import Preparation
from submarine_runtime.agent.program import Wakeup
from submarine_runtime.agent.shipping import LogFiles, LogShipper, Publisher, log_shippers
from submarine_runtime.frameworks import process_count, setting_of
from submarine_runtime.network import Reservation
from submarine_runtime.protocol import AgentConfig, EndReason, Member, layout, resolve_links
from submarine_runtime.record import Status
from submarine_runtime.storage import (
    LeaseWatch,
    Scratch,
    Store,
    StoreError,
    TokenRefresh,
    open_store,
)
from submarine_runtime.translation import _
from submarine_runtime.yarn import reachable_host, wait_reporter

#: Seconds for saving after a cancel.
CANCELLED_GRACE = 10.0


@dataclass
class SingleTaskContext:
    """The components that the agent of a single task uses from the claim to the record."""

    store: Store
    lease: LeaseWatch
    tokens: TokenRefresh
    logs: LogFiles
    preparing: Preparation
    shippers: dict[str, LogShipper]
    publisher: Publisher


def single_task_context(
    config: AgentConfig, scratch: Scratch, status: Status, wakeup: Wakeup, cancel: Cancellation
) -> SingleTaskContext:
    """Create the components; the log files begin now.

    Raises
    ------
    StoreError
        If the kind of the store in ``config`` is unknown; one sentence.
    """
    try:
        store = open_store(config.store)
    except ValueError as exc:
        raise StoreError(str(exc)) from exc
    store.on_wait = wait_reporter(lambda sentence: status.set_record(pending=sentence))
    lease = LeaseWatch(store, config.spec.lease, cancel.expire)
    tokens = TokenRefresh(
        config.store,
        store,
        status.warn,
        directory=scratch.root,
        resourcemanagers=config.resourcemanagers,
    )
    logs = LogFiles(scratch)
    preparing = Preparation(
        config,
        store,
        scratch,
        wakeup.wait,
        status.event,
        lambda detail, share: status.set_task(detail=detail),
        lambda: cancel.request is not None,
    )
    files = logs.begin(config.epoch, config.attempt)
    task = f"{config.role}:{config.index}"
    directory = layout.log_directory(task, config.epoch, config.attempt)
    shippers = log_shippers(store, directory, files, config)
    logs.shipped_by(shippers)
    publisher = Publisher(
        store,
        shippers,
        status.events_after,
        cancel.cancel_by,
        lambda sentence: status.event(
            "warning", _("Shipping waits: {sentence}").format(sentence=sentence)
        ),
    )
    return SingleTaskContext(store, lease, tokens, logs, preparing, shippers, publisher)


def single_member(config: AgentConfig) -> tuple[Member, Reservation]:
    """Return the only member and the reservation of its ports.

    Raises
    ------
    ValueError
        If the framework is unknown; one sentence.
    OSError
        If no port is free.
    """
    framework, gpus = config.spec.framework, config.size.gpus
    processes = process_count(framework, config.task_role.processes, gpus, gang=False)
    ports = Reservation(int(setting_of(framework, "PORTS")), config.port_range)
    task = f"{config.role}:{config.index}"
    member = Member(
        task,
        config.role,
        config.index,
        "localhost",
        "127.0.0.1",
        ports.ports,
        gpus=config.size.gpus,
        processes=processes,
    )
    return member, ports


def links_of(config: AgentConfig, member: Member) -> dict[str, str]:
    """Return the job's links, with this host for the task."""
    return resolve_links(config.links, [replace(member, host=reachable_host(config.listen))])


class Cancellation:
    """The first request to end the job.

    Parameters
    ----------
    on_request
        Called once, in the thread that receives the request.

    Attributes
    ----------
    request
        ``by`` and ``why``; None without a request. For an expired lease ``reason`` is the end
        reason.
    deadline
        ``time.monotonic()`` after which nothing is saved.
    """

    def __init__(self, on_request: Callable[[dict[str, str]], None]) -> None:
        self._on_request = on_request
        self._grace = float("inf")
        self.request: dict[str, str] | None = None
        self.deadline = float("inf")

    def cancel_by(self, request: dict[str, str]) -> None:
        """Cancel the job, from any thread; only the first request counts."""
        self._accept(request, CANCELLED_GRACE)

    def expire(self, why: str) -> None:
        """End the job because its lease has expired; saving is not limited further."""
        self._accept({"reason": EndReason.LEASE_EXPIRED.value, "why": why}, float("inf"))

    def end_idle(self, why: str) -> None:
        """End the job because its GPUs are idle; saving is not limited further."""
        self._accept({"reason": EndReason.IDLE_GPU.value, "why": why}, float("inf"))

    def limit(self, seconds: float) -> float:
        """Return the part of ``seconds`` that saving may use."""
        return min(seconds, self._grace)

    def _accept(self, request: dict[str, str], grace: float) -> None:
        if self.request is not None:
            return
        self.request, self._grace = request, grace
        self.deadline = min(self.deadline, time.monotonic() + grace)
        self._on_request(request)
