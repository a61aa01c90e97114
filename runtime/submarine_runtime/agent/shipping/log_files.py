"""The local log files of a task: the streams of each attempt in this container."""

from __future__ import annotations

from typing import Mapping

from submarine_runtime.agent.shipping.log_shipper import LogShipper
from submarine_runtime.protocol import layout
from submarine_runtime.storage import Scratch


class LogFiles:
    """The file of each stream of each attempt; the server's threads read it.

    Attributes
    ----------
    newest
        Name of the current or last attempt: ``e1-a1``; empty before the first.
    """

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._paths: dict[str, dict[str, str]] = {}
        self._shippers: dict[str, Mapping[str, LogShipper]] = {}
        self.newest = ""

    def begin(self, epoch: int, attempt: int) -> dict[str, str]:
        """Return stream -> path of a new attempt; the first one's names have no attempt."""
        name = layout.attempt_name(epoch, attempt)
        if name not in self._paths:
            mark = f".{name}" if self._paths else ""
            self._paths[name] = {
                stream: self._scratch.log(stream, mark) for stream in layout.STREAMS
            }
        self.newest = name
        return self._paths[name]

    def paths(self, attempt: str = "") -> dict[str, str] | None:
        """Return stream -> path of an attempt (default: the newest); None if it is unknown."""
        return self._paths.get(attempt or self.newest)

    def shipped_by(self, shippers: Mapping[str, LogShipper]) -> None:
        """Set the shippers of the newest attempt's streams; they have the indexes."""
        self._shippers[self.newest] = shippers

    def index(self, attempt: str, stream: str) -> bytes | None:
        """Return the index of a log as it will be shipped; None if it is unknown."""
        shipper = self._shippers.get(attempt or self.newest, {}).get(stream)
        return shipper.index() if shipper is not None else None
