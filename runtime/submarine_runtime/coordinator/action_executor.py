"""Does what the machine of a job wants done: lines to agents, containers, events.

Blocks nowhere: containers are ``placement``'s, events go to the record. Decides nothing.
"""

from __future__ import annotations

import json

from submarine_runtime.coordinator.job_directory import Surveyor
from submarine_runtime.coordinator.machine import (
    Action,
    Ask,
    End,
    Note,
    Play,
    Release,
    Send,
    Start,
    Survey,
    question,
)
from submarine_runtime.coordinator.placement import PlacementThread
from submarine_runtime.coordinator.record import JobStatus
from submarine_runtime.coordinator.reporter import Reporter
from submarine_runtime.coordinator.server import LinkServer, Peer
from submarine_runtime.protocol.link import Member


class Hands:
    """The conductor's hands; ``server``, ``placement`` and ``surveyor`` are set before use.

    Attributes
    ----------
    peers
        Seat -> the link that counts.
    speaking
        The link whose line is being answered.
    """

    server: LinkServer
    placement: PlacementThread
    surveyor: Surveyor

    def __init__(self, play: Play, status: JobStatus) -> None:
        self.play, self.status = play, status
        self.reporter = Reporter(play, status)
        self.peers: dict[str, Peer] = {}
        self.speaking: Peer | None = None
        self._members: tuple[tuple[Member, ...], str] = ((), "[]")

    def perform(self, action: Action) -> None:
        """Do one thing."""
        if isinstance(action, Send):
            refusal = action.line["type"] == "refused"
            peer = self.speaking if refusal else self.peers.get(action.seat)
            if peer is not None:
                self.server.send(peer, action.line)
        elif isinstance(action, Start):
            self._start(action)
        elif isinstance(action, Ask):
            orders = self.play.tasks[action.task].orders
            self.placement.request(action.task, orders, action.seat, action.elsewhere)
        elif isinstance(action, Release):
            self._release(action.seat)
        elif isinstance(action, Survey):
            self.surveyor.ask(question(self.play))
        elif isinstance(action, Note):
            self._note(action)
        elif isinstance(action, End):
            self.reporter.sync_all()

    def _start(self, start: Start) -> None:
        peer = self.peers.get(start.seat)
        if peer is None:
            return  # it is told when it comes back
        if start.members is not self._members[0]:  # a gang of many is written down once
            plain = json.dumps([member.to_json() for member in start.members])
            self._members = (start.members, plain)
        line = (
            f'{{"type":"start","epoch":{start.epoch},"attempt":{start.attempt},'
            f'"restore":{json.dumps(start.restore)},"alone":{json.dumps(start.alone)},'
            f'"members":{self._members[1]}}}\n'
        )
        self.server.send_bytes(peer, line.encode())

    def _release(self, seat: str) -> None:
        self.placement.release(seat)
        peer = self.peers.pop(seat, None)
        if peer is not None:
            self.server.send(peer, {"type": "refused", "why": "this place is given up"})
            self.server.close(peer)

    def _note(self, note: Note) -> None:
        self.status.note(note.kind, note.detail, note.task, note.state, note.reason, note.data)
