"""What a headless run is asked for, from ``submarine run``, papermill's keywords, or variables.

The part that the kernel has to know is ``submarine_jobs.model.headless_settings.Headless``. Runs
nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from submarine_jobs.errors import UsageError
from submarine_jobs.model import Headless, format_duration, parse_duration

#: Set by whoever starts papermill, which takes no options for its engines.
PREFIX = "SUBMARINE_RUN_"
CHOICES = ("cancel", "detach")
_MAX_RUN_ID = 400
#: Seconds. A shorter lease may run out on a machine that is busy.
SHORT_LEASE = 60.0


@dataclass(frozen=True)
class Settings:
    """Wishes for one run of one notebook.

    Attributes
    ----------
    run_id
        See ``Headless.run_id``.
    on_interrupt
        See ``Headless.on_interrupt``; None: ``detach`` with a run id, since another attempt
        follows, else ``cancel``.
    lease
        See ``Headless.lease``; seconds.
    timeout
        Seconds that the whole run may take; None: for ever.
    job_options
        See ``Headless.job_options``.
    return_names
        Variables of the notebook whose values at the end are wanted.
    """

    run_id: str = ""
    on_interrupt: str | None = None
    lease: float | None = None
    timeout: float | None = None
    job_options: Mapping[str, Any] = field(default_factory=dict)
    return_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.on_interrupt not in (None, *CHOICES):
            raise UsageError(
                f"What becomes of the jobs of an interrupted run cannot be {self.on_interrupt!r}.",
                "Say cancel or detach.",
            )
        if len(self.run_id) > _MAX_RUN_ID or not self.run_id.isprintable():
            raise UsageError(
                f"{self.run_id[:40]!r} cannot be a run id.",
                f"Use 1 to {_MAX_RUN_ID} printable characters, for example nightly-2026-11-22.",
            )

    @property
    def ended_jobs(self) -> str:
        """What becomes of the jobs of a run that ends early: ``cancel`` or ``detach``."""
        return self.on_interrupt or ("detach" if self.run_id else "cancel")

    @property
    def warning(self) -> str:
        """What may be meant otherwise, in one sentence; empty: nothing."""
        if self.lease is None or self.lease >= SHORT_LEASE:
            return ""
        return (
            f"warning: With a lease of {format_duration(self.lease)} jobs may end while this "
            "machine is merely busy; give a minute or more."
        )

    def headless(self) -> Headless:
        """What the kernel is told."""
        return Headless(
            run_id=self.run_id,
            on_interrupt=self.ended_jobs,
            lease=self.lease,
            barrier=True,
            job_options=dict(self.job_options),
        )

    @classmethod
    def from_keywords(
        cls, keywords: dict[str, Any], environ: Mapping[str, str] | None = None
    ) -> Settings:
        """The settings among papermill's engine keywords, which are taken out, else variables.

        The keyword of the whole run's limit is ``run_timeout``: ``timeout`` is a cell's.

        Raises
        ------
        UsageError
            If one of them makes no sense.
        """
        env = os.environ if environ is None else environ
        found: dict[str, Any] = {}
        said_by: dict[str, str] = {}
        for item in fields(cls):
            name = "run_timeout" if item.name == "timeout" else item.name
            if keywords.get(name) is not None:
                found[item.name] = keywords[name]
                said_by[item.name] = name
            keywords.pop(name, None)
        for name in ("run_id", "on_interrupt", "lease", "timeout"):
            variable = PREFIX + name.removeprefix("run_").upper()
            if name not in found and env.get(variable):
                found[name] = env[variable]
                said_by[name] = variable
        for name in ("lease", "timeout"):
            if isinstance(found.get(name), str):
                try:
                    found[name] = parse_duration(found[name])
                except UsageError as error:
                    said = f"{said_by[name]}: {error.message}"
                    raise UsageError(said, error.fix) from None
        return cls(**found)
