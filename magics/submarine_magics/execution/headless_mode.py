"""Whether a person may look on while a cell runs, and if not, what its runner wants.

Our runner says it in the environment; of any other (nbclient, papermill, nbconvert) the request
itself tells, since it lets nobody be asked. Does not wait for anything.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from submarine_jobs.model import ATTENDED, VARIABLE, Headless
from submarine_magics.execution.executions import requested

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def headless_of(shell: InteractiveShell) -> Headless | None:
    """What holds for the request that is carried out now; None where a person may look on."""
    if getattr(shell, "kernel", None) is None:
        return None
    told, attended = told_by_runner()
    if told is not None or attended:
        return told
    request = requested(shell)
    return Headless() if request is not None and request.allow_stdin is False else None


@cache
def told_by_runner() -> tuple[Headless | None, bool]:
    """What our runner has told this kernel, and whether somebody said that a person looks on.

    The barrier is this kernel's alone: a kernel that one of its cells starts has another runner.
    """
    attended = os.environ.get(VARIABLE, "").strip().lower() == ATTENDED
    if attended:
        del os.environ[VARIABLE]  # of this kernel's own cells alone
    told = Headless.from_environment()
    if told is not None:
        os.environ.update(replace(told, barrier=False, job_options={}).to_environment())
    return told, attended
