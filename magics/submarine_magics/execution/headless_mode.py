"""Whether a cell runs in a headless run, and the settings of that run.

The runner ``submarine run NOTEBOOK`` passes its settings in the environment. For other runners
(nbclient, papermill, nbconvert) the request itself says that no question can be asked.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from submarine_jobs.model import HEADLESS_ATTENDED, HEADLESS_VARIABLE, Headless
from submarine_magics.execution.executions import current_request

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def headless_settings(shell: InteractiveShell) -> Headless | None:
    """Return the settings of the current request; None in an interactive session."""
    if getattr(shell, "kernel", None) is None:
        return None
    settings, attended = runner_settings()
    if settings is not None or attended:
        return settings
    request = current_request(shell)
    return Headless() if request is not None and request.allow_stdin is False else None


@cache
def runner_settings() -> tuple[Headless | None, bool]:
    """Return the settings in the environment, and whether it declares the session interactive.

    The variable is changed at the first call: the barrier and the job options hold for this kernel,
    not for a kernel that one of its cells starts.
    """
    attended = os.environ.get(HEADLESS_VARIABLE, "").strip().lower() == HEADLESS_ATTENDED
    if attended:
        del os.environ[HEADLESS_VARIABLE]
    settings = Headless.from_environment()
    if settings is not None:
        os.environ.update(settings._replace(barrier=False, job_options={}).to_environment())
    return settings, attended
