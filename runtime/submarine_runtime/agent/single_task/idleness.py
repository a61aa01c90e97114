"""Report that the program of a single task, or its GPUs, have been idle for too long."""

from __future__ import annotations

import threading
import time

from submarine_runtime.agent.attempt import Attempt
from submarine_runtime.agent.measurement import GPUS
from submarine_runtime.agent.single_task.context import Cancellation
from submarine_runtime.protocol import JobSpec
from submarine_runtime.record import Status, idle_gpu_sentence
from submarine_runtime.stacks import report


def report_idle(
    what: str,
    seconds: float,
    spec: JobSpec,
    attempt: Attempt,
    status: Status,
    cancellation: Cancellation,
) -> None:
    """Add the event, or end the job; the stacks are taken in a thread."""
    if what == GPUS:
        sentence = idle_gpu_sentence(seconds, [attempt.task])
        if spec.idle_gpu.action == "end":
            cancellation.end_idle(sentence)
        else:
            status.event("idle_gpu", sentence)
        return

    def describe() -> None:
        limit = spec.stall.seconds
        while (entries := attempt.stacks()) and max(one["quiet"] for one in entries) >= limit:
            found = report(entries, limit)
            if found.stalled:
                status.event("stall", found.sentence, data=found.summary())
                return
            time.sleep(found.again)  # A process waits for another one, which computes.

    threading.Thread(target=describe, name="stacks", daemon=True).start()
