"""Settings of a headless notebook run, passed by the runner to the kernel.

They are JSON in one environment variable, because a kernel has no other input before its first
cell. They contain no secret.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

HEADLESS_VARIABLE = "SUBMARINE_HEADLESS"
#: Value that is set by a program that executes cells interactively but cannot prompt.
HEADLESS_ATTENDED = "no"


# A dataclass takes five times as long to define, in each kernel that loads the extension.
class Headless(NamedTuple):
    """Settings of one headless run of one notebook.

    Attributes
    ----------
    run_id
        From ``--run-id``: a second attempt of the run attaches to the jobs of the first. Empty:
        each attempt starts its own jobs.
    on_interrupt
        What to do with the jobs of a run that ends early: ``cancel`` or ``detach``.
    lease
        Seconds after which the jobs end if the runner does not renew them; None: no limit.
    barrier
        Whether the runner waits for all jobs after the last cell. If it does not (plain nbclient),
        each command that starts a job waits for it.
    job_options
        Options of ``run`` for each job of the notebook, by name.
    """

    run_id: str = ""
    on_interrupt: str = "cancel"
    lease: float | None = None
    barrier: bool = False
    job_options: Mapping[str, Any] = {}

    def to_environment(self) -> dict[str, str]:
        """Return the environment variable with these settings."""
        return {HEADLESS_VARIABLE: json.dumps(self._asdict(), sort_keys=True)}

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Headless | None:
        """Read the settings; None if the variable is missing or invalid."""
        text = (os.environ if environ is None else environ).get(HEADLESS_VARIABLE)
        if not text:
            return None
        try:
            raw = json.loads(text)
        except ValueError:
            return None
        if not isinstance(raw, dict):
            return None
        return cls(**{key: value for key, value in raw.items() if key in cls._fields})
