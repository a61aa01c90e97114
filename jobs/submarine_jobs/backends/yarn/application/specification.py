"""Specification of a YARN application: its containers with their files and scripts.

The classes follow the specification of skein, without an import of skein. ``skein_calls`` converts
them to skein's classes, which validate them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from submarine_jobs.model import Sharing

#: Types of files, and the visibility of the copy on a node.
FILE, ARCHIVE = "FILE", "ARCHIVE"
APPLICATION, PRIVATE, PUBLIC = "APPLICATION", "PRIVATE", "PUBLIC"


@dataclass(frozen=True)
class File:
    """A file or archive that a node localizes for a container.

    Parameters
    ----------
    source
        Its URL.
    type
        ``FILE``, or ``ARCHIVE`` to unpack it.
    visibility
        ``APPLICATION``: for this application; ``PRIVATE``: kept for later ones of this user;
        ``PUBLIC``: kept for all users.
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
    """The container of the application master; without a script it starts the services."""

    resources: Resources
    files: dict[str, File]
    env: dict[str, str]
    script: str = ""
    log_level: str = "INFO"


@dataclass(frozen=True)
class Service:
    """The containers of one role."""

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
    """An application.

    Parameters
    ----------
    user
        User on whose behalf the submitting service acts; empty: the driver's own.
    owner
        User of the job on the cluster.
    private
        Let only the owner, and those of ``share``, open the job's page. A cluster without Kerberos
        does not verify which user opens it.
    share
        The entries of ``--share``.
    file_systems
        URLs of other file systems of which the containers get tokens.
    """

    name: str
    queue: str
    tags: frozenset[str]
    master: Master
    services: dict[str, Service] = field(default_factory=dict)
    max_attempts: int = 1
    user: str = ""
    owner: str = ""
    private: bool = False
    share: tuple[str, ...] = ()
    file_systems: tuple[str, ...] = ()

    def to_json(self) -> Mapping[str, Any]:
        """Return the JSON form of skein."""
        fields = asdict(self)
        share, private = Sharing.of(fields.pop("share")), fields.pop("private")
        owner = fields.pop("owner")
        fields["tags"] = sorted(self.tags)
        fields["file_systems"] = list(self.file_systems)
        if self.share or private:
            lists = {name: list(names) for name, names in share._asdict().items()}
            # skein's page of the master has a list of users only; its name of the owner
            # may have a realm.
            readers = [owner, *share.view_users]
            fields["acls"] = {"enable": True, **lists, "ui_users": readers}
        return fields
