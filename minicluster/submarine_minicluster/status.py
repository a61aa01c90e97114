"""What `status` tells of a cluster: plain records, without any way to act on them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from submarine_minicluster.settings import Settings


@dataclass(frozen=True)
class DaemonStatus:
    """One daemon: whether its process runs, and its loopback port, web address and log."""

    name: str
    running: bool
    pid: int | None
    port: int
    url: str
    log: str


@dataclass(frozen=True)
class ClusterStatus:
    """A cluster and its daemons."""

    name: str
    settings: Settings
    default_fs: str
    daemons: list[DaemonStatus]

    @property
    def state(self) -> str:
        """`running`, `stopped`, or `half dead` when only some daemons run."""
        up = sum(daemon.running for daemon in self.daemons)
        if up == len(self.daemons):
            return "running"
        return "half dead" if up else "stopped"

    def as_json(self) -> dict[str, Any]:
        """For `--json`."""
        return {"state": self.state, **asdict(self)}
