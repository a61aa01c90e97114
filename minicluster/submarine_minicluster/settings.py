"""What a user may choose about a minicluster, and what is remembered of it between calls."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path

from submarine_minicluster.errors import MiniclusterError
from submarine_minicluster.machine import replace_file

DEFAULT_HADOOP = "3.5.0"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,40}\Z")
_HADOOP = re.compile(r"3\.[3-9]\.\d+\Z")
_LABEL = re.compile(r"([A-Za-z0-9][A-Za-z0-9_-]{0,40})=(\d{1,3})\Z")
_MEMORY = re.compile(r"(\d+)\s*(?:([mg])i?b?)?\Z", re.IGNORECASE)


def parse_memory(text: str) -> int:
    """Megabytes from ``8G``, ``8192M`` or a bare number of megabytes.

    Raises
    ------
    MiniclusterError
        When the text is none of these.
    """
    found = _MEMORY.match(text.strip())
    if not found:
        raise MiniclusterError(f"Memory {text!r} is not a size: write it as 8G or 8192M.")
    scale = 1024 if (found.group(2) or "m").lower() == "g" else 1
    return int(found.group(1)) * scale


def check_name(name: str) -> str:
    """Return `name` if it can name a cluster (it becomes a directory), else raise."""
    if not _NAME.match(name):
        raise MiniclusterError(
            f"{name!r} cannot name a minicluster: use up to 41 letters, digits, '_', '.' or '-', "
            "beginning with a letter or digit."
        )
    return name


@dataclass(frozen=True)
class Settings:
    """Size and version of a cluster.

    Attributes
    ----------
    hadoop
        Hadoop's version; jobs are tested with 3.5.0; 3.3.6 starts and runs a command.
    nodes
        Number of NodeManagers. There is always one DataNode.
    memory_mb, vcores, gpus
        What each NodeManager offers. YARN's scheduler counts them; nothing is reserved, and there
        need be no GPU in the machine.
    preemption
        Whether the scheduler takes containers back for a queue that is below its share.
    labels
        Node labels as ``NAME=INDEX``: NodeManager ``INDEX`` is in the partition ``NAME``.
    node_expiry
        Seconds without a heartbeat after which a node counts as lost.
    """

    hadoop: str = DEFAULT_HADOOP
    nodes: int = 1
    memory_mb: int = 8192
    vcores: int = 8
    gpus: int = 4
    preemption: bool = False
    labels: tuple[str, ...] = ()
    node_expiry: int = 30

    def __post_init__(self) -> None:
        if not _HADOOP.match(self.hadoop):
            raise MiniclusterError(
                f"Hadoop {self.hadoop!r} is not supported: give a release of 3.3 or later, "
                f"as in {DEFAULT_HADOOP} or 3.3.6."
            )
        object.__setattr__(self, "labels", tuple(self.labels))  # JSON gives a list
        for label in self.labels:
            found = _LABEL.match(label)
            if not found or int(found.group(2)) >= self.nodes:
                raise MiniclusterError(
                    f"{label!r} is no label: write NAME=INDEX with an index below {self.nodes}."
                )
        limits = {"nodes": (1, 16), "memory_mb": (512, 1 << 22), "vcores": (1, 4096)}
        for name, (low, high) in {**limits, "gpus": (0, 1024), "node_expiry": (2, 600)}.items():
            value = getattr(self, name)
            if not low <= value <= high:
                raise MiniclusterError(f"{name} is {value}; it must be between {low} and {high}.")

    @property
    def node_labels(self) -> list[tuple[str, int]]:
        """Each label with the NodeManager that has it."""
        return [(name, int(index)) for name, _, index in (x.partition("=") for x in self.labels)]

    def describe(self) -> str:
        """In words, as in ``Hadoop 3.5.0, 1 node of 8192 MB, 8 vcores, 4 GPUs``."""
        nodes = f"{self.nodes} node{'s'[: self.nodes > 1]}"
        more = ", pre-emption" * self.preemption
        more += f", labels {' '.join(self.labels)}" if self.labels else ""
        return (
            f"Hadoop {self.hadoop}, {nodes} of {self.memory_mb} MB, "
            f"{self.vcores} vcores, {self.gpus} GPUs{more}"
        )


@dataclass
class Saved:
    """A cluster as it is remembered in its directory.

    Attributes
    ----------
    settings
        As given when it was first started.
    java_home
        The Java that runs it.
    ports
        Loopback port by name; kept from start to start, because the address of a file in HDFS
        contains one.
    users
        Hadoop users that the daemons serve besides their own.
    """

    settings: Settings
    java_home: str
    ports: dict[str, int] = field(default_factory=dict)
    users: tuple[str, ...] = ()

    def write(self, path: Path) -> None:
        """Write to `path`, which is either the old or the new content at any moment."""
        replace_file(path, (json.dumps(asdict(self), indent=2) + "\n").encode())

    @classmethod
    def read(cls, path: Path) -> Saved | None:
        """Read from `path`; None where there is no such cluster.

        Raises
        ------
        MiniclusterError
            When the file exists and cannot be understood.
        """
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
            users = tuple(raw.get("users", ()))
            return cls(Settings(**raw["settings"]), raw["java_home"], raw["ports"], users)
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise MiniclusterError(
                f"{path} does not describe a minicluster ({error}); remove {path.parent} "
                "after `submarine minicluster stop`."
            ) from error
