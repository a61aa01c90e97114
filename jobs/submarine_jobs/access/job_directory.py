"""Read and write the files of a job directory."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from submarine_jobs import model
from submarine_jobs.access.agent_client import AgentAddress, NoTokenError
from submarine_jobs.access.credentials import JobSecret
from submarine_jobs.errors import NoAccessError, StorageError
from submarine_jobs.model import JobSpec
from submarine_jobs.storage import PRIVATE_FILE, SHARED_FILE, Storage
from submarine_runtime.protocol import Event, JobRecord, layout, to_json
from submarine_runtime.translation import _

#: Limits for reading a job directory, whose files the job can write, in bytes; listed in
#: docs/job-directory.md.
MAX_JSON = 16 << 20
MAX_SPEC = 4 << 20
MAX_SECRET = 1 << 16
MAX_BUNDLE = 80 << 20
MAX_EVENTS = 16 << 20
MAX_EVENT = 256 << 10
#: Maximum number of values in a JSON file or in all events: two bytes of a list use 60 in memory.
MAX_VALUES = 1_000_000
#: Seconds after which the clock of a file system is measured again.
CLOCK_KEPT = 60.0
#: URL of a job root -> clock of its file system and ``time.monotonic()`` of the measurement.
_clocks: dict[str, tuple[float, float]] = {}


@dataclass(frozen=True)
class JobDirectory:
    """Job directory in a storage.

    ``owner`` is the owner from a listing; None: it was not listed. ``shared`` tells whether new
    files are for the users and groups of ``--share`` too; None: the mode of the directory does.
    """

    storage: Storage
    path: str
    owner: str | None = field(default=None, compare=False)
    shared: bool | None = field(default=None, compare=False)

    @cached_property
    def mode(self) -> int:
        """Mode of new files that hold no secret."""
        shared = self.shared
        if shared is None:
            found = self.storage.stat(self.path)
            shared = found is not None and found.shared
        return SHARED_FILE if shared else PRIVATE_FILE

    @property
    def url(self) -> str:
        """URL of the directory."""
        return self.storage.url(self.path)

    def file(self, name: str) -> str:
        """Return the path of a file in the directory."""
        return f"{self.path}/{name}"

    def read_json(self, name: str) -> Any:
        """Read a JSON file; None if it is missing, incomplete or too large."""
        try:
            data = self.storage.read(self.file(name), 0, MAX_JSON)
            return json.loads(data) if _values(data) <= MAX_VALUES else None
        except (FileNotFoundError, ValueError, RecursionError):
            return None

    def publish_json(self, name: str, value: Mapping[str, Any]) -> None:
        """Write a JSON file atomically."""
        data = json.dumps(value, indent=1).encode()
        self.storage.publish(self.file(name), data, mode=self.mode)

    def publish_json_exclusive(self, name: str, value: Mapping[str, Any]) -> bool:
        """Write a JSON file unless it exists; return False if it does."""
        data = json.dumps(value, indent=1).encode()
        return self.storage.publish_exclusive(self.file(name), data, mode=self.mode)

    def clock(self) -> float:
        """Return the clock of the file system in epoch seconds, from the time of a new file.

        The clock of this machine may differ by minutes. The measurement needs three calls to the
        storage and is cached for a minute.

        Raises
        ------
        StorageError
            If no file can be written, although this user may write there.
        """
        now, root = time.monotonic(), self.url.rsplit("/", 2)[0]
        clock, measured = _clocks.get(root, (0.0, float("-inf")))
        if now - measured > CLOCK_KEPT:
            path = self.file(f"{layout.TEMPORARY_PREFIX}clock-{secrets.token_hex(6)}")
            try:
                self.storage.publish(path, b"1")
            except NoAccessError:  # A job of another user: only its age depends on the clock.
                return time.time()
            found = self.storage.stat(path)
            self.storage.delete(path)
            if found is None:
                raise StorageError(
                    _("{url} is gone right after it was written.").format(
                        url=self.storage.url(path)
                    )
                )
            clock, measured = _clocks[root] = found.modified, time.monotonic()
        return clock + time.monotonic() - measured

    def age(self, name: str) -> float | None:
        """Return the age of a file in seconds, by the clock of the file system.

        None if there is no such file.
        """
        found = self.storage.stat(self.file(name))
        return None if found is None else self.clock() - found.modified

    def record(self) -> JobRecord | None:
        """Return the final record, or None if there is none yet.

        Raises
        ------
        InvalidRecordError
            If it does not have the declared form.
        """
        raw = self.read_json(layout.RECORD)
        return (
            model.read_record(raw, self.url.rpartition("/")[2]) if isinstance(raw, dict) else None
        )

    def spec(self) -> JobSpec:
        """Read the spec; raise FileNotFoundError or ValueError without a valid one."""
        data = self.storage.read(self.file(layout.SPEC), 0, MAX_SPEC)
        try:
            return JobSpec.from_bytes(data)
        except (KeyError, TypeError, AttributeError, RecursionError) as exc:
            raise ValueError(
                _("{url}/{spec} is not a specification: {error!r}").format(
                    url=self.url, spec=layout.SPEC, error=exc
                )
            ) from exc

    def secret(self) -> JobSecret:
        """Read the token and the certificate of the agent."""
        return JobSecret.from_bytes(self.storage.read(self.file(layout.SECRET), 0, MAX_SECRET))

    def address(self) -> AgentAddress | None:
        """Return the address of the agent, or None before it listens.

        Raises
        ------
        NoTokenError
            If the job is shared with this user, whom the port does not admit.
        """
        raw = self.read_json(layout.LIVE)
        if not isinstance(raw, dict):
            return None
        try:
            secret = self.secret()
        except NoAccessError as error:  # The file with the address was readable.
            raise NoTokenError(
                _("The port of the running job admits only its owner: {error}").format(
                    error=error.message
                ),
                _("State, log and results are in the job directory."),
            ) from error
        return AgentAddress(str(raw["host"]), int(raw["port"]), secret)

    def events(self) -> list[Event]:
        """Read the first ``MAX_EVENTS`` bytes of the stored events, those of the client first.

        Lines that are invalid or longer than ``MAX_EVENT`` are skipped.
        """
        try:
            segments = self.storage.list_directory(self.file(layout.EVENTS))
        except FileNotFoundError:
            return []
        # "client" must precede "agent" and "coordinator".
        segments.sort(key=lambda entry: (not entry.name.startswith("client"), entry.name))
        found: list[Event] = []
        remaining, values = MAX_EVENTS, 0
        for segment in segments:
            path = self.file(f"{layout.EVENTS}/{segment.name}")
            text = self.storage.read(path, 0, remaining) if remaining else b""
            remaining -= len(text)
            values += _values(text)
            if not text or values > MAX_VALUES:
                break
            found += [event for line in text.splitlines() if (event := _event(line)) is not None]
        return found

    def publish_events(self, writer: str, number: int, events: list[Event]) -> None:
        """Write a segment of the event list."""
        lines = b"".join(json.dumps(to_json(event)).encode() + b"\n" for event in events)
        path = self.file(layout.event_segment(writer, number))
        self.storage.publish(path, lines, mode=self.mode)


def _event(line: bytes) -> Event | None:
    if not line or len(line) > MAX_EVENT:
        return None
    try:
        return model.read_part(Event, line)
    except ValueError:
        return None


def _values(data: bytes) -> int:
    """Return an upper bound of the number of values in JSON text."""
    return data.count(b",") + data.count(b"[") + data.count(b"{")
