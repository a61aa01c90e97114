"""Save outputs, the rest of the logs and the record at the end of a job's task.

The record is written last: if it exists, everything else is complete.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import Callable, Sequence, TypeVar

from submarine_runtime.agent.attempt import Attempt
from submarine_runtime.agent.outputs import missing_value_reasons, save_all
from submarine_runtime.agent.program import Ending
from submarine_runtime.agent.shipping import LogShipper, Publisher
from submarine_runtime.protocol import AgentConfig, EndReason, State, layout
from submarine_runtime.record import (
    Status,
    UnsavedFiles,
    complete_record,
    delete_secrets,
    final_record,
    unsaved_sentences,
)
from submarine_runtime.snapshots import delete_snapshots
from submarine_runtime.storage import Scratch, Store, StoreError, retry
from submarine_runtime.translation import _

T = TypeVar("T")
#: Seconds that a child process has to publish the record while HDFS is not available, and seconds
#: between two of its attempts.
CHILD_SECONDS = 60
CHILD_PAUSE = 1.0


class Finalization:
    """Save outputs, logs and record of a job with one task, until a deadline.

    Parameters
    ----------
    logs
        Stream -> shipper.
    log_key
        Key of the attempt's logs in the record.
    deadline
        Returns the ``time.monotonic()`` after which nothing is saved; it may change.
    wait
        Function that waits for some seconds.
    others
        Further shippers; they are not counted in the record.
    """

    def __init__(
        self,
        config: AgentConfig,
        store: Store,
        status: Status,
        logs: dict[str, LogShipper],
        log_key: str,
        deadline: Callable[[], float],
        wait: Callable[[float], object],
        others: Sequence[LogShipper] = (),
    ) -> None:
        self._config = config
        self._store = store
        self._status = status
        self._logs = logs
        self._log_key = log_key
        self._deadline = deadline
        self._wait = wait
        self._others = others

    def save(
        self, scratch: Scratch, publisher: Publisher, attempt: Attempt | None, ending: Ending
    ) -> str | None:
        """Save outputs, then logs; return the sentence of a failure, or None.

        Parameters
        ----------
        attempt
            None: the program was not started.
        """
        status, unsaved = self._status, UnsavedFiles()
        spec = self._config.spec
        succeeded = ending.reason is EndReason.SUCCEEDED
        failure = save_all(
            scratch,
            self._upload,
            status.add_output,
            status.add_missing,
            unsaved,
            succeeded=succeeded,
            keep=spec.keep,
            first_rank=0 if spec.return_all_ranks else None,
        )
        if failure is None and attempt is not None:
            add, missing = status.add_output, status.add_missing
            failure = attempt.save_outputs(self._attempt, add, missing, succeeded=succeeded)
        for sentence in [*missing_value_reasons(scratch), *unsaved_sentences(unsaved.to_json())]:
            status.warn(sentence)
        publisher.stop(max(1.0, self._deadline() - time.monotonic()))
        failure = self._save_logs() or failure
        if attempt is not None and attempt.outputs is not None:
            publish = succeeded and failure is None
            failure = attempt.outputs.publish(status, self._attempt, succeeded=publish) or failure
        if failure is None and status.has_outputs and not status.lacks_checkpoints:
            with suppress(StoreError):  # They only use space.
                delete_snapshots(self._store)
        return failure

    def _attempt(self, action: Callable[[], T]) -> T:
        return retry(action, self._deadline, wait=self._wait, store=self._store)

    def _upload(self, path: str, source: str) -> int:
        return self._attempt(lambda: self._store.upload(path, source))

    def _save_logs(self) -> str | None:
        failure = None
        for log in [*self._logs.values(), *self._others]:
            log.note()
            try:
                retry(log.ship_rest, self._deadline, wait=self._wait, store=self._store)
            except StoreError as exc:
                failure = str(exc)
        self.count_logs()
        return failure

    def count_logs(self) -> None:
        """Record how much of each log is in the job directory."""
        lengths = {}
        for stream, log in self._logs.items():
            if stream == layout.HELPER_STREAM:
                continue  # Only tasks of a gang have helpers.
            lengths[f"{self._log_key}/{stream}"] = log.shipped
            if log.shipped < log.length():
                self._status.add_missing(
                    _(
                        "The end of {stream} is missing: {shipped} of {length} bytes were saved."
                    ).format(stream=stream, shipped=log.shipped, length=log.length())
                )
        self._status.set_record(logs=lengths)

    def record_ending(self, ending: Ending) -> None:
        """Record the ending, with its event."""
        status = self._status
        status.end(ending.reason, ending.detail, ending.exit_code, ending.signal, ending.failure)
        if ending.reason is EndReason.SUCCEEDED and status.state is not State.FINISHING:
            raise AssertionError("a program that never ran cannot have succeeded")
        state = ending.reason.meaning.state
        status.event("state", ending.detail, state=state, reason=ending.reason)

    def publish_terminated(self, ending: Ending, record_first: bool) -> None:
        """Publish the record, and ship as much of the logs as possible.

        Parameters
        ----------
        record_first
            The ending is known only to this process, so it is published before the logs are
            shipped; the record then says that the end of the logs may be missing.

        Raises
        ------
        StoreError
            If it cannot be published before the deadline.
        """
        if not record_first:
            self._ship_logs()
        self.count_logs()
        self._status.add_missing(_("Outputs were not saved: the container was killed."))
        if not self._status.state.ended:
            self.record_ending(ending)
        if record_first:
            data = self._final_record()
            _run_in_child_process(lambda: self._publish_from_child(data))
            self._ship_logs()
        else:
            self.publish_record()
        # After the record: the container may be killed at any moment.
        self.delete_secrets()

    def delete_secrets(self) -> None:
        """Delete the files with secrets from the job directory."""
        delete_secrets(self._config, self._store, self._status, self._deadline, wait=self._wait)

    def _ship_logs(self) -> None:
        for log in self._logs.values():
            log.advance()
        for log in self._logs.values():
            log.ship()

    def publish_record(self) -> bool:
        """Publish the record; return False if another process has closed the job.

        Raises
        ------
        StoreError
            If it cannot be published before the deadline.
        """
        data = self._final_record()
        return retry(
            lambda: self._store.publish_exclusive(layout.RECORD, data),
            self._deadline,
            wait=self._wait,
            store=self._store,
        )

    def _final_record(self) -> bytes:
        complete_record(self._status)
        return final_record(self._status, self._store)

    def _publish_from_child(self, data: bytes) -> None:
        """Publish the record with a new deadline; YARN kills the parent in the meantime."""
        retry(
            lambda: self._store.publish_exclusive(layout.RECORD, data),
            time.monotonic() + CHILD_SECONDS,
            longest=CHILD_PAUSE,
        )
        delete_secrets(self._config, self._store, self._status, time.monotonic())


def _run_in_child_process(publish: Callable[[], object]) -> None:
    """Publish in a child process in its own session, and wait for it.

    YARN sends SIGKILL to the container's process group 250 ms after SIGTERM, which may be too
    early for HDFS. The child uses nothing that another thread of this process may have locked.
    """
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(CHILD_SECONDS)
        publish()
    finally:
        os._exit(0)
