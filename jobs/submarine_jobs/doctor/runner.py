"""Runs all checks at once, each in its own thread and within its own time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from submarine_jobs.doctor.patient import Patient
from submarine_jobs.doctor.result import Check, Finding, Result, Status
from submarine_jobs.errors import SubmarineError
from submarine_jobs.storage.timed_call import call_within

#: At once; each has one thread more for its time limit.
AT_ONCE = 8


def examine(patient: Patient, checks: Sequence[Check], *, node: bool = False) -> list[Result]:
    """Results in the order of ``checks``, those that make sense here.

    Parameters
    ----------
    node
        This machine is a node of the cluster; else it is one that submits jobs.
    """
    chosen = [check for check in checks if (check.node if node else check.client)]
    with ThreadPoolExecutor(AT_ONCE, "submarine-doctor") as pool:
        return _once(list(pool.map(lambda check: _look(check, patient), chosen)))


def _once(results: list[Result]) -> list[Result]:
    """The first of several errors that have one cause; the others name it and are skipped."""
    first: dict[str, str] = {}
    told = []
    for result in results:
        if result.status is Status.ERROR and result.sentence in first:
            sentence = f"It needs what {first[result.sentence]} found wrong."
            result = replace(result, status=Status.SKIPPED, sentence=sentence, fix="")
        elif result.status is Status.ERROR:
            first[result.sentence] = result.name
        told.append(result)
    return told


def _look(check: Check, patient: Patient) -> Result:
    started = time.monotonic()
    try:
        found = call_within(check.seconds, lambda: check.look(patient))
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
