"""The agent's side of the link: a thread that connects, reconnects and sends heartbeats.

See ``protocol.link``. The thread passes orders to ``gang_task``, which executes them.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from typing import Any, Callable, Mapping

from submarine_runtime.agent.link.connection import LinkConnection, RefusedError, connect
from submarine_runtime.agent.link.outbox import Outbox, encoded
from submarine_runtime.agent.link.silence_watchdog import SilenceWatchdog
from submarine_runtime.backoff import Backoff
from submarine_runtime.storage import WriteGate
from submarine_runtime.suspend import MIN_SUSPEND, monotonic, suspended

CONNECT_SECONDS = 4.0
#: Heartbeats, and minimum seconds, without an answer after which the connection counts as dead: TCP
#: increases its own pauses, and may notice too late that the network works again.
STALE_BEATS, STALE_SECONDS = 3, 3.0
#: Seconds between two connection attempts.
LONGEST_PAUSE = 1.0
SHORTEST_PAUSE = 0.05
#: Seconds after which an agent gives up: without a first welcome, and without a welcome after a
#: silence for which the program was killed.
WELCOME_TIMEOUT = 180.0
SILENCE_TIMEOUT = 120.0
MAX_UNACKED = 64


class Link:
    """The link.

    Parameters
    ----------
    register
        Returns the fields of the ``register`` line for the address that the coordinator sees.
    measures
        Returns the current values for a heartbeat; only changes since the last acknowledged one are
        sent.
    on_order
        Called in the thread with each order, and with each ``welcome``.
    on_silence
        Called, in a separate thread, when the coordinator was silent for too long.
    on_over
        Called in the thread after ``refused`` or ``given_up`` was set.
    gate
        Opened after a suspend by the first answer to a line that was sent after it.

    Attributes
    ----------
    refused
        Why the coordinator rejected the agent; None if it did not.
    given_up
        Why the agent no longer waits for the coordinator.
    """

    def __init__(
        self,
        address: tuple[str, int],
        secret: Mapping[str, str],
        register: Callable[[str], dict[str, Any]],
        measures: Callable[[], dict[str, Any]],
        on_order: Callable[[dict[str, Any]], None],
        on_silence: Callable[[], None],
        on_over: Callable[[], None],
        gate: WriteGate,
    ) -> None:
        self._address = address
        self._secret = secret
        self._register = register
        self._measures = measures
        self._on_order = on_order
        self._on_over = on_over
        self._gate = gate
        self._watchdog = SilenceWatchdog(on_silence)
        self._outbox = Outbox()
        self._beats = 0
        self._heartbeat_now = False
        self._unacked: deque[tuple[int, float, float, int, dict[str, Any]]] = deque()
        self._acknowledged_values: dict[str, Any] = {}
        self._heartbeat, self._lost_after = 1.0, 25.0
        self._began = monotonic()
        self._welcomed_at: float | None = None
        self._reader, self._writer = os.pipe()
        for end in (self._reader, self._writer):
            os.set_blocking(end, False)
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="link", daemon=True)
        self.refused: str | None = None
        self.given_up: str | None = None

    def start(self) -> None:
        """Start to connect."""
        self._thread.start()

    @property
    def welcomed(self) -> bool:
        """Whether the coordinator has ever accepted the agent."""
        return self._welcomed_at is not None

    @property
    def silent(self) -> bool:
        """Whether the coordinator has been silent for too long, and still is."""
        return self._watchdog.fired

    def send(self, line: Mapping[str, Any]) -> None:
        """Send a line now, or after the next reconnection; callable from any thread.

        Raises
        ------
        ValueError
            If it is too long for the link.
        """
        self._outbox.add(line)
        self._wake()

    def wait_sent(self, seconds: float) -> bool:
        """Wait until all lines have been sent; return False after the timeout."""
        return self._outbox.wait_sent(seconds)

    def wait_read(self, seconds: float) -> bool:
        """Wait until the coordinator has read all lines; return False after the timeout."""
        self._heartbeat_now = True
        self._wake()
        return self._outbox.wait_read(seconds)

    def close(self) -> None:
        """Close the link."""
        self._closing = True
        self._watchdog.stop()
        self._wake()
        self._thread.join(1.0)

    def _wake(self) -> None:
        try:
            os.write(self._writer, b"\0")
        except BlockingIOError:
            pass  # The pipe already holds many wake-ups.

    @property
    def _over(self) -> bool:
        return self._closing or self.refused is not None or self.given_up is not None

    def _run(self) -> None:
        backoff = Backoff(SHORTEST_PAUSE, LONGEST_PAUSE)
        while not self._over:
            welcomed = self._welcomed_at
            try:
                self._communicate(connect(self._address, self._secret, CONNECT_SECONDS))
            except (OSError, ValueError, RefusedError) as exc:
                self._check_patience(str(exc))
            # A connection that ends at once, for example after an invalid order, is no success.
            latest = self._welcomed_at
            if latest is not None and latest != welcomed and monotonic() - latest > LONGEST_PAUSE:
                backoff.reset()
            if not self._over:
                time.sleep(backoff.pause())
        self._outbox.give_up()
        self._on_over()

    def _check_patience(self, why: str) -> None:
        now, deadline = monotonic(), self._watchdog.deadline
        since, patience = self._began, WELCOME_TIMEOUT
        if deadline is not None:
            since, patience = deadline, SILENCE_TIMEOUT
        if now - since > patience:
            self.given_up = f"the coordinator cannot be reached: {why}"

    def _communicate(self, lines: LinkConnection) -> None:
        """Communicate until the link breaks (OSError) or is over."""
        try:
            registered, slept = monotonic(), suspended()
            lines.queue(encoded({"type": "register", **self._register(lines.address)}))
            self._unacked.clear()
            next_heartbeat: float | None = None
            while not self._over:
                lines.flush()
                if not lines.unsent:
                    self._outbox.sent()
                until = (
                    registered + 2 * CONNECT_SECONDS if next_heartbeat is None else next_heartbeat
                )
                self._sleep(lines, until)
                for line in lines.receive():
                    if line.get("type") == "welcome":
                        self._welcome(line, registered, slept)
                        next_heartbeat = monotonic()
                    else:
                        self._handle(line)
                now = monotonic()
                if next_heartbeat is None:
                    if now >= until:
                        raise ConnectionError("it does not answer")
                    continue
                lines.queue(self._outbox.take())
                if self._stale(now):
                    raise ConnectionError("it has stopped answering")
                if now >= next_heartbeat or self._heartbeat_now or self._resumed:
                    self._heartbeat_now = False
                    next_heartbeat = now + self._heartbeat
                    self._send_heartbeat(lines, now)
        finally:
            lines.close()

    @property
    def _resumed(self) -> bool:
        """Whether no heartbeat has been sent since a suspend that the gate waits for."""
        if not self._gate.closed:
            return False
        return not self._unacked or suspended() - self._unacked[-1][2] >= MIN_SUSPEND

    def _stale(self, now: float) -> bool:
        patience = max(STALE_SECONDS, STALE_BEATS * self._heartbeat)
        return bool(self._unacked) and now - self._unacked[0][1] > patience

    def _sleep(self, lines: LinkConnection, until: float) -> None:
        writable: list[Any] = [lines] if lines.unsent else []
        readable: list[Any] = [lines, self._reader]
        pause = max(0.0, until - monotonic())
        ready, _, _ = select.select(readable, writable, [], pause)
        if self._reader in ready:
            try:
                os.read(self._reader, 4096)
            except BlockingIOError:
                pass

    def _welcome(self, line: Mapping[str, Any], registered: float, slept: float) -> None:
        self._heartbeat = min(60.0, max(0.05, float(line.get("heartbeat") or 1.0)))
        self._lost_after = max(0.1, float(line.get("lost_after") or 25.0))
        self._welcomed_at = monotonic()
        self._confirmed(registered, slept)
        self._acknowledged_values = {}  # A restarted coordinator may not have the values.
        self._outbox.rewind()
        self._on_order(dict(line))

    def _handle(self, line: dict[str, Any]) -> None:
        kind = line.get("type")
        if kind == "ack":
            self._acknowledged(int(line.get("n") or 0))
        elif kind == "refused":
            self.refused = str(line.get("why") or "no reason given")[:500]
        else:
            self._on_order(line)

    def _send_heartbeat(self, lines: LinkConnection, now: float) -> None:
        self._beats += 1
        values = self._measures()
        changed = {
            key: value
            for key, value in values.items()
            if self._acknowledged_values.get(key) != value
        }
        lines.queue(encoded({**changed, "type": "heartbeat", "n": self._beats}))
        self._unacked.append((self._beats, now, suspended(), self._outbox.taken, values))
        if len(self._unacked) > MAX_UNACKED:
            self._unacked.popleft()

    def _acknowledged(self, number: int) -> None:
        while self._unacked and self._unacked[0][0] <= number:
            beat, sent, slept, taken, values = self._unacked.popleft()
            if beat == number:
                self._acknowledged_values = values
                self._confirmed(sent, slept)
                self._outbox.confirm(taken)

    def _confirmed(self, sent: float, slept: float) -> None:
        """Count an answer to a line of that time, unless it was sent before a suspend."""
        if suspended() - slept < MIN_SUSPEND:
            self._watchdog.acknowledged(sent, self._lost_after)
            self._gate.confirm(slept)
