"""One coordinator from claim to record: the order of things.

Its parts: ``takeover`` (claim, earlier attempts), ``conductor`` (the job itself), ``shipping``,
``viewers``, ``placement``, ``finale`` (record, last words).
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Mapping

from submarine_runtime.coordinator.event_loop import Conductor
from submarine_runtime.coordinator.job_directory import (
    Earlier,
    Shipper,
    StorageWait,
    Surveyor,
    application_attempt,
    claim,
    earlier,
    fences,
    stand_down,
    watch_containers,
)
from submarine_runtime.coordinator.machine import new_play
from submarine_runtime.coordinator.placement import Inquiry, PlacementThread, Placer, needs_of
from submarine_runtime.coordinator.record import SEATS_FILE, JobStatus, Journal, is_complete
from submarine_runtime.coordinator.reporter import new_job_record
from submarine_runtime.coordinator.server import LinkServer, Viewers
from submarine_runtime.coordinator.shutdown import Finale
from submarine_runtime.coordinator.supervision import Master, Pulse
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.coordinator_config import CoordinatorConfig
from submarine_runtime.protocol.record import Event
from submarine_runtime.storage import (
    LeaseWatch,
    Store,
    StoreError,
    application_id,
    asked_to_cancel,
    open_store,
    replaced,
)
from submarine_runtime.suspend import WriteGate
from submarine_runtime.yarn import (
    LAUNCH_SCRIPT,
    first_change,
    reachable_host,
    wait_teller,
    write_error,
)

if TYPE_CHECKING:
    from submarine_runtime.coordinator.yarn_page import YarnView

JOURNAL_FILE = "journal.jsonl"
EVENTS_FILE = "events.jsonl"
#: Seats of one attempt of the application are counted from its number times this.
SEATS_OF_ATTEMPT = 100000


class Performance:
    """Runs one job; ``run`` is called once.

    Parameters
    ----------
    master
        Identity of the application master, see ``master.parent_identity``.
    """

    def __init__(
        self, config: CoordinatorConfig, secret: Mapping[str, str], directory: str, master: str
    ) -> None:
        self._config, self._secret, self._directory = config, secret, directory
        self._master = Master(master)
        self._attempt = application_attempt(os.environ)
        self._restored = False
        self._again = ""
        self._code = 1

    def run(self) -> int:
        """The coordinator's exit code."""
        job = self._config.job_id
        try:
            store = open_store(self._config.store)
            self._wait = StorageWait(self._config, _say)
            journal = Journal(os.path.join(self._directory, JOURNAL_FILE))
            kept = Journal(os.path.join(self._directory, EVENTS_FILE))
            # A restarted coordinator opens its port first: agents wait for an answer, and its
            # claim and journal are here.
            self._restored = not journal.fresh and self._is_complete(journal, kept)
            if not self._restored:
                refusal = self._wait.patiently(lambda: self._refusal(store))
                if refusal:
                    _say(f"{job}: {_REFUSALS[refusal]}; nothing is run here")
                    return 1
            conductor, opened = self._open(store, journal, kept)
            return self._perform(conductor, store, opened)
        except (StoreError, ValueError) as exc:
            _say(f"{job}: {exc}")
            return exc.exit_code if isinstance(exc, StoreError) else 1

    def _is_complete(self, journal: Journal, kept: Journal) -> bool:
        seats = os.path.join(self._directory, SEATS_FILE)
        return journal.complete and kept.complete and is_complete(seats)

    def _refusal(self, store: Store) -> str:
        """Why nothing may be run here; empty if the job is this container's."""
        if store.exists(layout.RECORD):
            return "closed"
        own = claim(store, self._config, self._directory, self._attempt)
        return "" if own else "superseded"

    def _open(
        self, store: Store, journal: Journal, kept: Journal
    ) -> tuple[Conductor, dict[str, Any]]:
        """Everything as the journal, or an earlier attempt of the application, left it."""
        shipped: list[Event] = []
        opened: dict[str, Any] = {"epoch": 1, "restarts": 0, "port": self._config.listen_port}
        opened["asks"] = SEATS_OF_ATTEMPT * (self._attempt - 1)
        if self._restored:
            opened.update(next(journal.entries()))
            before = self._earlier(store)
        elif journal.fresh:
            # The live address names an earlier attempt; one that was told goes sooner.
            answered = self._attempt == 1 or stand_down(store, self._secret)
            before = self._earlier(store)
            if self._attempt > 1:
                opened.update(epoch=before.epoch + 1, restarts=before.restarts)
            opened["fences"] = fences(before, self._config, answered)
        else:
            before = self._earlier(store)
            shipped = self._start_over(store, journal, kept, opened)
        play = new_play(self._config, opened["epoch"], opened["asks"], opened["restarts"])
        writer = layout.coordinator_writer(self._attempt)
        # The orders are written when the master's JVM runs: later than YARN's launch script.
        seen = (LAUNCH_SCRIPT, layout.COORDINATOR)
        arrived = first_change([os.path.join(self._directory, name) for name in seen])
        record = new_job_record(self._config, play, before)
        status = JobStatus(record, writer, kept, shipped, arrived)
        conductor = Conductor(play, status, journal, os.getppid(), Pulse(self._directory))
        conductor.server = LinkServer(
            self._config.listen,
            int(opened["port"]),
            self._secret,
            conductor.on_line,
            conductor.on_closed,
            lambda request: viewers.take(request),
            len(play.tasks),
        )
        self._lease = LeaseWatch(store, self._config.lease, conductor.expire)
        viewers = Viewers(
            status, self._secret, conductor.sources, conductor.tell, self._lease.renew
        )
        self._viewers = viewers
        self._before = before
        if not self._restored:
            kept_words = {key: opened[key] for key in ("epoch", "restarts", "fences", "asks")}
            journal.append({**kept_words, "port": conductor.server.port})
        return conductor, opened

    def _earlier(self, store: Store) -> Earlier:
        """What earlier attempts of the application left; read from the job directory once."""
        if self._attempt == 1:
            return Earlier()
        found = Earlier.kept(self._directory) if self._restored else None
        if found is None:
            found = self._wait.patiently(lambda: earlier(store, self._attempt))
            found.keep(self._directory)
        return found

    def _start_over(
        self, store: Store, journal: Journal, kept: Journal, opened: dict[str, Any]
    ) -> list[Event]:
        """Prepare a new epoch after a journal that lacks records; this attempt's shipped events.

        Nothing is known of the containers: their agents are refused, and no program starts before
        the programs of those that cannot be reached have ended.
        """
        found = self._wait.patiently(lambda: earlier(store, self._attempt + 1))
        writer = layout.coordinator_writer(self._attempt)
        shipped = [event for event in found.events if event.writer == writer]
        for entry in kept.entries():
            found.take(json.dumps(entry).encode())
        first = next(journal.entries(), {})
        config = self._config
        opened.update(
            # One more: the event of an epoch that had just begun may not have been shipped.
            epoch=max(found.epoch, int(first.get("epoch") or 0)) + 2,
            restarts=found.restarts,
            port=first.get("port") or config.listen_port,
            # No seat of the lost records has such a number.
            asks=int(time.time()),
            fences={"unknown containers": config.lost_after + config.lost_margin},
        )
        journal.start_over()
        self._again = (
            "The coordinator was restarted and its journal lacks records, because the disk of its "
            "node was full: the gang starts in a new epoch."
        )
        return shipped

    def _perform(self, conductor: Conductor, store: Store, opened: Mapping[str, Any]) -> int:
        config, server = self._config, conductor.server
        host = reachable_host(config.listen)
        placer = self._placer(f"{host}:{server.port}")
        conductor.placement = PlacementThread(
            placer, conductor.tell, conductor.uncertain, _warn(conductor, "Placing")
        )
        shipping_store = open_store(config.store)
        gate = WriteGate(lambda: self._holds_claim(store, conductor))
        survey_store = open_store(config.store)
        store.gate = shipping_store.gate = survey_store.gate = gate.check
        store.on_wait = survey_store.on_wait = wait_teller(conductor.say_storage)
        conductor.surveyor = Surveyor(
            survey_store,
            conductor.tell,
            lambda: time.monotonic() + config.save_grace,
        )
        shipper = Shipper(
            shipping_store,
            conductor.status,
            self._directory,
            self._attempt,
            conductor.tell,
            _warn(conductor, "Shipping"),
        )
        self._listen_to_signals(conductor)
        finale = Finale(
            config,
            conductor,
            store,
            shipper,
            placer,
            self._viewers,
            self._attempt,
            self._master,
        )
        if self._restored:
            conductor.replay()
        shipper.announce(host, server.port)
        shipper.start()
        conductor.placement.start()
        inquiry = self._inquiry(conductor)
        if self._wait.waited:
            conductor.status.note("storage", self._wait.sentence_after())
        if self._restored:
            conductor.status.note("coordinator", "The coordinator was restarted.")
            conductor.resume()
            arguments = (conductor, store)
            threading.Thread(target=self._check, args=arguments, name="check", daemon=True).start()
        else:
            self._begin(conductor, store, dict(opened.get("fences") or {}))
        view = self._view(conductor)
        conductor.run()
        self._lease.stop()
        inquiry.stop()
        if view is not None and not conductor.leave:
            view.finish()
        return finale.last_words(self._code) if conductor.leave else finale.run()

    def _holds_claim(self, store: Store, conductor: Conductor) -> bool:
        """Return whether this attempt still holds the job; if not, make the conductor leave."""
        if not replaced(store, self._attempt):
            return True
        conductor.tell({"type": "superseded"})
        return False

    def _begin(self, conductor: Conductor, store: Store, keys: dict[str, float]) -> None:
        asked = self._wait.patiently(
            lambda: asked_to_cancel(store), conductor.server.poll, conductor.say_storage
        )
        conductor.say_storage("")
        conductor.status.note("claimed", data={"pid": os.getpid(), "attempt": self._attempt})
        if asked is not None:
            conductor.tell({"type": "cancel", **asked})  # and nothing is asked for
            return
        over = self._begin_lease(conductor, hold=self._attempt == 1)
        if over:
            conductor.expire(over)
            return
        again = self._again
        if not again and self._before.epoch:
            again = "The application master was started again."
        conductor.begin(keys, again)
        if keys:
            arguments = (self._before, keys, conductor.tell)
            threading.Thread(target=watch_containers, args=arguments, daemon=True).start()

    def _check(self, conductor: Conductor, store: Store) -> None:
        """Let a restarted coordinator start programs once claim and record allow it.

        In a thread of its own: HDFS may be away, and the agents are answered meanwhile.
        """
        try:
            why = self._wait.patiently(lambda: self._refusal(store), tell=conductor.say_storage)
        except StoreError as exc:
            _say(f"{self._config.job_id}: {exc}")
            why, self._code = "storage", exc.exit_code
        conductor.say_storage("")
        if why:
            conductor.tell({"type": "leave", "why": why})
            return
        if self._wait.waited:
            sentence = self._wait.sentence_after()
            conductor.tell({"type": "note", "kind": "storage", "detail": sentence})
        conductor.tell({"type": "checked"})
        claimed = layout.claim_name(self._attempt)
        self._lease.begin(claimed, time.sleep, conductor.must_go, hold=False)

    def _begin_lease(self, conductor: Conductor, *, hold: bool) -> str:
        wait = conductor.server.poll  # a sign of life may come on our port meanwhile
        claimed = layout.claim_name(self._attempt)
        grace = self._config.save_grace
        return self._lease.begin(claimed, wait, conductor.must_go, hold=hold, grace=grace)

    def _inquiry(self, conductor: Conductor) -> Inquiry:
        def take(sentence: str) -> None:
            conductor.why_pending = sentence

        own = application_id(os.environ) or ""
        inquiry = Inquiry(self._config, own, lambda: needs_of(conductor.play), take)
        inquiry.start()
        return inquiry

    def _view(self, conductor: Conductor) -> YarnView | None:
        if not os.environ.get("SKEIN_APPMASTER_ADDRESS"):
            return None
        from submarine_runtime.coordinator.yarn_page import YarnView

        config = self._config
        job = {"job_id": config.job_id, "name": config.name, "links": dict(config.links)}
        view = YarnView(conductor, job)
        view.start()
        return view

    def _placer(self, address: str) -> Placer:
        if os.environ.get("SKEIN_APPMASTER_ADDRESS"):
            from submarine_runtime.coordinator.placement import YarnPlacer

            return YarnPlacer(self._config, self._directory, address)
        from submarine_runtime.coordinator.placement import LocalPlacer

        return LocalPlacer(self._directory, os.path.abspath(sys.argv[0]), address)

    def _listen_to_signals(self, conductor: Conductor) -> None:
        def leave(why: str) -> Any:
            def handler(number: int, frame: Any) -> None:
                conductor.leave = conductor.leave or why

            return handler

        signal.set_wakeup_fd(conductor.server.wake_fd, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, leave("terminated"))
        signal.signal(signal.SIGUSR1, leave("parent"))
        for number in (signal.SIGHUP, signal.SIGINT):
            signal.signal(number, lambda *_: None)


_REFUSALS = {
    "closed": "the job has ended already",
    "superseded": "another container has claimed it",
}


def _warn(conductor: Conductor, what: str) -> Any:
    def trouble(sentence: str) -> None:
        conductor.tell({"type": "note", "kind": "warning", "detail": f"{what} waits: {sentence}"})

    return trouble


def _say(sentence: str) -> None:
    write_error(f"submarine coordinator: {sentence}\n")
