"""End an agent in task mode: released, rejected, or terminated by a signal."""

from __future__ import annotations

import signal
import time
from typing import Any, Mapping

from submarine_runtime.agent.gang_task.end_messages import ended_line
from submarine_runtime.agent.gang_task.task_run import TaskContext, TaskRun
from submarine_runtime.storage import StoreError, retry
from submarine_runtime.translation import _
from submarine_runtime.yarn import write_log

#: Seconds for the last messages after SIGTERM; YARN's default grace is 0.25 s.
TERMINATION_SECONDS = 1.0
#: Seconds that the coordinator has to read the last line.
LAST_LINE_SECONDS = 5.0
#: Seconds to ship logs after a rejection.
REFUSED_GRACE = 10.0


def leave(context: TaskContext, run: TaskRun | None, order: Mapping[str, Any]) -> int:
    """Ship the rest and leave; return the agent's exit code."""
    line: dict[str, Any] = {"type": "left"}
    if run is not None:
        run.end_helpers()
        if order.get("outputs", True):
            run.save()
        else:
            run.give_up_saving()
        whole = run.wait_saved()
        saved_outputs = run.saved_outputs()
        if not whole:
            saved_outputs["missing"] = [
                *saved_outputs["missing"],
                _("The end of its logs or outputs."),
            ]
        numbers = {"epoch": run.epoch, "attempt": run.attempt_number}
        line = {**line, **numbers, "logs": run.attempt.log_lengths(), **saved_outputs}
    context.link.send(line)
    context.link.wait_read(LAST_LINE_SECONDS)
    context.link.close()
    return 0


def link_lost(context: TaskContext, run: TaskRun | None) -> int:
    """Handle a rejection by, or the loss of, the coordinator; return the agent's exit code."""
    link, task = context.link, context.status.first_task.task
    write_log(f"{task}: {link.refused or link.given_up}; this container runs nothing more")
    if run is not None:
        _ship_logs(context, REFUSED_GRACE)
    return 0 if link.refused is not None else 1


def terminate(context: TaskContext, run: TaskRun | None) -> int:
    """Handle SIGTERM: end the program at once, ship its log, send the last messages.

    The log is first, because YARN's grace is short and the coordinator may be dead. The coordinator
    queries the cluster for the reason; only memory use above the limit is detected here.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if run is not None and run.phase != "ended":
        memory = run.attempt.memory_ending()
        if memory is not None:
            lengths = run.attempt.log_lengths()
            context.link.send(ended_line(memory, run.epoch, run.attempt_number, lengths, {}))
    event = {
        "type": "event",
        "kind": "terminated",
        "detail": _("SIGTERM came from outside."),
    }
    context.link.send(event)
    if run is not None:
        _ship_logs(context, TERMINATION_SECONDS)
    context.link.wait_sent(TERMINATION_SECONDS)
    return 1


def _ship_logs(context: TaskContext, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    context.shipping.stop(seconds / 2)
    logs = context.shipping.rest()
    try:
        for log in logs:  # First the end of each log, then final names and indexes.
            log.advance()
        for log in logs:
            retry(log.ship_rest, deadline)
    except StoreError as exc:
        write_log(f"{context.status.first_task.task}: the end of its log was not shipped: {exc}")
