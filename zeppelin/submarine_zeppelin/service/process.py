"""One process of the interpreter group from its start to its end.

Puts the parts of ``serving`` together, tells Zeppelin's server where it listens, and waits for the
end. Jobs and Python are imported when a paragraph needs them: a start takes a fifth of a second.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence

from submarine_jobs.client import started_jobs as started
from submarine_jobs.concurrency import stay_small
from submarine_zeppelin.accounts import drivers
from submarine_zeppelin.execution import Delivery, Executions, Outputs, Sessions
from submarine_zeppelin.interface import (
    LIMIT_PROPERTY,
    Context,
    NoteParagraph,
    Output,
    Server,
    limit_of,
)
from submarine_zeppelin.service.arguments import Arguments, parse
from submarine_zeppelin.service.handler import Handler
from submarine_zeppelin.service.lifecycle import Ending, own_group
from submarine_zeppelin.service.log import SecretsMask, set_up_logging
from submarine_zeppelin.service.memory import give_back_freed_memory, load_no_grammar
from submarine_zeppelin.thrift import (
    BoundSocket,
    Callers,
    EventClient,
    EventRefusedError,
    InterpreterServer,
    ServerAwayError,
    is_local,
    own_address,
)

log = logging.getLogger(__name__)
LOOPBACK = "127.0.0.1"
#: Seconds in which the server has to take our registration; it gives up on us after 60.
TO_REGISTER = 50.0


class ZeppelinServer(Server):
    """Zeppelin's server, as interpreters see it."""

    def __init__(self, events: EventClient, outputs: Outputs, group: str) -> None:
        self.group = group
        self._events = events
        self._outputs = outputs

    def paragraphs(self, note_id: str, user: str) -> list[NoteParagraph]:
        """All paragraphs of a note; see ``Server``."""
        return self._events.paragraphs(note_id, user)

    def output(self, context: Context) -> Output:
        """The output of a paragraph's last run; see ``Server``."""
        return self._outputs.current(context)


class Process:
    """The parts of one process of the group."""

    def __init__(self, arguments: Arguments, mask: SecretsMask) -> None:
        self.callers = Callers(arguments.host, arguments.port)
        self.events = EventClient(
            arguments.host, arguments.port, arguments.group, self.callers.trusts_server
        )
        self.outputs = Outputs(self.events)
        server = ZeppelinServer(self.events, self.outputs, arguments.group)
        self.sessions = Sessions(server, self._learn)
        self.executions = Executions(self.outputs.begin, Delivery(self.outputs))
        self.ending = Ending(self._close)
        self.handler = Handler(
            self.sessions,
            self.executions,
            self._learn,
            self._reconnected,
            lambda: self.ending.request("Zeppelin's server asked for it"),
        )
        self._mask = mask
        self._arguments = arguments

    def serve(self) -> None:
        """Listen, and tell the server where.

        Raises
        ------
        OSError
            If no port is free.
        ServerAwayError, EventRefusedError
            If the server does not take the registration.
        """
        host, shown = self._hosts()
        bound = BoundSocket(host, self._arguments.ports)
        InterpreterServer(self.handler, bound, self.callers).start()
        self._register(shown, bound.port)

    def _hosts(self) -> tuple[str, str]:
        """Where to listen, and where the server reaches that."""
        if is_local(self._arguments.host):
            return LOOPBACK, LOOPBACK
        shown = os.environ.get("ZEPPELIN_LOCAL_IP") or ""
        own = own_address(self._arguments.host, self._arguments.port)
        # A name or an address that is not this machine's own: somebody translates it.
        return (own, own) if not shown or shown == own else ("0.0.0.0", shown)  # noqa: S104

    def _register(self, host: str, port: int) -> None:
        until = time.monotonic() + TO_REGISTER
        pause = 0.1
        while True:
            try:
                self.events.register(host, port)
            except ServerAwayError:
                if time.monotonic() + pause > until:
                    raise
            else:
                log.info("ready on %s:%s as %s", host, port, self._arguments.group)
                return
            time.sleep(pause)
            pause = min(2 * pause, 5.0)

    def _learn(self, properties: Mapping[str, str]) -> None:
        """What a process has to know of properties, the server's or an interpreter's."""
        self._mask.learn(properties)
        self.ending.configure(properties)
        if LIMIT_PROPERTY in properties:
            self.outputs.limit = limit_of(properties)

    def _reconnected(self, host: str, port: int) -> None:
        log.info("Zeppelin's server is at %s:%s now", host, port)
        self.callers.move(host, port)
        self.events.move(host, port)
        self.outputs.send_all_again()

    def _close(self) -> None:
        self.executions.stop()
        self.sessions.close_all()
        releasing = threading.Thread(target=drivers.release, daemon=True, name="releasing")
        releasing.start()  # a server that hangs must not keep Java processes
        self.outputs.send_rest()
        releasing.join()


def main(words: Sequence[str] | None = None) -> int:
    """Run the process; returns only where it could not start."""
    parent = os.getppid()
    give_back_freed_memory()
    load_no_grammar()
    stay_small()
    started.keep_at_most(0)  # each job would keep the page of its paragraph
    arguments = parse(words)
    own_group()
    mask = SecretsMask()
    set_up_logging(arguments.group, mask)
    process = Process(arguments, mask)
    process.ending.on_signals()
    if is_local(arguments.host) and parent > 1:
        process.ending.watch(parent, lambda: process.events.address)
    where = f"{arguments.host}:{arguments.port}"
    try:
        process.serve()
    except OSError as error:
        ports = arguments.ports
        told = f"{ports.start}:{ports.stop - 1}" if ports else "any"
        print(f"Submarine cannot listen ({error}; ports: {told}).", file=sys.stderr)
        return 1
    except (ServerAwayError, EventRefusedError) as error:
        print(f"Zeppelin's server at {where} took no registration: {error}.", file=sys.stderr)
        return 1
    process.ending.wait()
    return 0
