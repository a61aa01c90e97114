"""The end of a job's task: outputs, rest of the logs and the record go to the job directory.

The record is last, so that it being there means that everything else is. Does not judge the end.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import Callable, Sequence

from submarine_runtime.agent.ending import Ending
from submarine_runtime.agent.log_shipper import LogShipper
from submarine_runtime.agent.outputs import find_outputs, save_outputs
from submarine_runtime.agent.publisher import Publisher
from submarine_runtime.agent.restore import forget
from submarine_runtime.agent.saving import save_result
from submarine_runtime.agent.scratch import Scratch
from submarine_runtime.agent.status import Status
from submarine_runtime.agent.store import Store, StoreError, patiently
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.reasons import EndReason, meaning_of
from submarine_runtime.protocol.states import State

#: What publishing the record itself adds, so that it can be counted in the record.
PUBLISH_FILES = 1


class Closing:
    """Saves with patience until ``deadline()``, which may come nearer meanwhile.

    ``others`` are shipped beside the logs, and not counted in the record.
    """

    def __init__(
        self,
        store: Store,
        status: Status,
        logs: dict[str, LogShipper],
        log_key: str,
        deadline: Callable[[], float],
        wait: Callable[[float], object],
        others: Sequence[LogShipper] = (),
    ) -> None:
        self._store = store
        self._status = status
        self._logs = logs
        self._log_key = log_key
        self._deadline = deadline
        self._wait = wait
        self._others = others

    def save(self, scratch: Scratch, publisher: Publisher) -> str | None:
        """Outputs, then logs; one failure's sentence, or None when all is saved."""
        failure = save_outputs(
            find_outputs(scratch.outputs),
            self._upload,
            self._status.add_output,
            self._status.miss,
        )
        failure = (
            save_result(scratch, self._upload, self._status.add_output, self._status.miss)
            or failure
        )
        publisher.stop(max(1.0, self._deadline() - time.monotonic()))
        failure = self._save_logs() or failure
        if failure is None and self._status.has_outputs:
            with suppress(StoreError):  # they take room, and nothing else
                forget(self._store)
        return failure

    def _upload(self, path: str, source: str) -> int:
        return patiently(lambda: self._store.upload(path, source), self._deadline, wait=self._wait)

    def _save_logs(self) -> str | None:
        failure = None
        for log in [*self._logs.values(), *self._others]:
            log.note()
            try:
                patiently(log.ship_rest, self._deadline, wait=self._wait)
            except StoreError as exc:
                failure = str(exc)
        self.count_logs()
        return failure

    def count_logs(self) -> None:
        """Note in the record how much of each log is there."""
        lengths = {}
        for stream, log in self._logs.items():
            lengths[f"{self._log_key}/{stream}"] = log.shipped
            if log.shipped < log.length():
                self._status.miss(
                    f"The end of {stream} is missing: {log.shipped} of {log.length()} bytes "
                    "were saved."
                )
        self._status.set_record(logs=lengths)

    def settle(self, ending: Ending) -> None:
        """Put the judgement into the record, with its event."""
        status = self._status
        status.end(ending.reason, ending.detail, ending.exit_code, ending.signal, ending.failure)
        if ending.reason is EndReason.SUCCEEDED and status.state is not State.FINISHING:
            raise AssertionError("a program that never ran cannot have succeeded")
        state = meaning_of(ending.reason).state
        status.event("state", ending.detail, state=state, reason=ending.reason)

    def last_words(self, ending: Ending, record_first: bool) -> None:
        """Leave the record, and of the logs what there is time for.

        Parameters
        ----------
        record_first
            It says what nobody else could find out; it also says that of the logs something may be
            missing.

        Raises
        ------
        StoreError
            If that cannot be done until the deadline.
        """
        if not record_first:
            self._ship_logs()
        self.count_logs()
        self._status.miss("Outputs were not saved: the container was killed.")
        if not self._status.state.ended:
            self.settle(ending)
        self.publish_record()
        if record_first:
            self._ship_logs()

    def _ship_logs(self) -> None:
        for log in self._logs.values():
            log.ship()

    def publish_record(self) -> bool:
        """Publish the record; False when somebody else has closed the job already.

        Raises
        ------
        StoreError
            If it cannot be published until the deadline.
        """
        self._status.finish()
        self._status.end_phases(time.time())
        cost = self._store.publish_cost
        self._status.use(
            namenode_operations=self._store.operations + cost,
            files=self._store.files + PUBLISH_FILES,
        )
        data = json.dumps(self._status.to_json()).encode()
        return patiently(
            lambda: self._store.publish_exclusive(layout.RECORD, data),
            self._deadline,
            wait=self._wait,
        )
