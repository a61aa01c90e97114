"""The events that the notebook's side writes during a submit; keeps them, ships nothing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from submarine_runtime.protocol.reasons import EndReason
from submarine_runtime.protocol.record import Event, Phase
from submarine_runtime.protocol.states import State


class ClientEvents:
    """One submit's events, in order."""

    def __init__(self) -> None:
        self.all: list[Event] = []

    def state(
        self,
        state: State,
        detail: str,
        *,
        reason: EndReason | None = None,
        phases: Sequence[Phase] = (),
    ) -> None:
        """The job is in another state."""
        data = {"phases": [vars(phase) for phase in phases]} if phases else {}
        self._add("state", state, detail, reason, data)

    def warning(self, detail: str) -> None:
        """Something that the person who submits should know."""
        self._add("warning", None, detail, None, {})

    def _add(
        self,
        kind: str,
        state: State | None,
        detail: str,
        reason: EndReason | None,
        data: dict[str, Any],
    ) -> None:
        number, now = len(self.all), time.time()
        self.all.append(Event(number, now, kind, "client", state, reason, detail, data=data))
