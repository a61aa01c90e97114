"""Publish events, the live address and the record of a job in its directory."""

from __future__ import annotations

import json
import os
import time
from typing import Any, Callable, Mapping, Sequence

from submarine_runtime.protocol import AgentConfig, CoordinatorConfig, layout
from submarine_runtime.record.status import Status
from submarine_runtime.storage import Store, StoreError, retry
from submarine_runtime.translation import _

#: Files that the publication of the record adds, so that the record can include them.
RECORD_FILES = 1


class EventSegments:
    """The published events of one writer.

    Parameters
    ----------
    writer
        Name in the file names.
    files, events
        Number of files and events that were published already.
    """

    def __init__(self, writer: str, files: int = 0, events: int = 0) -> None:
        self._writer, self.files, self.events = writer, files, events

    def publish(self, store: Store, events: Sequence[Mapping[str, Any]]) -> None:
        """Publish the next events as one file, if there are any.

        Raises
        ------
        StoreError
            If that fails; nothing is counted then.
        """
        if events:
            lines = b"".join(json.dumps(event).encode() + b"\n" for event in events)
            store.publish(layout.event_segment(self._writer, self.files), lines)
            self.files, self.events = self.files + 1, self.events + len(events)

    def count(self, store: Store) -> None:
        """Count what the job directory has."""
        self.files = self.events = 0
        while (data := store.read(layout.event_segment(self._writer, self.files))) is not None:
            self.files, self.events = self.files + 1, self.events + len(data.splitlines())


def live_address(host: str, port: int, **fields: Any) -> bytes:
    """Return the content of ``live.json`` for the port of this process."""
    live = {"host": host, "port": port, "pid": os.getpid(), "time": time.time(), **fields}
    return json.dumps(live).encode()


def complete_record(status: Status) -> None:
    """End the job and its phases in the record now."""
    status.set_record(pending="")
    status.finish()
    status.end_phases(time.time())


def delete_secrets(
    config: AgentConfig | CoordinatorConfig,
    store: Store,
    status: Status,
    deadline: float | Callable[[], float],
    wait: Callable[[float], object] = time.sleep,
) -> None:
    """Delete the files with secrets from the job directory; add a warning if that fails.

    They contain the values of ``--secret``, delegation tokens, and the keytab.
    """
    if config.spec.secrets:
        _delete_secret(layout.SECRET_ENV, store, status, deadline, wait)
    if config.store.uses_tokens:
        _delete_secret(layout.TOKENS, store, status, deadline, wait)
    if config.spec.distribute_keytab:
        _delete_secret(layout.KEYTAB, store, status, deadline, wait)


def _delete_secret(
    file: str,
    store: Store,
    status: Status,
    deadline: float | Callable[[], float],
    wait: Callable[[float], object],
) -> None:
    try:
        retry(lambda: store.delete(file), deadline, wait=wait, store=store)
    except StoreError as exc:
        status.warn(
            _("A file with secrets was not deleted from the job directory ({file}): {error}")
            .format(file=file, error=exc)
        )  # fmt: skip


def final_record(status: Status, store: Store, operations: int = 0, files: int = 0) -> bytes:
    """Return the content of ``record.json``, with the cost of its own publication.

    Parameters
    ----------
    operations, files
        NameNode operations and files of other stores than ``store``.
    """
    status.set_used(
        namenode_operations=store.operations + operations + store.publish_cost,
        files=store.files + files + RECORD_FILES,
    )
    return json.dumps({**status.to_json(), "pending": ""}).encode()
