"""What the runner of a notebook tells the notebook's kernel: that nobody looks on, and what to do.

Travels as JSON in one environment variable, since a kernel has no other ear before its first cell.
Holds no secret. Does not run anything.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

VARIABLE = "SUBMARINE_HEADLESS"
#: What a program puts there that executes cells for a person, but cannot ask.
ATTENDED = "no"


@dataclass(frozen=True)
class Headless:
    """One run of one notebook without a person.

    Attributes
    ----------
    run_id
        Given by ``--run-id``: a second attempt of the same run attaches to the jobs of the first.
        Empty: each attempt starts its own.
    on_interrupt
        What becomes of the run's jobs when it ends early: ``cancel`` or ``detach``.
    lease
        Seconds that its jobs live on without a sign of life of the runner; None: for ever.
    barrier
        Whether the runner waits for all jobs after the last cell. Where it does not (plain
        nbclient), each command that starts a job waits for it.
    job_options
        Options of ``run`` that hold for each job of the notebook, by their names.
    """

    run_id: str = ""
    on_interrupt: str = "cancel"
    lease: float | None = None
    barrier: bool = False
    job_options: Mapping[str, Any] = field(default_factory=dict)

    def to_environment(self) -> dict[str, str]:
        """The variable that says it."""
        return {VARIABLE: json.dumps(asdict(self), sort_keys=True)}

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Headless | None:
        """What the environment says; None where no runner of ours has said anything."""
        text = (os.environ if environ is None else environ).get(VARIABLE)
        if not text:
            return None
        try:
            raw = json.loads(text)
        except ValueError:
            return None
        if not isinstance(raw, dict):
            return None
        known = {item.name for item in fields(cls)}
        return cls(**{key: value for key, value in raw.items() if key in known})
