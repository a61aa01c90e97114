"""What YARN is asked to run: an application's containers, their files and scripts, as plain values.

The words are those of skein's specification, whose package nobody needs who makes one of these or
hands it on; ``skein_calls`` turns it into skein's own, which checks it. Submits nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

#: Kinds of files, and who shares a node's copy of one.
FILE, ARCHIVE = "FILE", "ARCHIVE"
APPLICATION, PRIVATE = "APPLICATION", "PRIVATE"


@dataclass(frozen=True)
class File:
    """A file or archive that a node brings into a container.

    Parameters
    ----------
    source
        Its URL.
    type
        ``FILE`` or ``ARCHIVE``, which is unpacked.
    visibility
        ``APPLICATION``: a copy of this application's; ``PRIVATE``: kept for this user's next ones.
    """

    source: str
    type: str = FILE
    visibility: str = APPLICATION


@dataclass(frozen=True)
class Resources:
    """The size of a container; memory in MiB."""

    memory: int
    vcores: int
    gpus: int = 0


@dataclass(frozen=True)
class Master:
    """The application master's container; without a script of its own it starts the services."""

    resources: Resources
    files: dict[str, File]
    env: dict[str, str]
    script: str = ""
    log_level: str = "INFO"


@dataclass(frozen=True)
class Service:
    """Containers of one kind."""

    resources: Resources
    files: dict[str, File]
    script: str
    instances: int = 1
    env: dict[str, str] = field(default_factory=dict)
    max_restarts: int = 0
    allow_failures: bool = False
    node_label: str = ""
    nodes: list[str] = field(default_factory=list)
    racks: list[str] = field(default_factory=list)
    relax_locality: bool = False


@dataclass(frozen=True)
class Application:
    """All of an application."""

    name: str
    queue: str
    tags: frozenset[str]
    master: Master
    services: dict[str, Service] = field(default_factory=dict)
    max_attempts: int = 1

    def to_json(self) -> Mapping[str, Any]:
        """In the form that skein reads from JSON."""
        return {**asdict(self), "tags": sorted(self.tags)}
