"""The end of a coordinator: the job's record, or last words when it is ended from outside."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import Any, Mapping

from submarine_runtime.coordinator.event_loop import Conductor
from submarine_runtime.coordinator.job_directory import Shipper, remove_superfluous
from submarine_runtime.coordinator.machine import ACTIVE, Outcome, question
from submarine_runtime.coordinator.placement import Placer
from submarine_runtime.coordinator.server import Viewers
from submarine_runtime.coordinator.supervision import Master
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.coordinator_config import CoordinatorConfig
from submarine_runtime.protocol.reasons import EndReason, meaning_of
from submarine_runtime.snapshots import forget
from submarine_runtime.storage import Store, StoreError, asked_to_cancel, open_store, patiently
from submarine_runtime.yarn import application_is_over, application_was_killed, write_error

#: Seconds that one call may take once somebody ends us; YARN's own patience is 0.25 s by default.
LAST_WORDS = 1.0
#: Seconds that followers have to read to the end.
FOLLOWERS_GRACE = 3.0
#: What publishing the record itself adds, so that it can be counted in the record.
PUBLISH_FILES = 1


class Finale:
    """Used once, when ``Conductor.run`` has returned."""

    def __init__(
        self,
        config: CoordinatorConfig,
        conductor: Conductor,
        store: Store,
        shipper: Shipper,
        placer: Placer,
        viewers: Viewers,
        attempt: int,
        master: Master,
    ) -> None:
        self._config, self._conductor, self._store = config, conductor, store
        self._shipper, self._placer, self._viewers = shipper, placer, viewers
        self._attempt = attempt
        self._master = master

    def run(self) -> int:
        """Everybody has left: publish the record; the exit code."""
        conductor = self._conductor
        assert conductor.play.verdict is not None
        outcome = conductor.play.verdict.outcome
        deadline = time.monotonic() + max(LAST_WORDS, self._config.save_grace)
        self._shipper.stop(min(30.0, self._config.save_grace))
        self._settle(outcome)
        code = 0 if outcome.reason is EndReason.SUCCEEDED else 1
        wait = conductor.server.poll  # viewers are answered meanwhile
        try:
            patiently(self._shipper.flush, deadline, wait=wait, store=self._store)
            if not patiently(
                lambda: self._publish(self._store), deadline, wait=wait, store=self._store
            ):
                _say(f"{self._config.job_id} was closed by somebody else meanwhile")
                code = 1
            else:
                with suppress(StoreError):  # they take room, and nothing else
                    self._remove_pieces()
        except StoreError as exc:
            _say(f"the record of {self._config.job_id} could not be published: {exc}")
            code = exc.exit_code
        self._viewers.finish(FOLLOWERS_GRACE)
        conductor.placement.stop()
        conductor.server.stop()
        return code

    def _remove_pieces(self) -> None:
        """Delete snapshots and TensorBoard pieces that the saved outputs make superfluous.

        Kept are those of a task whose outputs were not saved, and the common point of the gang
        while the final checkpoints of its tasks have none.
        """
        play = self._conductor.play
        unsaved = [task.name for task in play.tasks.values() if task.epoch and not task.saved]
        writers = [task for task, own in play.restore.reports.items() if own]
        if not unsaved and play.epoch == 1 and len(writers) < 2:
            forget(self._store)
        else:
            remove_superfluous(self._store, self._config.store.path, question(play), unsaved)

    def last_words(self, code: int = 1) -> int:
        """Leave what is known while there is time; the exit code.

        Parameters
        ----------
        code
            Exit code where the file system of the job directory was away for too long.
        """
        conductor, why = self._conductor, self._conductor.leave
        local = self._config.store.kind == "local" and not os.environ.get("CONTAINER_ID")
        if why == "superseded":
            # Without our word the agents must end their programs, so we say nothing more.
            conductor.server.stop()
            return 1
        if why in ("closed", "storage"):
            for peer in list(conductor.peers.values()):
                conductor.server.send(peer, {"type": "refused", "why": _SENTENCES[why]})
            conductor.server.poll(0.1)
            conductor.placement.stop()
            conductor.server.stop()
            return code
        if why == "parent" and (local or not self._master.gone()):
            why = "supervisor"
        if why == "terminated" and not local and self._master.gone():
            # The NodeManager sends the same signal after the death of the master. The master may
            # also have ended first after a kill of the application.
            why = "terminated" if application_was_killed(self._config) else "parent"
        store = open_store(self._config.store, timeout=LAST_WORDS)
        store.gate = self._store.gate
        self._placer.terminate()
        conductor.status.note("warning", _SENTENCES[why])
        try:
            self._shipper.flush(store)
            over = local or self._attempt >= self._config.application_attempts
            if over or (why == "terminated" and application_is_over(self._config)):
                self._close(store, why)
        except StoreError as exc:
            _say(f"last words could not be published: {exc}")
        return 1

    def _close(self, store: Store, why: str) -> None:
        """No later attempt will: write the record ourselves."""
        play = self._conductor.play
        reason = _REASONS[why]
        died = f"The application master died {self._attempt} times."
        known = died if why == "parent" and self._attempt > 1 else _SENTENCES[why]
        outcome = Outcome(reason, known)
        asked = asked_to_cancel(store)
        if play.verdict is not None and not play.verdict.outcome.succeeded:
            outcome = play.verdict.outcome
        elif asked is not None:
            outcome = Outcome(EndReason.CANCELLED, f"Cancelled by {asked.get('by')}.")
        for task in play.tasks.values():
            if task.stage in ACTIVE:
                sentence = f"{task.name} was killed: what it had not shipped by then is lost."
                play.missing.append(sentence)
        self._settle(outcome)
        self._shipper.flush(store)
        self._publish(store)

    def _settle(self, outcome: Outcome) -> None:
        """Put the judgement into the record, with its event."""
        conductor, status = self._conductor, self._conductor.status
        conductor.reporter.sync_all()
        for sentence in conductor.play.missing:
            status.miss(sentence)
        for sentence in conductor.play.warnings:
            status.warn(sentence)
        failure: Mapping[str, Any] | None = outcome.failure
        status.conclude(outcome.reason, outcome.detail, outcome.exit_code, outcome.signal, failure)
        status.set_record(pending="")
        state = meaning_of(outcome.reason).state
        status.note("state", outcome.detail, None, state, outcome.reason)
        status.finish()
        status.end_phases(time.time())
        status.sum_up()

    def _publish(self, store: Store) -> bool:
        status = self._conductor.status
        status.use(
            namenode_operations=store.operations + self._shipper.operations + store.publish_cost,
            files=store.files + self._shipper.files + PUBLISH_FILES,
        )
        data = json.dumps({**status.to_json(), "pending": ""}).encode()
        return store.publish_exclusive(layout.RECORD, data)


_SENTENCES = {
    "terminated": "The coordinator was told to end from outside.",
    "parent": "The application master died.",
    "supervisor": "The supervisor of the coordinator died.",
    "closed": "The job has ended already.",
    "storage": "The file system of the job directory did not answer for too long.",
}
_REASONS = {
    "terminated": EndReason.KILLED_ON_CLUSTER,
    "parent": EndReason.MASTER_LOST,
    "supervisor": EndReason.COORDINATOR_LOST,
}


def _say(sentence: str) -> None:
    write_error(f"submarine coordinator: {sentence}\n")
