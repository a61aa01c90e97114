"""Settings of a headless run, from ``submarine run``, papermill's keywords, or variables.

``submarine_jobs.model.Headless`` is the part that the kernel receives.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from submarine_jobs.errors import UsageError
from submarine_jobs.model import Headless, format_duration, parse_duration
from submarine_runtime.translation import _

#: Prefix of variables for papermill, which has no options for engines.
PREFIX = "SUBMARINE_RUN_"
CHOICES = ("cancel", "detach")
_MAX_RUN_ID = 400
#: Seconds. A shorter lease may expire on a busy machine.
SHORT_LEASE = 60.0


@dataclass(frozen=True)
class Settings:
    """Settings of one run of one notebook.

    Attributes
    ----------
    run_id
        See ``Headless.run_id``.
    on_interrupt
        See ``Headless.on_interrupt``; None: ``detach`` with a run id, because another attempt may
        follow, else ``cancel``.
    lease
        See ``Headless.lease``; seconds.
    timeout
        Limit of the whole run in seconds, or None.
    job_options
        See ``Headless.job_options``.
    return_names
        Notebook variables; their final values are returned.
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
                _(
                    "{on_interrupt!r} is not a valid action for the jobs of an interrupted run."
                ).format(on_interrupt=self.on_interrupt),
                _("Use cancel or detach."),
            )
        if len(self.run_id) > _MAX_RUN_ID or not self.run_id.isprintable():
            raise UsageError(
                _("{run_id!r} is not a valid run id.").format(run_id=self.run_id[:40]),
                _(
                    "Use 1 to {max_run_id} printable characters, for example nightly-2026-11-22."
                ).format(max_run_id=_MAX_RUN_ID),
            )

    @property
    def action_for_jobs(self) -> str:
        """Action for the jobs of a stopped run: ``cancel`` or ``detach``."""
        return self.on_interrupt or ("detach" if self.run_id else "cancel")

    @property
    def warning(self) -> str:
        """A warning about questionable settings; empty if there are none."""
        if self.lease is None or self.lease >= SHORT_LEASE:
            return ""
        return _(
            "warning: With a lease of {lease}, jobs may end while this machine is only busy; "
            "use a minute or more."
        ).format(lease=format_duration(self.lease))

    def headless(self) -> Headless:
        """Return the settings for the kernel."""
        return Headless(
            run_id=self.run_id,
            on_interrupt=self.action_for_jobs,
            lease=self.lease,
            barrier=True,
            job_options=dict(self.job_options),
        )

    @classmethod
    def from_keywords(
        cls, keywords: dict[str, Any], environ: Mapping[str, str] | None = None
    ) -> Settings:
        """Take the settings from papermill's engine keywords, else from variables.

        ``run_timeout`` is the limit of the whole run: ``timeout`` is that of a cell.

        Raises
        ------
        UsageError
            If a value is invalid.
        """
        env = os.environ if environ is None else environ
        found: dict[str, Any] = {}
        names: dict[str, str] = {}
        for item in fields(cls):
            name = "run_timeout" if item.name == "timeout" else item.name
            if keywords.get(name) is not None:
                found[item.name] = keywords[name]
                names[item.name] = name
            keywords.pop(name, None)
        for name in ("run_id", "on_interrupt", "lease", "timeout"):
            variable = PREFIX + name.removeprefix("run_").upper()
            if name not in found and env.get(variable):
                found[name] = env[variable]
                names[name] = variable
        for name in ("lease", "timeout"):
            if isinstance(found.get(name), str):
                try:
                    found[name] = parse_duration(found[name])
                except UsageError as error:
                    message = f"{names[name]}: {error.message}"
                    raise UsageError(message, error.fix) from None
        return cls(**found)
