"""Run the checks at once, each in its own thread and within its own time.

A check that needs another one waits for it, and is not run when that one has found an error: one
fault gives one finding.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from submarine_jobs.concurrency import call_with_timeout
from submarine_jobs.doctor.context import DoctorContext
from submarine_jobs.doctor.result import Check, Finding, Result, Status
from submarine_jobs.errors import SubmarineError

#: At once; each has one thread more for its time limit.
AT_ONCE = 8


def examine(context: DoctorContext, checks: Sequence[Check], *, node: bool = False) -> list[Result]:
    """Results in the order of ``checks``, those that make sense here.

    Parameters
    ----------
    node
        This machine is a node of the cluster; else it is one that submits jobs.
    """
    chosen = [check for check in checks if (check.node if node else check.client)]
    running: dict[str, Future[Result]] = {}
    with ThreadPoolExecutor(AT_ONCE, "submarine-doctor") as pool:
        for check in chosen:
            # Only earlier checks, which the pool has started before: waiting cannot block it.
            needed = [running[name] for name in check.needs if name in running]
            running[check.name] = pool.submit(_look, check, context, needed)
        return [future.result() for future in running.values()]


def _look(check: Check, context: DoctorContext, needed: Sequence[Future[Result]]) -> Result:
    why_not = context.no_cluster if check.cluster else ""
    for result in (future.result() for future in needed):
        if not why_not and result.status is Status.ERROR:
            why_not = f"`{result.name}` found an error"
    if why_not:
        sentence = f"Not checked, because {why_not}."
        return Result(check.name, Status.SKIPPED, sentence, unchecked=True)
    started = time.monotonic()
    try:
        found = call_with_timeout(check.seconds, lambda: check.look(context))
    except TimeoutError:
        found = Finding(
            Status.ERROR,
            f"There was no answer within {check.seconds:g} s.",
            "Something on the way does not answer: look at the other checks.",
        )
    except SubmarineError as exc:
        found = Finding(Status.ERROR, exc.message, exc.fix)
    except Exception as exc:  # a broken check must not hide the others
        found = Finding(
            Status.ERROR,
            f"The check itself failed: {type(exc).__name__}: {exc}."[:300],
            "Please report it with this sentence.",
        )
    seconds = time.monotonic() - started
    return Result(check.name, found.status, found.sentence, found.fix, seconds)
