"""End a coordinator: publish the record, or what is known when it is stopped from outside."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Any, Mapping

from submarine_runtime.coordinator import job_directory
from submarine_runtime.coordinator.event_loop import EventLoop
from submarine_runtime.coordinator.job_directory import EventPublisher
from submarine_runtime.coordinator.machine import ACTIVE, Outcome, restore_query
from submarine_runtime.coordinator.placement import Placer
from submarine_runtime.coordinator.server import ClientRequests
from submarine_runtime.processes import ProcessIdentity
from submarine_runtime.protocol import CoordinatorConfig, EndReason, cancel_sentence, layout
from submarine_runtime.record import complete_record, delete_secrets, final_record
from submarine_runtime.restore_points import delete_superfluous_snapshots
from submarine_runtime.snapshots import delete_snapshots
from submarine_runtime.storage import Store, StoreError, cancel_request, open_store, retry
from submarine_runtime.translation import _
from submarine_runtime.yarn import application_is_over, application_was_killed, write_error

#: Timeout in seconds of one storage call when the coordinator is stopped from outside. YARN sends
#: SIGKILL 0.25 s after SIGTERM by default.
STOPPED_TIMEOUT = 1.0
#: Seconds that clients have to read a stream to its end.
STREAM_GRACE = 3.0


class Shutdown:
    """End of a coordinator, after ``EventLoop.run`` has returned.

    Parameters
    ----------
    attempt
        Number of the application's attempt.
    master
        Process of the application master; None if it is unknown.
    """

    def __init__(
        self,
        config: CoordinatorConfig,
        loop: EventLoop,
        store: Store,
        publisher: EventPublisher,
        placer: Placer,
        clients: ClientRequests,
        attempt: int,
        master: ProcessIdentity | None,
    ) -> None:
        self._config, self._loop, self._store = config, loop, store
        self._publisher, self._placer, self._clients = publisher, placer, clients
        self._attempt, self._master = attempt, master

    def finish(self) -> int:
        """Publish the record after all agents have left; return the exit code."""
        loop = self._loop
        assert loop.job.verdict is not None
        outcome = loop.job.verdict.outcome
        deadline = time.monotonic() + max(STOPPED_TIMEOUT, self._config.save_grace)
        self._publisher.stop(min(30.0, self._config.save_grace))
        # No agent starts a program any more.
        wait = loop.server.poll  # Clients still receive answers.
        delete_secrets(self._config, self._store, loop.status, deadline, wait)
        if self._config.publish:
            outcome = job_directory.publish_job_outputs(
                self._config,
                loop.job,
                loop.status,
                self._store,
                lambda action: retry(action, deadline, wait=wait, store=self._store),
                outcome,
            )
        self._complete_record(outcome)
        code = 0 if outcome.reason is EndReason.SUCCEEDED else 1
        try:
            retry(self._publisher.flush, deadline, wait=wait, store=self._store)
            if not retry(
                lambda: self._publish(self._store), deadline, wait=wait, store=self._store
            ):
                _log(f"{self._config.record.job_id} was closed by another process")
                code = 1
            else:
                with suppress(StoreError):  # They only use space.
                    self._delete_snapshots()
        except StoreError as exc:
            _log(f"the record of {self._config.record.job_id} could not be published: {exc}")
            code = exc.exit_code
        self._clients.finish(STREAM_GRACE)
        loop.placement.stop()
        loop.server.stop()
        return code

    def leave(self, code: int = 1) -> int:
        """Publish the present state in the remaining time; the job may continue.

        Parameters
        ----------
        code
            Exit code if the file system of the job directory was unavailable for too long.
        """
        loop, reason = self._loop, self._loop.stop_reason
        local = self._config.store.kind == "local" and not os.environ.get("CONTAINER_ID")
        if reason == "superseded":
            # Without an answer the agents end their programs, as the later attempt expects.
            loop.server.stop()
            return 1
        if reason in ("closed", "storage"):
            loop.links.refuse_all(_SENTENCES[reason])
            loop.server.poll(0.1)
            loop.placement.stop()
            loop.server.stop()
            return code
        reason = self._stop_cause(reason, local)
        store = open_store(self._config.store, timeout=STOPPED_TIMEOUT)
        store.gate = self._store.gate
        self._placer.terminate()
        loop.status.add_event("warning", _SENTENCES[reason])
        try:
            self._publisher.flush(store)
            last_attempt = local or self._attempt >= self._config.application_attempts
            if last_attempt or (reason == "terminated" and application_is_over(self._config)):
                self._close_job(store, reason)
        except StoreError as exc:
            _log(f"the record could not be published: {exc}")
        return 1

    def _stop_cause(self, reason: str, local: bool) -> str:
        """Distinguish the end of the application master from other causes of the same signal."""
        master_has_ended = self._master is not None and not self._master.alive
        if reason == "parent" and (local or not master_has_ended):
            return "supervisor"
        if reason == "terminated" and not local and master_has_ended:
            # The NodeManager sends the same signal after the death of the master. The master may
            # also have ended first after a kill of the application.
            return "terminated" if application_was_killed(self._config) else "parent"
        return reason

    def _close_job(self, store: Store, stop_reason: str) -> None:
        """Publish the record, because no later attempt of the application will."""
        job = self._loop.job
        sentence = _SENTENCES[stop_reason]
        if stop_reason == "parent" and self._attempt > 1:
            sentence = _("The application master died {attempt} times.").format(
                attempt=self._attempt
            )
        outcome = Outcome(_END_REASONS[stop_reason], sentence)
        cancelled = cancel_request(store)
        if job.verdict is not None and not job.verdict.outcome.succeeded:
            outcome = job.verdict.outcome
        elif cancelled is not None:
            outcome = Outcome(EndReason.CANCELLED, cancel_sentence(cancelled))
        for task in job.tasks.values():
            if task.stage in ACTIVE:
                sentence = _(
                    "{task} was killed: output that was not saved by then is lost."
                ).format(task=task.name)
                job.missing.append(sentence)
        self._complete_record(outcome)
        self._publisher.flush(store)
        self._publish(store)
        delete_secrets(self._config, store, self._loop.status, time.monotonic())

    def _complete_record(self, outcome: Outcome) -> None:
        """Write the outcome into the record, with its event."""
        loop, status = self._loop, self._loop.status
        loop.reporter.update_all()
        for sentence in loop.job.missing:
            status.add_missing(sentence)
        for sentence in loop.job.warnings:
            status.warn(sentence)
        failure: Mapping[str, Any] | None = outcome.failure
        status.set_outcome(
            outcome.reason, outcome.detail, outcome.exit_code, outcome.signal, failure
        )
        state = outcome.reason.meaning.state
        status.add_event("state", outcome.detail, None, state, outcome.reason)
        complete_record(status)
        status.summarize()

    def _publish(self, store: Store) -> bool:
        """Publish the record; return False if the job has one already."""
        publisher = self._publisher
        data = final_record(self._loop.status, store, publisher.operations, publisher.files)
        return store.publish_exclusive(layout.RECORD, data)

    def _delete_snapshots(self) -> None:
        """Delete snapshots and TensorBoard pieces that the saved outputs make superfluous.

        Those of a task without saved outputs are kept, and the common restore point of the gang
        while the final checkpoints of its tasks have none.
        """
        job = self._loop.job
        unsaved = [task.name for task in job.tasks.values() if task.epoch and not task.saved]
        writers = [task for task, snapshots in job.restore.reports.items() if snapshots]
        whole = not unsaved and not self._loop.status.lacks_checkpoints
        if whole and job.epoch == 1 and len(writers) < 2:
            delete_snapshots(self._store)
        else:
            delete_superfluous_snapshots(
                self._store, self._config.store.path, restore_query(job), unsaved
            )


_SENTENCES = {
    "terminated": _("The coordinator was stopped from outside."),
    "parent": _("The application master died."),
    "supervisor": _("The supervisor of the coordinator died."),
    "closed": _("The job has ended already."),
    "storage": _("The file system of the job directory did not answer for too long."),
}
_END_REASONS = {
    "terminated": EndReason.KILLED_ON_CLUSTER,
    "parent": EndReason.MASTER_LOST,
    "supervisor": EndReason.COORDINATOR_LOST,
}


def _log(sentence: str) -> None:
    write_error(f"submarine coordinator: {sentence}\n")
