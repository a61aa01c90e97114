"""Run the checks in parallel, each in a thread with a timeout.

A check waits for the checks that it needs, and is skipped if one of them has found an error, so
that one fault gives one finding.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from submarine_jobs.concurrency import call_with_timeout
from submarine_jobs.doctor.context import DoctorContext
from submarine_jobs.doctor.result import Check, Finding, Result, Status
from submarine_jobs.errors import SubmarineError
from submarine_runtime.translation import _

#: Number of parallel checks; each has another thread for its timeout.
MAX_PARALLEL = 8


def run_checks(
    context: DoctorContext, checks: Sequence[Check], *, node: bool = False
) -> list[Result]:
    """Run the checks that apply to this machine; return the results in the order of ``checks``.

    Parameters
    ----------
    node
        Whether this machine is a node of the cluster; else it submits jobs.
    """
    chosen = [check for check in checks if (check.node if node else check.client)]
    running: dict[str, Future[Result]] = {}
    with ThreadPoolExecutor(MAX_PARALLEL, "submarine-doctor") as pool:
        for check in chosen:
            # These are earlier checks, which the pool starts first, so waiting cannot block it.
            needed = [running[name] for name in check.needs if name in running]
            running[check.name] = pool.submit(_run_check, check, context, needed)
        return [future.result() for future in running.values()]


def _run_check(check: Check, context: DoctorContext, needed: Sequence[Future[Result]]) -> Result:
    why_not = context.no_cluster if check.cluster else ""
    for result in (future.result() for future in needed):
        if not why_not and result.status is Status.ERROR:
            why_not = _("`{result}` found an error").format(result=result.name)
    if why_not:
        sentence = _("Not checked, because {why_not}.").format(why_not=why_not)
        return Result(check.name, Status.SKIPPED, sentence, unchecked=True)
    started = time.monotonic()
    try:
        found = call_with_timeout(check.seconds, lambda: check.look(context))
    except TimeoutError:
        found = Finding(
            Status.ERROR,
            _("There was no answer within {seconds:g} s.").format(seconds=check.seconds),
            _("A component does not respond: see the other checks."),
        )
    except SubmarineError as exc:
        found = Finding(Status.ERROR, exc.message, exc.fix)
    except Exception as exc:  # a broken check must not hide the others
        found = Finding(
            Status.ERROR,
            _("The check itself failed: {type}: {error}.").format(
                type=type(exc).__name__, error=exc
            )[:300],
            _("Please report it with this sentence."),
        )
    seconds = time.monotonic() - started
    return Result(check.name, found.status, found.sentence, found.fix, seconds)
