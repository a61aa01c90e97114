"""The agents' links: one connection for each seat, and what agents send over it.

Events of the state machine are passed on; measurements, warnings and answers go to the record or
to the thread that waits for them. Only the newest connection of a seat is accepted.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Callable, Mapping

from submarine_runtime.coordinator.machine import JobState, Stage, record_heartbeat
from submarine_runtime.coordinator.record import JobStatus
from submarine_runtime.coordinator.server import AgentEndpoint
from submarine_runtime.port import Connection, PortServer
from submarine_runtime.protocol import check_agent_line
from submarine_runtime.suspend import monotonic
from submarine_runtime.translation import _

#: Types of lines that are events of the state machine.
_STATE_EVENTS = frozenset({"register", "state", "ports", "left", "snapshot", "synced", "idle"})


class AgentLinks:
    """Open connections of agents, by seat.

    Parameters
    ----------
    handle
        Called with an event of the state machine and the connection that it came from.
    """

    def __init__(
        self,
        job: JobState,
        status: JobStatus,
        server: PortServer,
        handle: Callable[[dict[str, Any], Connection | None], None],
    ) -> None:
        self._job, self._status, self._server, self._handle = job, status, server, handle
        self._connections: dict[str, Connection] = {}
        self._addresses: dict[str, tuple[str, int]] = {}
        self._saves: dict[str, deque[dict[str, Any]]] = {}
        self._storage_waits: dict[str, str] = {}
        self._tokens = ""

    def get(self, seat: str) -> Connection | None:
        """Return the connection of a seat; None while its agent is not connected."""
        return self._connections.get(seat)

    def send(self, connection: Connection, line: Mapping[str, Any]) -> None:
        """Send a line to an agent."""
        self._server.send(connection, line)

    def send_bytes(self, connection: Connection, data: bytes) -> None:
        """Send an encoded line to an agent."""
        self._server.send_bytes(connection, data)

    def refuse_all(self, why: str) -> None:
        """Refuse all agents."""
        for connection in list(self._connections.values()):
            self._server.send(connection, {"type": "refused", "why": why})

    def dismiss(self, seat: str, why: str) -> None:
        """Refuse the agent of a seat and close its connection."""
        connection = self._connections.pop(seat, None)
        if connection is not None:
            self._server.send(connection, {"type": "refused", "why": why})
            self._server.close(connection)

    def endpoints(self) -> dict[str, AgentEndpoint]:
        """Return task -> port of its agent, for tasks with a connected agent."""
        found = {}
        for task in list(self._job.tasks.values()):
            address = self._addresses.get(task.seat)
            if address is not None and task.linked:
                found[task.name] = AgentEndpoint(*address, task.epoch, task.attempt)
        return found

    def receive(self, connection: Connection, line: dict[str, Any]) -> None:
        """Handle a line of an agent.

        Raises
        ------
        ValueError
            If the line is malformed; the link server then closes the connection.
        """
        check_agent_line(line)
        kind = line["type"]
        if kind == "heartbeat":
            self._heartbeat(connection, line)
        elif kind == "register":
            if connection.seat not in ("", line["seat"]):
                raise ValueError(f"{connection.seat} registers again, as {line['seat'][:100]}")
            connection.seat = line["seat"]
            self._handle(line, connection)
        elif self._connections.get(connection.seat) is not connection:
            self._server.close(connection)
        elif kind in _STATE_EVENTS:
            self._handle({**line, "seat": connection.seat}, None)
            if kind == "state" and line.get("state") in ("running", "ended"):
                self._record_task(connection.seat, line)
        elif kind == "event":
            self._record_event(connection, line)
        elif kind == "saved":
            answer = self._saves.pop(str(line.get("id")), None)
            if answer is not None:
                answer.append(line)

    def closed(self, connection: Connection) -> None:
        """Handle the end of a connection."""
        if self._connections.get(connection.seat) is connection:
            del self._connections[connection.seat]
            self._storage_waits.pop(connection.seat, None)
            self._handle({"type": "unlinked", "seat": connection.seat}, None)

    def accept(self, event: Mapping[str, Any], connection: Connection) -> None:
        """Use the connection of a ``register`` event if the state machine accepted the agent."""
        seat = str(event.get("seat"))
        task = self._job.seats.get(seat)
        if task is None or task.seat != seat or not task.linked:
            return
        if task.nonce != str(event.get("nonce") or ""):
            return
        old = self._connections.get(seat)
        self._connections[seat] = connection
        if old is not None and old is not connection:
            self._server.close(old)
        if self._tokens:
            self._server.send(connection, {"type": "tokens", "tokens": self._tokens})

    def send_tokens(self, text: str) -> None:
        """Send fresh delegation tokens to all agents, and to those that register later."""
        self._tokens = text
        for connection in list(self._connections.values()):
            self._server.send(connection, {"type": "tokens", "tokens": text})

    def set_address(self, event: Mapping[str, Any]) -> None:
        """Store the address of the agent's own port from a ``register`` event."""
        if event.get("agent_port"):
            host = str(event.get("address") or event.get("host"))
            self._addresses[str(event["seat"])] = (host, int(event["agent_port"]))

    def save_model(self, message: dict[str, Any]) -> None:
        """Let the chief save the model; the answer is appended to ``message["answer"]``."""
        chief = self._job.chief
        connection = self._connections.get(chief.seat)
        if connection is None or chief.stage is not Stage.RUNNING:
            message["answer"].append(
                {"error": _("{chief} is not running").format(chief=chief.name)}
            )
            return
        self._saves[message["id"]] = message["answer"]
        line = {"type": "save", "id": message["id"], "name": message["name"]}
        self._server.send(connection, line)

    def storage_waits(self) -> str:
        """Return which tasks wait for the file system of the job directory; empty: none."""
        found = {
            task.name: sentence
            for task in self._job.tasks.values()
            if (sentence := self._storage_waits.get(task.seat))
        }
        if not found:
            return ""
        first = next(iter(found))
        more = _(" and {count} more").format(count=len(found) - 1) if len(found) > 1 else ""
        return f"{first}{more}: {found[first]}"

    def _heartbeat(self, connection: Connection, line: dict[str, Any]) -> None:
        task = None
        if self._connections.get(connection.seat) is connection:
            task = record_heartbeat(self._job, connection.seat, monotonic())
        if task is None:
            self._server.close(connection)
            return
        self._server.send_bytes(connection, b'{"type":"ack","n":%d}\n' % line["n"])
        if "waiting" in line:
            self._storage_waits[connection.seat] = line["waiting"][:500]
        if len(line) > 2:
            self._status.set_measurements(task.name, line)

    def _record_task(self, seat: str, line: Mapping[str, Any]) -> None:
        """Add an event with the record of a task after its program has started or ended."""
        task = self._job.seats.get(seat)
        if task is None:
            return
        data: dict[str, Any] = {"task": self._status.task_json(task.name)}
        if line.get("state") == "ended":
            data["logs"] = self._status.log_lengths(task.name, line)
        self._status.add_event("task", str(line.get("state")), task.name, data=data)

    def _record_event(self, connection: Connection, line: Mapping[str, Any]) -> None:
        """Add an event that an agent reports."""
        task = self._job.seats.get(connection.seat)
        if task is None:
            self._server.close(connection)  # The container has ended.
            return
        detail, data = line.get("detail") or "", line.get("data") or {}
        self._status.add_event(line["kind"][:50] or "warning", detail, task.name, data=data)
