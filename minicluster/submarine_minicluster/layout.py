"""Where a minicluster keeps its things. Names paths; reads and writes nothing but directories."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import platformdirs


def clusters_dir() -> Path:
    """The directory that holds every minicluster of this user."""
    return platformdirs.user_data_path("jupyter-submarine") / "minicluster"


@dataclass(frozen=True)
class Layout:
    """The directory of one cluster.

    Attributes
    ----------
    root
        Its directory.
    """

    root: Path

    @property
    def saved(self) -> Path:
        """Settings and ports."""
        return self.root / "cluster.json"

    @property
    def client_conf(self) -> Path:
        """What clients use as HADOOP_CONF_DIR; contains no daemon's settings."""
        return self.root / "conf" / "client"

    def conf(self, daemon: str) -> Path:
        """The configuration directory of a daemon."""
        return self.root / "conf" / daemon

    def data(self, daemon: str) -> Path:
        """What a daemon keeps between starts."""
        return self.root / "data" / daemon

    def log(self, daemon: str) -> Path:
        """A daemon's own log."""
        return self.root / "logs" / f"{daemon}.log"

    def output(self, daemon: str) -> Path:
        """What a daemon's JVM wrote outside its log."""
        return self.root / "logs" / f"{daemon}.out"

    def pidfile(self, daemon: str) -> Path:
        """The process of a daemon."""
        return self.root / "run" / f"{daemon}.json"

    @property
    def bin(self) -> Path:
        """The client commands `yarn` and `hdfs`."""
        return self.root / "bin"

    @property
    def tmp(self) -> Path:
        """Scratch files of the daemons; emptied by nobody but `stop`."""
        return self.root / "tmp"

    def make(self) -> None:
        """Create the directories that daemons expect, closed to other users of this machine."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.root.chmod(0o700)
        for name in ("conf", "data", "logs", "run", "bin", "tmp"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
