"""One coordinator from claim to record: the order of things.

Its parts: ``takeover`` (claim, earlier attempts), ``conductor`` (the job itself), ``shipping``,
``viewers``, ``placement``, ``finale`` (record, last words).
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Mapping

from submarine_runtime.agent.claim import application_id, asked_to_cancel
from submarine_runtime.agent.container import reachable_host
from submarine_runtime.agent.lease import LeaseWatch
from submarine_runtime.agent.store import Store, StoreError, open_store, patiently
from submarine_runtime.coordinator.asking import Inquiry, needs_of
from submarine_runtime.coordinator.conductor import Conductor
from submarine_runtime.coordinator.finale import Finale
from submarine_runtime.coordinator.job_record import JobStatus
from submarine_runtime.coordinator.journal import Journal
from submarine_runtime.coordinator.link_server import LinkServer
from submarine_runtime.coordinator.placement import PlacementThread, Placer
from submarine_runtime.coordinator.play import new_play
from submarine_runtime.coordinator.pulse import Pulse
from submarine_runtime.coordinator.reporting import new_job_record
from submarine_runtime.coordinator.shipping import Shipper
from submarine_runtime.coordinator.takeover import (
    Earlier,
    application_attempt,
    claim,
    earlier,
    fences,
    stand_down,
    watch_containers,
)
from submarine_runtime.coordinator.viewers import Viewers
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.coordination import CoordinatorConfig

if TYPE_CHECKING:
    from submarine_runtime.coordinator.yarn_view import YarnView

JOURNAL_FILE = "journal.jsonl"
EVENTS_FILE = "events.jsonl"
#: Seats of one attempt of the application are counted from its number times this.
SEATS_OF_ATTEMPT = 100000
STORE_GRACE = 120.0


class Performance:
    """Runs one job; ``run`` is called once."""

    def __init__(
        self, config: CoordinatorConfig, secret: Mapping[str, str], directory: str
    ) -> None:
        self._config, self._secret, self._directory = config, secret, directory
        self._attempt = application_attempt(os.environ)

    def run(self) -> int:
        """The coordinator's exit code."""
        try:
            store = open_store(self._config.store)
            if store.exists(layout.RECORD):
                _say("the job has ended already; nothing is run here")
                return 1
            if not claim(store, self._config, self._directory, self._attempt):
                _say(f"another container has claimed {self._config.job_id}; nothing is run here")
                return 1
        except (StoreError, ValueError) as exc:
            _say(f"{self._config.job_id}: {exc}")
            return exc.exit_code if isinstance(exc, StoreError) else 1
        conductor, opened = self._open(store)
        return self._perform(conductor, store, opened)

    def _open(self, store: Store) -> tuple[Conductor, dict[str, Any]]:
        """Everything as the journal, or an earlier attempt of the application, left it."""
        journal = Journal(os.path.join(self._directory, JOURNAL_FILE))
        before, answered = Earlier(), True
        if journal.fresh:
            opened: dict[str, Any] = {"epoch": 1, "restarts": 0, "port": self._config.listen_port}
            if self._attempt > 1:
                answered = stand_down(store, self._secret)
                deadline = time.monotonic() + STORE_GRACE
                before = patiently(lambda: earlier(store, self._attempt), deadline)
                opened.update(epoch=before.epoch + 1, restarts=before.restarts)
            opened["fences"] = fences(before, self._config, answered)
        else:
            opened = next(journal.entries())
            if self._attempt > 1:
                before = earlier(store, self._attempt)
        asks = SEATS_OF_ATTEMPT * (self._attempt - 1)
        play = new_play(self._config, opened["epoch"], asks, opened["restarts"])
        kept = Journal(os.path.join(self._directory, EVENTS_FILE))
        writer = layout.coordinator_writer(self._attempt)
        status = JobStatus(new_job_record(self._config, play, before), writer, kept)
        conductor = Conductor(play, status, journal, os.getppid(), Pulse(self._directory))
        opened["fresh"] = journal.fresh
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
        if journal.fresh:
            kept_words = {key: opened[key] for key in ("epoch", "restarts", "fences")}
            journal.append({**kept_words, "port": conductor.server.port})
        return conductor, opened

    def _perform(self, conductor: Conductor, store: Store, opened: Mapping[str, Any]) -> int:
        config, server = self._config, conductor.server
        host = reachable_host(config.listen)
        placer = self._placer(f"{host}:{server.port}")
        conductor.placement = PlacementThread(
            placer, conductor.tell, conductor.uncertain, _warn(conductor, "Placing")
        )
        shipper = Shipper(
            open_store(config.store),
            conductor.status,
            self._directory,
            self._attempt,
            conductor.tell,
            _warn(conductor, "Shipping"),
        )
        self._listen_to_signals(conductor)
        finale = Finale(config, conductor, store, shipper, placer, self._viewers, self._attempt)
        known = conductor.replay()
        shipper.announce(host, server.port)
        shipper.start()
        conductor.placement.start()
        inquiry = self._inquiry(conductor)
        if known:
            conductor.status.note("coordinator", "The coordinator was restarted.")
            self._begin_lease(conductor, hold=False)
            conductor.resume()
        else:
            self._begin(conductor, store, dict(opened.get("fences") or {}))
        view = self._view(conductor)
        conductor.run()
        self._lease.stop()
        inquiry.stop()
        if view is not None and not conductor.leave:
            view.finish()
        return finale.last_words() if conductor.leave else finale.run()

    def _begin(self, conductor: Conductor, store: Store, keys: dict[str, float]) -> None:
        asked = patiently(lambda: asked_to_cancel(store), time.monotonic() + STORE_GRACE)
        conductor.status.note("claimed", data={"pid": os.getpid(), "attempt": self._attempt})
        if asked is not None:
            conductor.tell({"type": "cancel", **asked})  # and nothing is asked for
            return
        over = self._begin_lease(conductor, hold=self._attempt == 1)
        if over:
            conductor.expire(over)
            return
        conductor.begin(keys, bool(self._before.epoch))
        if keys:
            arguments = (self._before, keys, conductor.tell)
            threading.Thread(target=watch_containers, args=arguments, daemon=True).start()

    def _begin_lease(self, conductor: Conductor, *, hold: bool) -> str:
        wait = conductor.server.poll  # a sign of life may come on our port meanwhile
        claimed = layout.claim_name(self._attempt)
        return self._lease.begin(claimed, wait, conductor.must_go, hold=hold)

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
        from submarine_runtime.coordinator.yarn_view import YarnView

        config = self._config
        job = {"job_id": config.job_id, "name": config.name, "links": dict(config.links)}
        view = YarnView(conductor, job)
        view.start()
        return view

    def _placer(self, address: str) -> Placer:
        if os.environ.get("SKEIN_APPMASTER_ADDRESS"):
            from submarine_runtime.coordinator.yarn_placer import YarnPlacer

            return YarnPlacer(self._config, self._directory, address)
        from submarine_runtime.coordinator.local_placer import LocalPlacer

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


def _warn(conductor: Conductor, what: str) -> Any:
    def trouble(sentence: str) -> None:
        conductor.tell({"type": "note", "kind": "warning", "detail": f"{what} waits: {sentence}"})

    return trouble


def _say(sentence: str) -> None:
    sys.stderr.write(f"submarine coordinator: {sentence}\n")
    sys.stderr.flush()
