"""The coordinator of one job: claim, restored state, event loop, record.

``takeover`` claims the job and reads what earlier attempts of the application left. ``EventLoop``
runs the job. ``Shutdown`` publishes the record.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Mapping

from submarine_runtime import network
from submarine_runtime.coordinator.event_loop import EventLoop, Inbox, containers_uncertain
from submarine_runtime.coordinator.job_directory import (
    EarlierAttempts,
    EventPublisher,
    SnapshotSurvey,
    StorageWait,
    application_attempt,
    claim_job,
    earlier_fences,
    read_earlier_attempts,
    stop_earlier_coordinator,
    watch_earlier_containers,
)
from submarine_runtime.coordinator.machine import new_job_state
from submarine_runtime.coordinator.placement import (
    PendingReasonThread,
    PlacementThread,
    Placer,
    missing_containers,
)
from submarine_runtime.coordinator.record import SEATS_FILE, JobStatus, Journal, is_complete
from submarine_runtime.coordinator.reporter import new_job_record
from submarine_runtime.coordinator.server import ClientRequests
from submarine_runtime.coordinator.shutdown import Shutdown
from submarine_runtime.coordinator.supervision import LivenessFile
from submarine_runtime.network import bind_port
from submarine_runtime.port import PortServer
from submarine_runtime.processes import ProcessIdentity
from submarine_runtime.protocol import CoordinatorConfig, Event, layout
from submarine_runtime.storage import (
    LeaseWatch,
    Store,
    StoreError,
    TokenRefresh,
    WriteGate,
    application_id,
    cancel_request,
    is_superseded,
    open_store,
)
from submarine_runtime.translation import _
from submarine_runtime.yarn import (
    LAUNCH_SCRIPT,
    first_change,
    reachable_host,
    skein_started_container,
    wait_reporter,
    write_error,
)

if TYPE_CHECKING:
    from submarine_runtime.yarn import PageThread

JOURNAL_FILE = "journal.jsonl"
EVENTS_FILE = "events.jsonl"
#: The seats of an attempt of the application are numbered from its number times this.
SEATS_OF_ATTEMPT = 100000
#: Least limit of connections without the token from one address.
MIN_UNAUTHENTICATED = 128
_REFUSALS = {
    "closed": _("the job has ended already"),
    "superseded": _("another container has claimed it"),
}


class Coordinator:
    """Run one job; ``run`` is called once.

    Parameters
    ----------
    secret
        Token, certificate and key of the job.
    directory
        Working directory.
    master
        The application master's process, ``PID:START``; empty if it is unknown.
    """

    def __init__(
        self, config: CoordinatorConfig, secret: Mapping[str, str], directory: str, master: str
    ) -> None:
        self._config, self._secret, self._directory = config, secret, directory
        self._master = ProcessIdentity.parse(master)
        self._attempt = application_attempt(os.environ)
        self._earlier = EarlierAttempts()
        self._restored = False
        self._start_over_reason = self._failed_port = ""
        self._exit_code = 1

    def run(self) -> int:
        """Run the job and return the exit code."""
        job_id = self._config.record.job_id
        try:
            store = open_store(self._config.store)
            self._storage_wait = StorageWait(self._config, _log)
            journal = Journal(self._path(JOURNAL_FILE))
            events = Journal(self._path(EVENTS_FILE))
            # A restarted coordinator opens its port first: agents wait for it. Its claim is checked
            # later, its journal is in the working directory.
            self._restored = not journal.is_new and self._is_complete(journal, events)
            if not self._restored:
                refusal = self._storage_wait.retry(lambda: self._refusal(store))
                if refusal:
                    _log(f"{job_id}: {_REFUSALS[refusal]}; nothing is run here")
                    return 1
            return self._run_job(store, journal, events)
        except (StoreError, ValueError) as exc:
            _log(f"{job_id}: {exc}")
            return exc.exit_code if isinstance(exc, StoreError) else 1

    def make_placer(self, address: str) -> Placer:
        """Return the placer; agents connect to ``address``."""
        if skein_started_container():
            # cost: each placer imports much that the other does not need.
            from submarine_runtime.coordinator.placement import YarnPlacer

            return YarnPlacer(self._config, self._directory, address)
        # cost: as above.
        from submarine_runtime.coordinator.placement import LocalPlacer

        return LocalPlacer(self._directory, os.path.abspath(sys.argv[0]), address)

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)

    def _is_complete(self, journal: Journal, events: Journal) -> bool:
        return journal.complete and events.complete and is_complete(self._path(SEATS_FILE))

    def _refusal(self, store: Store) -> str:
        """Return why this attempt must not run the job; empty if it has claimed the job."""
        if store.exists(layout.RECORD):
            return "closed"
        claimed = claim_job(store, self._config, self._directory, self._attempt)
        return "" if claimed else "superseded"

    def _run_job(self, store: Store, journal: Journal, events: Journal) -> int:
        config = self._config
        initial, shipped = self._initial_values(store, journal, events)
        job = new_job_state(config, initial["epoch"], initial["asks"], initial["restarts"])
        record = new_job_record(config, job, self._earlier)
        writer = layout.coordinator_writer(self._attempt)
        status = JobStatus(record, writer, events, shipped, self._arrival_time())
        # All tasks may run on one node and connect at once.
        connections = max(MIN_UNAUTHENTICATED, 2 * len(job.tasks))
        listener = self._bind_port(int(initial["port"]))
        server = PortServer(listener, self._secret, connections, 2 * connections)
        inbox = Inbox(server.wake)
        if not self._restored:
            journal.append({**initial, "port": server.port})
        host = reachable_host(config.listen)
        placer = self.make_placer(f"{host}:{server.port}")
        publisher_store, survey_store = open_store(config.store), open_store(config.store)
        gate = WriteGate(lambda: self._holds_claim(store, inbox))
        store.gate = publisher_store.gate = survey_store.gate = gate.check
        loop = EventLoop(
            job,
            status,
            journal,
            server,
            inbox,
            PlacementThread(
                placer, inbox.post, lambda: containers_uncertain(job), _warn(inbox, "Placing")
            ),
            SnapshotSurvey(survey_store, inbox.post, config.save_grace),
            LivenessFile(self._directory),
            os.getppid(),
            self._secret,
        )
        store.on_wait = survey_store.on_wait = wait_reporter(loop.show_storage_wait)
        self._lease = LeaseWatch(store, config.spec.lease, inbox.expire_lease)
        self._tokens = TokenRefresh(
            config.store,
            store,
            _warn(inbox, "Tokens"),
            lambda text: inbox.post({"type": "tokens", "tokens": text}),
            directory=self._directory,
            resourcemanagers=config.resourcemanagers,
        )
        self._tokens.start()
        clients = ClientRequests(
            status,
            self._secret,
            loop.links.endpoints,
            inbox.post,
            self._lease.renew,
            self._tokens.receive,
            loop.stack_collector,
        )
        server.set_handlers(clients.accept, loop.links.receive, loop.links.closed)
        _handle_signals(loop)
        publisher = EventPublisher(
            publisher_store,
            status,
            self._directory,
            self._attempt,
            inbox.post,
            _warn(inbox, "Shipping"),
        )
        shutdown = Shutdown(
            config, loop, store, publisher, placer, clients, self._attempt, self._master
        )
        if self._restored:
            loop.replay()
        publisher.publish_address(host, server.port)
        publisher.start()
        loop.placement.start()
        return self._run_loop(loop, store, dict(initial.get("fences") or {}), shutdown)

    def _bind_port(self, port: int) -> socket.socket:
        """Return the listener; if its range is full, one that no other machine reaches."""
        try:
            return bind_port(self._config.listen, port, self._config.port_range)
        except network.PortRangeError as exc:
            self._failed_port = str(exc)
            return bind_port("127.0.0.1")

    def _run_loop(
        self, loop: EventLoop, store: Store, fences: dict[str, float], shutdown: Shutdown
    ) -> int:
        reasons = self._pending_reasons(loop)
        if self._storage_wait.waited:
            loop.status.add_event("storage", self._storage_wait.summary())
        if self._restored:
            loop.status.add_event("coordinator", _("The coordinator was restarted."))
            loop.resume()
            arguments = (loop, store)
            threading.Thread(target=self._check, args=arguments, name="check", daemon=True).start()
        else:
            self._begin(loop, store, fences)
        page = self._yarn_page(loop)
        loop.run()
        self._lease.stop()
        self._tokens.stop()
        reasons.stop()
        if loop.stop_reason:
            return shutdown.leave(self._exit_code)
        code = shutdown.finish()
        if page is not None:
            page.finish()
            # The record is in the job directory with these codes.
            if code in (0, 1) and page.unregister(self._config.log_server, code == 0):
                # With another code skein's master leaves its files on HDFS for a next attempt,
                # which YARN no longer makes.
                return 0
        return code

    def _initial_values(
        self, store: Store, journal: Journal, events: Journal
    ) -> tuple[dict[str, Any], list[Event]]:
        """Return epoch, seats, restarts, port and fences at the start, and events already shipped.

        They come from the journal, or from an earlier attempt of the application.
        """
        shipped: list[Event] = []
        initial: dict[str, Any] = {"epoch": 1, "restarts": 0, "port": self._config.listen_port}
        initial["asks"] = SEATS_OF_ATTEMPT * (self._attempt - 1)
        if self._restored:
            initial.update(next(journal.entries()))
            self._earlier = self._read_earlier(store)
        elif journal.is_new:
            # The live address names an earlier attempt. After a request to stop it ends sooner.
            stopped = self._attempt == 1 or stop_earlier_coordinator(store, self._secret)
            self._earlier = self._read_earlier(store)
            if self._attempt > 1:
                initial.update(epoch=self._earlier.epoch + 1, restarts=self._earlier.restarts)
            initial["fences"] = earlier_fences(self._earlier, self._config, stopped)
        else:
            self._earlier = self._read_earlier(store)
            shipped = self._start_over(store, journal, events, initial)
        return initial, shipped

    def _read_earlier(self, store: Store) -> EarlierAttempts:
        """Return what earlier attempts of the application left; the job directory is read once."""
        if self._attempt == 1:
            return EarlierAttempts()
        found = EarlierAttempts.load(self._directory) if self._restored else None
        if found is None:
            found = self._storage_wait.retry(lambda: read_earlier_attempts(store, self._attempt))
            found.save(self._directory)
        return found

    def _start_over(
        self, store: Store, journal: Journal, events: Journal, initial: dict[str, Any]
    ) -> list[Event]:
        """Prepare a new epoch after a journal that lacks records; return this attempt's events.

        The containers are unknown: their agents are refused, and no program starts before the
        programs of unreachable agents have ended.
        """
        found = self._storage_wait.retry(lambda: read_earlier_attempts(store, self._attempt + 1))
        writer = layout.coordinator_writer(self._attempt)
        shipped = [event for event in found.events if event.writer == writer]
        for entry in events.entries():
            found.add_line(json.dumps(entry).encode())
        first = next(journal.entries(), {})
        config = self._config
        initial.update(
            # One more: the event of an epoch that has just begun may not have been shipped.
            epoch=max(found.epoch, int(first.get("epoch") or 0)) + 2,
            restarts=found.restarts,
            port=first.get("port") or config.listen_port,
            # No seat of the lost records has such a number.
            asks=int(time.time()),
            fences={"unknown containers": config.lost_after + config.lost_margin},
        )
        journal.clear()
        self._start_over_reason = _(
            "The coordinator was restarted and its journal lacks records, because the disk of "
            "its node was full: the gang starts in a new epoch."
        )
        return shipped

    def _arrival_time(self) -> float | None:
        """Return when this container was on its node.

        The configuration is written when the master's JVM runs, later than YARN's launch script.
        """
        return first_change([self._path(name) for name in (LAUNCH_SCRIPT, layout.COORDINATOR)])

    def _holds_claim(self, store: Store, inbox: Inbox) -> bool:
        """Return whether this attempt still holds the job; if not, make the event loop end."""
        if not is_superseded(store, self._attempt):
            return True
        inbox.post({"type": "superseded"})
        return False

    def _begin(self, loop: EventLoop, store: Store, fences: dict[str, float]) -> None:
        """Request the gang, unless the job was cancelled or its lease has expired."""
        cancelled = self._storage_wait.retry(
            lambda: cancel_request(store), loop.server.poll, loop.show_storage_wait
        )
        loop.show_storage_wait("")
        loop.status.add_event("claimed", data={"pid": os.getpid(), "attempt": self._attempt})
        if cancelled is not None:
            loop.inbox.post({"type": "cancel", **cancelled})
            return
        if self._failed_port:
            loop.inbox.post({"type": "no_port", "detail": self._failed_port})
            return
        expired = self._lease.begin(
            layout.claim_name(self._attempt),
            loop.server.poll,  # A client may renew the lease meanwhile.
            loop.must_end,
            wait_for_renewal=self._attempt == 1,
            grace=self._config.save_grace,
        )
        if expired:
            loop.inbox.expire_lease(expired)
            return
        again = self._start_over_reason
        if not again and self._earlier.epoch:
            again = _("The application master was started again.")
        loop.begin(fences, again)
        if fences:
            arguments = (self._earlier, fences, loop.inbox.post, self._config)
            threading.Thread(target=watch_earlier_containers, args=arguments, daemon=True).start()

    def _check(self, loop: EventLoop, store: Store) -> None:
        """Let a restarted coordinator start programs when claim and record allow it.

        Runs in a separate thread: agents must be answered while HDFS is unavailable.
        """
        try:
            why = self._storage_wait.retry(
                lambda: self._refusal(store), show=loop.show_storage_wait
            )
        except StoreError as exc:
            _log(f"{self._config.record.job_id}: {exc}")
            why, self._exit_code = "storage", exc.exit_code
        loop.show_storage_wait("")
        if why:
            loop.inbox.post({"type": "leave", "why": why})
            return
        if self._storage_wait.waited:
            sentence = self._storage_wait.summary()
            loop.inbox.post({"type": "note", "kind": "storage", "detail": sentence})
        loop.inbox.post({"type": "checked"})
        claimed = layout.claim_name(self._attempt)
        self._lease.begin(claimed, time.sleep, loop.must_end, wait_for_renewal=False)

    def _pending_reasons(self, loop: EventLoop) -> PendingReasonThread:
        def show(sentence: str) -> None:
            loop.pending_reason = sentence

        own_id = application_id(os.environ) or ""
        thread = PendingReasonThread(
            self._config, own_id, lambda: missing_containers(loop.job), show
        )
        thread.start()
        return thread

    def _yarn_page(self, loop: EventLoop) -> PageThread | None:
        if not skein_started_container():
            return None
        # cost: the page, which a job on this machine does not need.
        from submarine_runtime.yarn import PageThread

        def report(sentence: str) -> None:
            loop.inbox.post({"type": "note", "kind": "yarn_page", "detail": sentence})

        status, config = loop.status, self._config
        page = PageThread(
            lambda: status.to_json(events=False),
            lambda: status.progress,
            config.spec,
            config.store,
            lambda host: bind_port(host, ports=config.port_range),
            report,
        )
        page.start()
        return page


def _handle_signals(loop: EventLoop) -> None:
    def stop(reason: str) -> Any:
        def handler(number: int, frame: Any) -> None:
            loop.stop_reason = loop.stop_reason or reason

        return handler

    signal.set_wakeup_fd(loop.server.wake_fd, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, stop("terminated"))
    signal.signal(signal.SIGUSR1, stop("parent"))
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda *_: None)


def _warn(inbox: Inbox, what: str) -> Callable[[str], None]:
    def warn(sentence: str) -> None:
        inbox.post(
            {
                "type": "note",
                "kind": "warning",
                "detail": _("{what} waits: {sentence}").format(what=what, sentence=sentence),
            }
        )

    return warn


def _log(sentence: str) -> None:
    write_error(f"submarine coordinator: {sentence}\n")
