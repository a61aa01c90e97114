"""One job directory as the notebook's side reads and writes it; knows layout, no policy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from submarine_jobs.credentials import JobSecret
from submarine_jobs.live import AgentAddress
from submarine_jobs.spec import JobSpec
from submarine_jobs.storage.base import Storage
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.record import Event, JobRecord, event_json

MAX_JSON = 16 << 20


@dataclass(frozen=True)
class JobDirectory:
    """A job directory in some storage."""

    storage: Storage
    path: str

    @property
    def url(self) -> str:
        """URL of the directory."""
        return self.storage.url(self.path)

    def file(self, name: str) -> str:
        """Path of a file in the directory."""
        return f"{self.path}/{name}"

    def read_json(self, name: str) -> Any:
        """A JSON file of the directory, or None where there is none (or half of one)."""
        try:
            data = self.storage.read(self.file(name), 0, MAX_JSON)
            return json.loads(data)
        except (FileNotFoundError, ValueError):
            return None

    def publish_json(self, name: str, value: Mapping[str, Any]) -> None:
        """Put a JSON file in place."""
        self.storage.publish(self.file(name), json.dumps(value, indent=1).encode())

    def publish_json_exclusive(self, name: str, value: Mapping[str, Any]) -> bool:
        """Put a JSON file in place unless there is one."""
        data = json.dumps(value, indent=1).encode()
        return self.storage.publish_exclusive(self.file(name), data)

    def record(self) -> JobRecord | None:
        """The final record, or None while there is none."""
        raw = self.read_json(layout.RECORD)
        return JobRecord.from_json(raw) if isinstance(raw, dict) else None

    def spec(self) -> JobSpec:
        """What was asked for; FileNotFoundError or ValueError where the directory holds no job."""
        return JobSpec.from_bytes(self.storage.read(self.file(layout.SPEC)))

    def secret(self) -> JobSecret:
        """Token and certificate of the job's agent."""
        return JobSecret.from_bytes(self.storage.read(self.file(layout.SECRET)))

    def address(self) -> AgentAddress | None:
        """Where the agent listens, or None before it does."""
        raw = self.read_json(layout.LIVE)
        if not isinstance(raw, dict):
            return None
        return AgentAddress(str(raw["host"]), int(raw["port"]), self.secret())

    def events(self) -> list[Event]:
        """All shipped events, the client's first."""
        try:
            segments = self.storage.list_directory(self.file(layout.EVENTS))
        except FileNotFoundError:
            return []
        # "client" must come before "agent" and, later, "coordinator".
        segments.sort(key=lambda entry: (not entry.name.startswith("client"), entry.name))
        found: list[Event] = []
        for segment in segments:
            text = self.storage.read(self.file(f"{layout.EVENTS}/{segment.name}"))
            found += [Event.from_json(json.loads(line)) for line in text.splitlines() if line]
        return found

    def publish_events(self, writer: str, number: int, events: list[Event]) -> None:
        """Ship a piece of the event list."""
        lines = b"".join(json.dumps(event_json(event)).encode() + b"\n" for event in events)
        self.storage.publish(self.file(layout.event_segment(writer, number)), lines)
