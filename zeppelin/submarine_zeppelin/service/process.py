"""Run the interpreter process: create its components, register with Zeppelin's server, wait.

Modules for jobs and kernels are imported when a paragraph needs them, so a start takes 0.2 s.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence

from submarine_jobs.client import limit_kept_jobs
from submarine_jobs.concurrency import use_subprocesses
from submarine_runtime.translation import _
from submarine_zeppelin.accounts import hide_service_key, release_drivers
from submarine_zeppelin.execution import (
    Executions,
    InterpreterSessions,
    OutputWriter,
    ResourcePool,
)
from submarine_zeppelin.interface import (
    LIMIT_PROPERTY,
    Context,
    NoteParagraph,
    Output,
    Server,
    output_limit,
)
from submarine_zeppelin.memory import block_unused_imports, limit_retained_memory
from submarine_zeppelin.service.arguments import Arguments, parse
from submarine_zeppelin.service.handler import Handler
from submarine_zeppelin.service.lifecycle import ProcessShutdown, become_group_leader
from submarine_zeppelin.service.log import SecretsMask, set_up_logging
from submarine_zeppelin.thrift import (
    AccessPolicy,
    BoundSocket,
    EventClient,
    EventRefusedError,
    InterpreterServer,
    ServerUnavailableError,
    address_towards,
    is_local,
)

log = logging.getLogger(__name__)
LOOPBACK = "127.0.0.1"
#: Timeout of the registration in seconds. The server stops waiting after 60.
REGISTRATION_TIMEOUT = 50.0


class ServerClient(Server):
    """Zeppelin's server as an interpreter uses it."""

    def __init__(
        self, events: EventClient, outputs: OutputWriter, resources: ResourcePool, group: str
    ) -> None:
        self.group = group
        self.resources = resources
        self._events = events
        self._outputs = outputs

    def paragraphs(self, note_id: str, user: str) -> list[NoteParagraph]:
        """Return all paragraphs of a note; see ``Server``."""
        return self._events.paragraphs(note_id, user)

    def output(self, context: Context) -> Output:
        """Return the output of a paragraph's last run; see ``Server``."""
        return self._outputs.current(context)


class InterpreterProcess:
    """Components of an interpreter process."""

    def __init__(self, arguments: Arguments, mask: SecretsMask) -> None:
        self.access = AccessPolicy(arguments.host, arguments.port)
        self.events = EventClient(
            arguments.host, arguments.port, arguments.group, self.access.trusts_server
        )
        self.outputs = OutputWriter(self.events)
        resources = ResourcePool(self.events)
        server = ServerClient(self.events, self.outputs, resources, arguments.group)
        self.sessions = InterpreterSessions(server, self._apply_properties)
        self.executions = Executions(self.outputs)
        self.shutdown = ProcessShutdown(self._close)
        self.handler = Handler(
            self.sessions,
            self.executions,
            resources,
            self._apply_properties,
            self._reconnect,
            lambda: self.shutdown.request("Zeppelin's server requested it"),
        )
        self._mask = mask
        self._arguments = arguments

    def serve(self) -> None:
        """Listen and register with the server.

        Raises
        ------
        OSError
            If no port is free.
        ServerUnavailableError, EventRefusedError
            If the registration fails.
        """
        host, registered = self._hosts()
        bound = BoundSocket(host, self._arguments.ports)
        InterpreterServer(self.handler, bound, self.access).start()
        self._register(registered, bound.port)

    def _hosts(self) -> tuple[str, str]:
        """Return the address to listen on and the address to register."""
        if is_local(self._arguments.host):
            return LOOPBACK, LOOPBACK
        registered = os.environ.get("ZEPPELIN_LOCAL_IP") or ""
        own = address_towards(self._arguments.host, self._arguments.port)
        # Another address than this machine's is translated on the way: listen on all addresses.
        if registered and registered != own:
            return "0.0.0.0", registered  # noqa: S104
        return own, own

    def _register(self, host: str, port: int) -> None:
        deadline = time.monotonic() + REGISTRATION_TIMEOUT
        pause = 0.1
        while True:
            try:
                self.events.register(host, port)
            except ServerUnavailableError:
                if time.monotonic() + pause > deadline:
                    raise
            else:
                log.info("ready on %s:%s as %s", host, port, self._arguments.group)
                return
            time.sleep(pause)
            pause = min(2 * pause, 5.0)

    def _apply_properties(self, properties: Mapping[str, str]) -> None:
        """Apply properties of the server or of an interpreter to the process."""
        self._mask.add(properties)
        self.shutdown.configure(properties)
        if LIMIT_PROPERTY in properties:
            self.outputs.limit = output_limit(properties)

    def _reconnect(self, host: str, port: int) -> None:
        log.info("Zeppelin's server has the address %s:%s", host, port)
        self.access.set_server(host, port)
        self.events.set_server(host, port)
        self.outputs.resend_all()

    def _close(self) -> None:
        self.executions.stop()
        self.sessions.close_all()
        releasing = threading.Thread(target=release_drivers, daemon=True, name="releasing")
        releasing.start()  # in parallel, because calls to a server may hang
        self.outputs.flush_all()
        releasing.join()


def main(words: Sequence[str] | None = None) -> int:
    """Run the process. Returns an exit code only if the start fails."""
    parent = os.getppid()
    limit_retained_memory()
    block_unused_imports()
    use_subprocesses()
    limit_kept_jobs(0)  # a job keeps the page of its paragraph in memory
    arguments = parse(words)
    become_group_leader()
    hide_service_key()  # before a program of a user can start
    mask = SecretsMask()
    set_up_logging(arguments.group, mask)
    process = InterpreterProcess(arguments, mask)
    process.shutdown.on_signals()
    if is_local(arguments.host) and parent > 1:
        process.shutdown.watch(parent, lambda: process.events.address)
    address = f"{arguments.host}:{arguments.port}"
    try:
        process.serve()
    except OSError as error:
        ports = arguments.ports
        allowed = f"{ports.start}:{ports.stop - 1}" if ports else "any"
        print(
            _("Submarine cannot listen ({error}; ports: {allowed}).").format(
                error=error, allowed=allowed
            ),
            file=sys.stderr,
        )
        return 1
    except (ServerUnavailableError, EventRefusedError) as error:
        print(
            _("The registration with Zeppelin's server at {address} failed: {error}.").format(
                address=address, error=error
            ),
            file=sys.stderr,
        )
        return 1
    process.shutdown.wait()
    return 0
