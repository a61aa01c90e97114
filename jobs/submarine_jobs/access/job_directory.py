"""One job directory as the notebook's side reads and writes it; knows layout, no policy."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from submarine_jobs.access.agent_client import AgentAddress
from submarine_jobs.access.credentials import JobSecret
from submarine_jobs.errors import StorageError
from submarine_jobs.model import JobSpec
from submarine_jobs.storage import Storage
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.record import Event, JobRecord, event_json

#: Limits of what is read of a job directory, whose files the job can write; in bytes. They are
#: listed in docs/job-directory.md.
MAX_JSON = 16 << 20
MAX_SPEC = 4 << 20
MAX_SECRET = 1 << 16
MAX_BUNDLE = 80 << 20
MAX_EVENTS = 16 << 20
MAX_EVENT = 256 << 10
#: Most values of one JSON file, or of all events: two bytes of a list cost 60 in memory.
MAX_VALUES = 1_000_000
#: Seconds that the measured clock of a file system is used before it is measured again.
CLOCK_KEPT = 60.0
#: URL of a job root -> the clock of its file system and ``time.monotonic()`` when that was read.
_clocks: dict[str, tuple[float, float]] = {}


@dataclass(frozen=True)
class JobDirectory:
    """A job directory in some storage.

    ``owner`` is what a listing has said of it; None: it was not listed.
    """

    storage: Storage
    path: str
    owner: str | None = field(default=None, compare=False)

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
            return json.loads(data) if _values(data) <= MAX_VALUES else None
        except (FileNotFoundError, ValueError, RecursionError):
            return None

    def publish_json(self, name: str, value: Mapping[str, Any]) -> None:
        """Put a JSON file in place."""
        self.storage.publish(self.file(name), json.dumps(value, indent=1).encode())

    def publish_json_exclusive(self, name: str, value: Mapping[str, Any]) -> bool:
        """Put a JSON file in place unless there is one."""
        data = json.dumps(value, indent=1).encode()
        return self.storage.publish_exclusive(self.file(name), data)

    def clock(self) -> float:
        """Seconds since the epoch by the clock of the file system, from the time of a new file.

        The clock of this machine may differ from it by minutes. Three calls to the storage, once
        a minute.

        Raises
        ------
        StorageError
            If no file can be written here.
        """
        now, root = time.monotonic(), self.url.rsplit("/", 2)[0]
        clock, measured = _clocks.get(root, (0.0, float("-inf")))
        if now - measured > CLOCK_KEPT:
            path = self.file(f"{layout.TEMPORARY_PREFIX}clock-{secrets.token_hex(6)}")
            self.storage.publish(path, b"1")
            found = self.storage.stat(path)
            self.storage.delete(path)
            if found is None:
                raise StorageError(f"{self.storage.url(path)} is gone right after it was written.")
            clock, measured = _clocks[root] = found.modified, time.monotonic()
        return clock + time.monotonic() - measured

    def age(self, name: str) -> float | None:
        """Seconds since a file of the directory was published, by the clock of the file system.

        None where there is no such file.
        """
        found = self.storage.stat(self.file(name))
        return None if found is None else self.clock() - found.modified

    def record(self) -> JobRecord | None:
        """The final record, or None while there is none."""
        raw = self.read_json(layout.RECORD)
        return JobRecord.from_json(raw) if isinstance(raw, dict) else None

    def spec(self) -> JobSpec:
        """What was asked for; FileNotFoundError or ValueError where the directory holds no job."""
        data = self.storage.read(self.file(layout.SPEC), 0, MAX_SPEC)
        try:
            return JobSpec.from_bytes(data)
        except (KeyError, TypeError, AttributeError, RecursionError) as exc:
            raise ValueError(f"{self.url}/{layout.SPEC} is not a specification: {exc!r}") from exc

    def secret(self) -> JobSecret:
        """Token and certificate of the job's agent."""
        return JobSecret.from_bytes(self.storage.read(self.file(layout.SECRET), 0, MAX_SECRET))

    def address(self) -> AgentAddress | None:
        """Where the agent listens, or None before it does."""
        raw = self.read_json(layout.LIVE)
        if not isinstance(raw, dict):
            return None
        return AgentAddress(str(raw["host"]), int(raw["port"]), self.secret())

    def events(self) -> list[Event]:
        """The shipped events, the client's first: the first ``MAX_EVENTS`` bytes of them.

        A line that is no event, or longer than ``MAX_EVENT``, is passed over.
        """
        try:
            segments = self.storage.list_directory(self.file(layout.EVENTS))
        except FileNotFoundError:
            return []
        # "client" must come before "agent" and, later, "coordinator".
        segments.sort(key=lambda entry: (not entry.name.startswith("client"), entry.name))
        found: list[Event] = []
        room, values = MAX_EVENTS, 0
        for segment in segments:
            path = self.file(f"{layout.EVENTS}/{segment.name}")
            text = self.storage.read(path, 0, room) if room else b""
            room -= len(text)
            values += _values(text)
            if not text or values > MAX_VALUES:
                break
            found += [event for line in text.splitlines() if (event := _event(line)) is not None]
        return found

    def publish_events(self, writer: str, number: int, events: list[Event]) -> None:
        """Ship a piece of the event list."""
        lines = b"".join(json.dumps(event_json(event)).encode() + b"\n" for event in events)
        self.storage.publish(self.file(layout.event_segment(writer, number)), lines)


def _event(line: bytes) -> Event | None:
    if not line or len(line) > MAX_EVENT:
        return None
    try:
        return Event.from_json(json.loads(line))
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return None


def _values(data: bytes) -> int:
    """An upper bound of the values in JSON text."""
    return data.count(b",") + data.count(b"[") + data.count(b"{")
