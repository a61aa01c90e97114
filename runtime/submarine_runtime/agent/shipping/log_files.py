"""The files that a task's program writes to: one pair for each of its attempts here."""

from __future__ import annotations

from typing import Mapping

from submarine_runtime.agent.shipping.log_shipper import LogShipper
from submarine_runtime.protocol import layout
from submarine_runtime.storage import Scratch


class LogFiles:
    """Which file holds which stream of which attempt; read by the server's threads.

    Attributes
    ----------
    newest
        Name of the attempt that runs, or ran last: ``e1-a1``; empty before the first.
    """

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._paths: dict[str, dict[str, str]] = {}
        self._shippers: dict[str, Mapping[str, LogShipper]] = {}
        self.newest = ""

    def begin(self, epoch: int, attempt: int) -> dict[str, str]:
        """The files of a new attempt, stream -> path; the first one's carry no attempt's name."""
        name = layout.attempt_name(epoch, attempt)
        if name not in self._paths:
            mark = f".{name}" if self._paths else ""
            self._paths[name] = {
                stream: self._scratch.log(stream, mark) for stream in layout.STREAMS
            }
        self.newest = name
        return self._paths[name]

    def paths(self, attempt: str = "") -> dict[str, str] | None:
        """Stream -> path of an attempt, of the newest if none is named; None for a stranger."""
        return self._paths.get(attempt or self.newest)

    def shipped_by(self, shippers: Mapping[str, LogShipper]) -> None:
        """Note who ships the newest attempt's streams, and so knows when they grew."""
        self._shippers[self.newest] = shippers

    def index(self, attempt: str, stream: str) -> bytes | None:
        """When a log had which length, as it is shipped at the end; None for a stranger."""
        shipper = self._shippers.get(attempt or self.newest, {}).get(stream)
        return shipper.index() if shipper is not None else None
